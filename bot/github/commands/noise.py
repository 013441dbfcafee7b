"""`/noise [reason]`: nothing has changed, and the alert was a mistake of ours."""

from collections.abc import Sequence

from baselines.store import Store
from bot.github.actions import Action
from bot.github.alert import Alert
from bot.github.commands.command import Command, Conversation, Refused
from bot.github.commands.on_alert import Because, by_whom, change, done, reason_of, require_open
from bot.triage.calling_noise import LASTS, call_noise
from torchbenchmark.quantity import counted

USAGE = (
    "`/noise [reason]`: nothing has changed: the alert is over, its tests must go further to be called again for "
    f"{LASTS.days} days, and it counts against the precision of the bot"
)
_OF = {"count": "counts are exact", "environment": "the environment is as it was recorded"}


def parse(words: Sequence[str]) -> Because:
    return Because(reason_of(words))


def handle(asked: Because, conversation: Conversation) -> Sequence[Action]:
    def do(store: Store, alert: Alert) -> Alert:
        series = (alert.suite, alert.machine_class, alert.key)
        return call_noise(store, *series, by=conversation.by, why=asked.why, now=conversation.now)

    alert = change(conversation, _require_doubt, do)
    said = alert.noise
    assert said is not None
    tests = counted(len(alert.tests), "test")
    further = "must fail for longer" if alert.kind == "failure" else "must go beyond what was seen here"
    told = (
        f"**Noise** {by_whom(said.by, said.why)}. The alert is closed, and counts against the precision of the bot. "
        f"Until {said.until:%Y-%m-%d} its {tests} {further} to be called again."
    )
    return done(conversation, told)


def _require_doubt(alert: Alert) -> None:
    """Of what has recovered somebody may say afterwards that it was nothing."""
    if alert.kind in _OF:
        raise Refused(
            f"{_OF[alert.kind]}, so there is no noise in what this issue tells", "say `/ack` to take note of it"
        )
    if alert.noise is None and (alert.accepted is not None or alert.merged_into):
        require_open(alert)


COMMAND = Command("noise", "alert", (USAGE,), parse, handle)
