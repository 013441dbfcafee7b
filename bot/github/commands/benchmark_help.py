"""`/benchmark help`: what can be said on a pull request."""

from collections.abc import Sequence

from bot.github.actions import Action
from bot.github.commands.asked import KEYS_HELP
from bot.github.commands.command import Command, Conversation
from bot.github.commands.replying import no_words, reply
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.registry import load_suite, suite_names

USAGE = "`/benchmark help`: this"


def handle(asked: None, conversation: Conversation) -> Sequence[Action]:
    from bot.github.commands.all_commands import commands_at  # which this is one of

    config = conversation.config
    limits = config.pull_requests
    suite = load_suite(limits.suite or config.suite)
    told = [
        "**What can be said here**, at the start of a line, one command a comment:",
        "",
        *(f"- {line}" for command in commands_at("pull request") for line in command.usage),
        "",
        f"Without words it measures suite {inline_code(suite.name)} on {config.device}: at most {limits.pairs} pairs "
        f"of a test, and after {limits.budget_minutes:g} minutes no further pair is begun. One request may have "
        f"{limits.most_tests} tests, {limits.most_pairs} pairs and {limits.most_budget_minutes:g} minutes.",
        "",
        "The keys:",
        "",
        *(f"- {line}" for line in KEYS_HELP),
        "",
        f"The suites are {', '.join(f'`{name}`' for name in suite_names())}.",
        f"The models of {inline_code(suite.name)} are {', '.join(f'`{name}`' for name in suite.models)}.",
        "",
        f"Example: `/benchmark {suite.models[0]} mode=eval base=merge-base pairs=24`",
    ]
    return (reply(conversation, "\n".join(told)),)


COMMAND = Command("benchmark help", "pull request", (USAGE,), no_words("/benchmark help"), handle, is_for_all=True)
