"""The exception of this package."""

from torchbenchmark.errors import SentinelError


class BaselineError(SentinelError):
    """What is stored, or was to be stored, cannot be used: a key, a run, a history, a pin, a series."""


class OtherContentError(BaselineError):
    """An immutable object is stored already, with other content."""
