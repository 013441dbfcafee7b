"""The exception of the bot."""

from torchbenchmark.errors import SentinelError


class BotError(SentinelError):
    """Bad input to the bot: its configuration, its outbox, its stored alerts."""
