"""`/snooze 7d [reason]`: the alert bothers nobody for a while."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from baselines.store import Store
from bot.github.actions import Action
from bot.github.alert import Alert
from bot.github.commands.command import Command, Conversation, WrongUse
from bot.github.commands.on_alert import by_whom, change, done, reason_of, require_open
from bot.triage.snoozing import LONGEST, snooze
from torchbenchmark.foreign_text import inline_code

USAGE = (
    f"`/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most {LONGEST.days} days)"
)
VALID = f"say a number and its unit in one word, such as `7d`, and at most {LONGEST.days} days"
_TIME = re.compile(r"([0-9]{1,4})([hdw])", re.IGNORECASE | re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True)
class Silence:
    """How long, from the comment on, and why."""

    time: timedelta
    why: str = ""


def parse(words: Sequence[str]) -> Silence:
    if not words:
        raise WrongUse("`/snooze` needs a time", VALID)
    written = _TIME.fullmatch(words[0])
    if written is None:
        raise WrongUse(f"{inline_code(words[0])} is no time", VALID)
    time = int(written[1]) * _UNITS[written[2].lower()]
    if not timedelta() < time <= LONGEST:
        raise WrongUse(f"{inline_code(words[0])} is {'no time' if not time else 'too long'}", VALID)
    return Silence(time, reason_of(words[1:]))


def handle(asked: Silence, conversation: Conversation) -> Sequence[Action]:
    said = conversation.event.comment.created_at  # a job that is started again comes to the same time

    def do(store: Store, alert: Alert) -> Alert:
        series = (alert.suite, alert.machine_class, alert.key)
        return snooze(store, *series, until=said + asked.time, by=conversation.by, why=asked.why, now=said)

    alert = change(conversation, require_open, do)
    assert alert.snoozed is not None
    told = (
        f"**Snoozed** until {alert.snoozed.until:%Y-%m-%d %H:%M} UTC {by_whom(conversation.by, asked.why)}. The alert "
        "is measured every night, and nobody is told of it until then. If it is still there, it speaks again."
    )
    return done(conversation, told)


COMMAND = Command("snooze", "alert", (USAGE,), parse, handle)
