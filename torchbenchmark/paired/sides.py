"""A side of a comparison: a build, and in what its experiment differs from the planned one.

`BUILD`, or `BUILD@backend=inductor@env.NAME=1`: whatever stands before the first `@key=value` names the build. So
compiled against eager is `ab X X@backend=inductor`.
"""

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torchbenchmark.builds.build_address import split_overrides
from torchbenchmark.environment import looks_secret
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELDS = ("backend", "precision", "preset", "training_mode")
# They decide which code is loaded, and would let a side run beside its build.
_REFUSED_VARIABLES = re.compile(r"(PATH|HOME|LD_.*|PYTHON.*|TORCHBENCH_.*)")


@dataclass(frozen=True)
class Side:
    """What one side of a comparison measures."""

    build: str  # the address of a build, or the path of an interpreter
    fields: dict[str, str] = field(default_factory=dict)  # of the experiment, that are other than planned
    batch_size: int | None = None
    variables: dict[str, str] = field(default_factory=dict)  # of the environment, set beside what a worker has anyway

    def __str__(self) -> str:
        batch = {} if self.batch_size is None else {"batch_size": str(self.batch_size)}
        overrides = {**self.fields, **batch, **{f"env.{name}": value for name, value in self.variables.items()}}
        return self.build + "".join(f"@{key}={value}" for key, value in overrides.items())

    def experiment(self, planned: Experiment) -> Experiment:
        """What this side measures for a planned test. Raises BenchmarkError if there is no such experiment."""
        changes: dict[str, object] = dict(self.fields)
        if self.batch_size is not None:
            changes["batch_size"] = self.batch_size
        return dataclasses.replace(planned, **changes)


def parse_side(text: str) -> Side:
    """The side that a text names. Raises BenchmarkError naming the override that is wrong, and never the build, whose
    address may hold a password: it is looked at later."""
    if not text.isprintable():
        raise BenchmarkError(f"{text[:60]!a}: holds a line break or a control character, which no side has")
    build, overrides = split_overrides(text)
    if not build:
        raise BenchmarkError("a side names no build; write BUILD, or BUILD@backend=inductor")
    fields: dict[str, str] = {}
    variables: dict[str, str] = {}
    batch_size: int | None = None
    seen: set[str] = set()
    for key, value in overrides:
        if key in seen:
            raise BenchmarkError(f"@{key} stands twice in one side")
        seen.add(key)
        if key in _FIELDS:
            fields[key] = value
        elif key == "batch_size":
            if not re.fullmatch(r"[1-9][0-9]{0,8}", value):
                raise BenchmarkError(f"@batch_size={value[:20]}: a whole number from 1 on is needed")
            batch_size = int(value)
        elif key.startswith("env."):
            variables[_variable(key.removeprefix("env."), value)] = value
        else:
            raise BenchmarkError(f"@{key} is no override; there are: {', '.join((*_FIELDS, 'batch_size'))}, env.NAME")
    return Side(build, fields, batch_size, variables)


@contextmanager
def told_of_side(name: str) -> Iterator[None]:
    """What is wrong with an override is told with the side that it stands in: base or head."""
    try:
        yield
    except BenchmarkError as error:
        raise BenchmarkError(f"{name}: {error}") from error


def _variable(name: str, value: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise BenchmarkError(f"env.{name}: not the name of a variable of the environment")
    if _REFUSED_VARIABLES.fullmatch(name):
        raise BenchmarkError(f"env.{name}: decides which code is loaded; name another build instead")
    if looks_secret(name, value):
        raise BenchmarkError(f"env.{name}: looks like a secret, and would stand in the file of pairs and in reports")
    return name
