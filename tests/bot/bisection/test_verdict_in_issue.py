"""What an issue says of the bisection of its alert."""

from datetime import UTC, datetime, timedelta

import pytest
from alert_of_commits import alert_of, at

from bot.alert_issue import issue_of
from bot.config import NightlyConfig
from bot.github.alert import Episode
from bot.github.bisected import Bisected, BisectedChange, SuspectCommit

HOSTILE = "@everyone `</details><script>` |[x](http://e) #1"
SHOWN = "`@everyone '</details><script>' ¦[x](http://e) #1`"
ONE, OTHER = "a" * 40, "b" * 40


def change(*commits: str, more: int = 0) -> BisectedChange:
    named = tuple(SuspectCommit(commit=commit, subject=HOSTILE) for commit in commits)
    return BisectedChange(commits=named, more=more, told="+8.1 % (worse)", probability=0.9941, certainty="certain")


def verdict(kind: str, **fields: object) -> Bisected:
    when = datetime(2026, 3, 5, tzinfo=UTC)
    return Bisected(at=when, episode=0, verdict=kind, good="1" * 40, bad="2" * 40, **fields)


def body(bisected: Bisected | None) -> str:
    return issue_of(alert_of(bisected=bisected, evidence="THE EVIDENCE"), NightlyConfig()).body


WHERE = "bisected on 2026-03-05 from `111111111111` (good) to `222222222222` (bad)"
NAMED = f"`aaaaaaaaaaaa` {SHOWN} (`+8.1 % (worse)`, probability 0.994, certain)"
BOTH = f"`aaaaaaaaaaaa` {SHOWN}, `bbbbbbbbbbbb` {SHOWN} and 3 more (`+8.1 % (worse)`, probability 0.994, certain)"


@pytest.mark.parametrize(
    ("bisected", "told"),
    [
        (verdict("culprit", changes=(change(ONE),)), f"**The culprit is** {NAMED}; {WHERE}."),
        (
            verdict("culprit", changes=(change(ONE),), of_merge=HOSTILE),
            f"**The culprit is** {NAMED}; {WHERE}. Of the merge: {SHOWN}.",
        ),
        (
            verdict("set", changes=(change(ONE, OTHER, more=3),)),
            f"**The culprit is one of the commits that no build tells apart:** {BOTH}; {WHERE}.",
        ),
        (
            verdict("several culprits", changes=(change(ONE), change(ONE))),
            f"**There are 2 culprits:** {NAMED}; {NAMED}; {WHERE}.",
        ),
        (
            verdict("environment", ends=HOSTILE, environment=(HOSTILE, "kernel")),
            f"**Not a commit, but the environment:** {SHOWN}. Beside the build differ: {SHOWN}; `kernel`; {WHERE}.",
        ),
        (
            verdict("not reproduced", ends=HOSTILE),
            f"**Not reproduced by builds of the commits:** {SHOWN}; {WHERE}.",
        ),
        (
            verdict("budget spent", reason="9 builds", changes=(change(ONE),)),
            f"**The budget of its bisection was spent** (`9 builds`; {WHERE}). Likeliest: {NAMED}.",
        ),
        (verdict("ends not measurable", reason=HOSTILE), f"**It could not be bisected** ({SHOWN}; {WHERE})."),
    ],
)
def test_the_first_paragraph_says_which_commit_it_was_and_foreign_text_stays_text(bisected, told):
    assert body(bisected).startswith(f"{told}\n\nTHE EVIDENCE\n")


def test_an_alert_that_was_not_bisected_or_is_back_says_nothing_of_it():
    assert body(None).startswith("THE EVIDENCE\n")
    back = alert_of(
        bisected=verdict("culprit", changes=(change(ONE),)),
        earlier=(Episode(since=at(1), until=at(1) + timedelta(days=1)),),
        evidence="THE EVIDENCE",
    )
    assert issue_of(back, NightlyConfig()).body.startswith("THE EVIDENCE\n")
