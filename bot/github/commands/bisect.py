"""`/bisect [good..bad]`: look for the commit of an alert, by the workflow bisect.yml."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.github.actions import Action, Dispatch
from bot.github.alert import Alert
from bot.github.commands.command import Command, Conversation, Refused, WrongUse
from bot.github.commands.on_alert import alert_of, by_whom, done
from bot.github.commands.replying import reply_key
from torchbenchmark.foreign_text import inline_code

WORKFLOW = "bisect.yml"
REPOSITORY = "TORCHBENCH_BISECT_REPO"  # of the subject: a variable of the repository, which the job has too
USAGE = (
    "`/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or between two "
    "commits, branches or tags"
)
VALID = "say two commits, branches or tags with two dots between, or none"
LONGEST_REVISION = 200
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+-]*")


@dataclass(frozen=True)
class Ends:
    """Between which to look; both are empty where the nights of the alert say it."""

    good: str = ""
    bad: str = ""


def parse(words: Sequence[str]) -> Ends:
    if not words:
        return Ends()
    if len(words) > 1:
        raise WrongUse(f"`/bisect` takes one range, and {inline_code(' '.join(words))} is more", VALID)
    ends = words[0].split("..")
    if len(ends) != 2 or not all(ends) or "..." in words[0]:
        raise WrongUse(f"{inline_code(words[0])} is no range", VALID)
    for revision in ends:
        if not _is_revision(revision):
            raise WrongUse(f"{inline_code(revision)} names no commit, branch or tag", VALID)
    if ends[0] == ends[1]:
        raise WrongUse(f"both ends are {inline_code(ends[0])}", VALID)
    return Ends(*ends)


def _is_revision(text: str) -> bool:
    """What git takes for a name, and neither for an option nor for an expression (`git help check-ref-format`)."""
    parts = text.split("/")
    return (
        len(text) <= LONGEST_REVISION
        and _REVISION.fullmatch(text) is not None
        and not any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    )


def handle(asked: Ends, conversation: Conversation) -> Sequence[Action]:
    alert = alert_of(conversation, conversation.open_store())
    _require_a_range(alert, asked)
    said = reply_key(conversation)
    inputs = {"signal": alert.key, "asked": said, **({"good": asked.good, "bad": asked.bad} if asked.good else {})}
    between = f"{inline_code(asked.good)} and {inline_code(asked.bad)}" if asked.good else "its good and its slow night"
    told = (
        f"**Bisecting** between {between}, asked for {by_whom(conversation.by)}. The workflow `{WORKFLOW}` builds "
        "commits and measures them side by side, which takes hours; this issue names the commit when it is found. "
        "Where a run ends without one, another `/bisect` goes on with it."
    )
    return (Dispatch(key=said, workflow=WORKFLOW, inputs=inputs), *done(conversation, told))


def is_a_start(action: Dispatch, alert: str | None) -> bool:
    """Whether it is what this command starts for an alert, and nothing else: for whoever starts it in its place."""
    ends = {name: action.inputs[name] for name in ("good", "bad") if name in action.inputs}
    return (
        action.workflow == WORKFLOW
        and action.key is not None
        and action.inputs == {"signal": alert, "asked": action.key, **ends}
        and len(ends) != 1
        and all(map(_is_revision, ends.values()))
    )


def _require_a_range(alert: Alert, asked: Ends) -> None:
    if alert.kind == "failure":
        raise Refused(
            "the workflow bisects times, and these tests fail",
            f"on a machine with a clone, `torchbench bisect --from-signal {alert.key}` does it",
        )
    if alert.kind in ("count", "environment"):
        raise Refused(f"there is no range of commits behind a change of {_OF[alert.kind]}", "nothing is bisected")
    if set(alert.tests) == {"total"}:
        raise Refused("only the total has moved, and no test of its own", "there is nothing to compare commits by")
    if alert.verdict is not None and not asked.good:
        raise Refused(
            f"it was bisected on {alert.verdict.at:%Y-%m-%d}, and the issue tells the verdict "
            f"({inline_code(alert.verdict.verdict)})",
            "to look again, name a range: `/bisect GOOD..BAD`",
        )
    if os.environ.get(REPOSITORY, "unknown") == "":
        raise Refused(
            "this installation names no repository of the subject, so there are no commits to look through",
            f"set the variable `{REPOSITORY}`",
        )


_OF = {"count": "counts", "environment": "the environment"}
COMMAND = Command("bisect", "alert", (USAGE,), parse, handle)
