"""What is said below the issue of an alert when a person needs to know, and on the pull request that it came with."""

from collections.abc import Sequence
from dataclasses import dataclass

from torchbenchmark.foreign_text import inline_code
from torchbenchmark.quantity import counted

MOST_TESTS = 10  # that a pull request is told the names of


@dataclass(frozen=True)
class CommentFacts:
    """What a comment tells of an alert."""

    kind: str
    tests: int
    culprit: str  # as Markdown; empty if there is none
    closed_because: str
    opened: str  # the date


def render_comment(what: str, facts: CommentFacts) -> str:
    """One event of an alert, as Markdown: what happened first."""
    tests = counted(facts.tests, "test")
    are = "is" if facts.tests == 1 else "are"
    bad = "failing" if facts.kind == "failure" else "slower"
    culprit = f"\n\n{facts.culprit}" if facts.culprit else ""
    match what:
        case "relapsed":
            return f"**It is back**: since {facts.opened} {tests} of this alert {are} {bad} again."
        case "culprit found":
            return facts.culprit
        case "recovered":
            return f"**Recovered, and closed**: {facts.closed_because}. A relapse within 30 days opens it again."
        case "snooze over":
            return f"**The snooze is over, and it is still there**: {tests} {are} {bad}.{culprit}"
    return f"**Closed**: {facts.closed_because.removeprefix('closed: ')}."


def render_on_culprit(title: str, tests: Sequence[str], culprit: str) -> str:
    """What the pull request of a culprit is told. Foreign text stands in code spans, so that nobody is mentioned."""
    named = "\n".join(f"- {inline_code(test)}" for test in tests[:MOST_TESTS])
    more = f"\n- and {len(tests) - MOST_TESTS} more" if len(tests) > MOST_TESTS else ""
    return (
        f"A bisection of {inline_code(title)} has come to a commit of this pull request.\n\n{culprit}\n\n{named}{more}"
    )
