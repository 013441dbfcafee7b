"""The exceptions a user can cause. A message says what happened, where, and what to do; the command line prints it
in one line and exits with 2."""


class SentinelError(Exception):
    """Base of every error that is the fault of an input, not of the program."""


class BenchmarkError(SentinelError):
    """Bad input to the suite or the measuring engine: models, suites, experiments, records, environment."""
