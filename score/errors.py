"""What a user can do wrong with a score."""

from torchbenchmark.errors import SentinelError


class ScoreError(SentinelError):
    """No score can be given: tests are missing, stand twice, are not comparable, or have no place in the taxonomy."""
