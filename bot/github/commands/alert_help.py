"""`/help` on an alert: what can be said there."""

from collections.abc import Sequence

from bot.github.actions import Action
from bot.github.commands.command import Command, Conversation
from bot.github.commands.replying import reply

USAGE = "`/help`: this list"
INTRODUCTION = (
    "**What can be said here**, at the start of a line, one command a comment, by those who may write in this "
    "repository:"
)


def parse(words: Sequence[str]) -> None:
    """Whatever follows: the list is short."""


def handle(asked: None, conversation: Conversation) -> Sequence[Action]:
    from bot.github.commands.all_commands import commands_at  # which this is one of

    usage = [f"- {line}" for command in commands_at("alert") for line in command.usage]
    return (reply(conversation, "\n".join([INTRODUCTION, "", *usage])),)


COMMAND = Command("help", "alert", (USAGE,), parse, handle, is_for_all=True)
