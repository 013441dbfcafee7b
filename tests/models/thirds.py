"""CI tries a third of the models, another one each day; `make test-all`, and pytest without a marker, try all."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

VARIABLE = "TORCHBENCH_MODELS_THIRD"
THIRDS = 3


def pin_third() -> str:
    """The third of today, or the one that the variable names; from here on all processes of this run take it."""
    return os.environ.setdefault(VARIABLE, str(datetime.now(UTC).toordinal() % THIRDS + 1))


def today(names: Iterable[str]) -> list[str]:
    """Those names whose turn it is."""
    third = pin_third()
    if third not in ("1", "2", "3", "all"):
        raise pytest.UsageError(f"{VARIABLE}={third}: use 1, 2, 3 or all")
    return [name for number, name in enumerate(sorted(names)) if third in ("all", str(number % THIRDS + 1))]


def in_turns(names: Iterable[str]) -> list:
    """Parameters for a test of each name; those whose turn it is not are `long`."""
    names = list(names)
    chosen = today(names)
    return [pytest.param(name, marks=() if name in chosen else pytest.mark.long) for name in names]
