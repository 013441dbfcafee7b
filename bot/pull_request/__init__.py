"""A `/benchmark` request: both commits built and measured, what that leaves, and what is believed of it."""
