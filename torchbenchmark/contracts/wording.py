"""How breaches are told: lists are cut, and counts are said."""

from collections.abc import Iterable, Mapping

from torchbenchmark.worker.outcome import first_line

SHOWN = 4


def listed(names: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    every = list(names)
    shown = ", ".join(every[:SHOWN])
    return shown if len(every) <= SHOWN else f"{shown} and {len(every) - SHOWN} more"


def named(error: Exception) -> str:
    """What it is and the first line of what it says; its own __str__ may fail."""
    return f"{type(error).__name__}: {first_line(error)[:200]}"


def counted(seen: Mapping[str, int]) -> str:
    """Each with how often it was seen, the most frequent first."""
    ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
    return listed(f"{name} ({number} x)" if number > 1 else name for name, number in ordered)
