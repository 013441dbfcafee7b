"""A plain build: an interpreter with the subject installed, for a command of the user's and no test of the suite."""

import json
import subprocess
from pathlib import Path

from torchbenchmark.environment import normalised_name, worker_variables
from torchbenchmark.errors import BenchmarkError

ANSWER_TIMEOUT_S = 60
_ASK = """
import importlib.metadata, json
print(json.dumps({one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}))
"""


def distributions_in(python: Path, subject: str) -> dict[str, str]:
    """What is installed, by normalised name. Raises BenchmarkError if the interpreter does not answer, or has not the
    subject. Nothing is imported: a package may be called otherwise than its distribution."""
    try:
        ended = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_TIMEOUT_S,
            env=worker_variables(),
            check=False,
        )
        found = json.loads(ended.stdout)
        distributions = {normalised_name(name): str(version) for name, version in found.items()}
    except (OSError, subprocess.TimeoutExpired, ValueError, AttributeError, TypeError) as error:
        raise BenchmarkError(f"{python}: did not tell what is installed there ({type(error).__name__})") from error
    if subject not in distributions:
        raise BenchmarkError(f"{python}: the subject {subject!r} is not installed there")
    return distributions
