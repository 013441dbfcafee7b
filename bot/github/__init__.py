"""Everything that speaks to an issue tracker: alerts and their life, and the outbox that stands in for GitHub."""
