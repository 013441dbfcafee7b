"""`/ack [reason]`: somebody looks after the alert."""

from collections.abc import Sequence

from baselines.store import Store
from bot.github.actions import Action
from bot.github.alert import Alert
from bot.github.commands.command import Command, Conversation
from bot.github.commands.on_alert import Because, by_whom, change, done, reason_of, require_open
from bot.triage.acknowledging import acknowledge
from torchbenchmark.foreign_text import inline_code

USAGE = "`/ack [reason]`: you look after it; the alert stays open, and a relapse is to be acknowledged anew"


def parse(words: Sequence[str]) -> Because:
    return Because(reason_of(words))


def handle(asked: Because, conversation: Conversation) -> Sequence[Action]:
    def do(store: Store, alert: Alert) -> Alert:
        series = (alert.suite, alert.machine_class, alert.key)
        return acknowledge(store, *series, by=conversation.by, why=asked.why, now=conversation.now)

    alert = change(conversation, require_open, do)
    said = alert.acknowledged
    assert said is not None
    if said.by != conversation.by:
        return done(conversation, f"{inline_code(said.by)} looks after this alert already.")
    told = (
        f"**Acknowledged** {by_whom(said.by, said.why)}. The alert stays open, is measured every night, and closes "
        "when its tests are good again. If it comes back after that, it is to be acknowledged anew."
    )
    return done(conversation, told)


COMMAND = Command("ack", "alert", (USAGE,), parse, handle)
