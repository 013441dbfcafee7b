"""Values as people read them: 12.3 ms instead of 0.0123 s, and 1 pair beside 2 pairs."""

from collections.abc import Sequence

_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")),
}


def counted(number: int, noun: str) -> str:
    """With its noun, which takes an s where it is not one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def quantity(value: float | None, unit: str | None) -> str:
    """Empty for None. A ratio or a count, of unit "1", has no unit."""
    if value is None:
        return ""
    for size, name in _SCALES.get(unit or "", ()):
        shown = f"{value / size:.4g}"
        if abs(float(shown)) >= 1:  # as it is shown: 0.99999 s is 1 s, and not 1000 ms
            return f"{shown} {name}"
    return f"{value:.6g} {'' if unit in (None, '1') else unit}".rstrip()
