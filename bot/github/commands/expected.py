"""`/expected [reason]`: the change is meant, and its level is what is normal from its onset on."""

from collections.abc import Sequence

from baselines.store import Store
from bot.github.actions import Action
from bot.github.alert import Alert
from bot.github.commands.command import Command, Conversation, Refused
from bot.github.commands.on_alert import Because, by_whom, change, done, reason_of, require_open
from bot.triage.accepting import accept_alert
from torchbenchmark.foreign_text import inline_code

USAGE = "`/expected [reason]`: the change is meant: the level since its onset is what is normal, and the alert is over"
MOST_SHOWN = 10  # tests


def parse(words: Sequence[str]) -> Because:
    return Because(reason_of(words))


def handle(asked: Because, conversation: Conversation) -> Sequence[Action]:
    def do(store: Store, alert: Alert) -> Alert:
        series = (alert.suite, alert.machine_class, alert.key)
        return accept_alert(store, *series, by=conversation.by, why=asked.why, now=conversation.now)

    alert = change(conversation, _require_a_level, do)
    said = alert.accepted
    assert said is not None
    mine = asked.why if said.by == conversation.by else ""
    begins = sorted(said.since.items())
    shown = [f"- {inline_code(test)} from the night of {since:%Y-%m-%d %H:%M} UTC on" for test, since in begins]
    more = [f"- and {len(begins) - MOST_SHOWN} more"] if len(begins) > MOST_SHOWN else []
    told = [
        f"**Expected** {by_whom(said.by, mine)}. What is normal begins anew:",
        "",
        *shown[:MOST_SHOWN],
        *more,
        "",
        "The alert is closed. Nights that begin from now on are held against that level; what gets slower than it is a "
        "new alert.",
    ]
    return done(conversation, "\n".join(told))


def _require_a_level(alert: Alert) -> None:
    if alert.kind == "failure":
        raise Refused("tests that fail have no level to expect", "leave them out of the suite, or say `/ack`")
    if alert.is_announcement:
        raise Refused("what this issue tells is what is normal already", "nothing is to be done about it")
    if alert.accepted is None:
        require_open(alert)


COMMAND = Command("expected", "alert", (USAGE,), parse, handle)
