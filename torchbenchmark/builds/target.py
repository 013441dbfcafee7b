"""Which wheels an interpreter can install: its version and its compatibility tags."""

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import packaging
from packaging.tags import Tag, compatible_tags, cpython_tags, parse_tag

from torchbenchmark.environment import worker_variables
from torchbenchmark.errors import BenchmarkError

ANSWER_TIMEOUT_S = 60
_ASK = """
import json, platform, sys
sys.path.append(sys.argv[1])
from packaging.tags import sys_tags
print(json.dumps({"version": platform.python_version(), "tags": [str(tag) for tag in sys_tags()]}))
"""


@dataclass(frozen=True)
class Target:
    """What wheels have to fit."""

    version: str  # of Python: 3.11.7, or 3.11 where the interpreter itself is not at hand
    tags: tuple[str, ...]  # the best first

    @property
    def python(self) -> str:
        return ".".join(self.version.split(".")[:2])

    @cached_property
    def _ranks(self) -> dict[Tag, int]:
        return {tag: rank for rank, text in enumerate(self.tags) for tag in parse_tag(text)}

    def rank(self, tags: frozenset[Tag]) -> int | None:
        """How well a wheel of these tags fits, 0 the best; None if it does not."""
        return min((self._ranks[tag] for tag in tags if tag in self._ranks), default=None)

    def __str__(self) -> str:
        return f"Python {self.python} ({self.tags[0]})"


def ask_target(python: Path) -> Target:
    """The target that an interpreter is. Raises BenchmarkError if it does not answer."""
    home = Path(packaging.__file__).parents[1]  # appended: what the interpreter has itself comes first
    try:
        process = subprocess.run(
            [str(python), "-I", "-c", _ASK, str(home)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_TIMEOUT_S,
            env=worker_variables(),
            check=False,
        )
    except OSError as error:
        raise BenchmarkError(f"{python}: not a usable interpreter ({error.strerror}); name another") from error
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError(f"{python}: did not tell its tags within {ANSWER_TIMEOUT_S} s") from error
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["no output"])[-1]
        raise BenchmarkError(f"{python}: could not tell its tags (exit {process.returncode}: {last}); name another")
    answer = json.loads(process.stdout)
    return Target(answer["version"], tuple(answer["tags"]))


def target_of_version(python: str | None) -> Target:
    """The target of a Python version (None: of this interpreter) on this machine's platform, be it installed or not."""
    if python is None or python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return ask_target(Path(sys.executable))
    numbers = [int(part) for part in python.split(".")]
    tags = [*cpython_tags(numbers), *compatible_tags(numbers, interpreter=f"cp{numbers[0]}{numbers[1]}")]
    return Target(python, tuple(map(str, tags)))
