"""The table of simulated bisections: how often the search finds what it should, and what it costs, by kind of range."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bot.bisection.simulated_range import Scenario
from bot.bisection.simulation import Ended, simulate

LENGTHS = (16, 64, 256, 1024)
BROKEN, RUN = 0.2, 3.0  # a fifth of the commits does not build, in runs of three on average
WITHIN = 3  # builds that a search may take beside log2 of its commits
PRIORS = {"flat": False, "weighted": True}


@dataclass(frozen=True)
class Row:
    """One kind of range, searched with either prior from the same seeds."""

    name: str
    scenario: Scenario
    ended: dict[str, list[Ended]]


def scenarios(group: str) -> list[tuple[str, Scenario]]:
    """The rows of a group, with their names."""
    return GROUPS[group]()


def _by_step(step: float) -> list[tuple[str, Scenario]]:
    return [
        (f"{step:g} sd{_told(broken)}", Scenario(n, (step,), broken, RUN)) for n in LENGTHS for broken in (0.0, BROKEN)
    ]


def _of(steps: tuple[float, ...], n: int = 64, **other: object) -> Iterator[tuple[float, Scenario]]:
    for broken in (0.0, BROKEN):
        yield broken, Scenario(n, steps, broken, RUN, **other)  # type: ignore[arg-type]


def _noise() -> list[tuple[str, Scenario]]:
    kinds: dict[str, dict[str, object]] = {
        "Student t of 3 degrees": {"tails": "t3"},
        "5 % spikes of 10 sd": {"tails": "spikes"},
        "builds share .2 sd": {"shared_sd": 0.2},
        "builds share .4 sd": {"shared_sd": 0.4},
        "pairs 1.5 times as noisy as known": {"sd": 1.5},
    }
    return [
        (f"2 sd, {name}{_told(broken)}", scenario)
        for name, other in kinds.items()
        for broken, scenario in _of((2.0,), **other)
    ]


def _two() -> list[tuple[str, Scenario]]:
    return [
        (f"{first:+g} and {second:+g} sd{_told(broken)}", scenario)
        for first, second in ((2.0, 2.0), (2.0, 4.0), (3.0, -2.0))
        for broken, scenario in _of((first, second))
    ]


def _none() -> list[tuple[str, Scenario]]:
    kinds: dict[str, dict[str, object]] = {
        "": {},
        ", Student t of 3 degrees": {"tails": "t3"},
        ", 5 % spikes of 10 sd": {"tails": "spikes"},
        ", builds share .2 sd": {"shared_sd": 0.2},
        ", builds share .4 sd": {"shared_sd": 0.4},
    }
    return [(f"no step{name}", Scenario(64, (), **other)) for name, other in kinds.items()]  # type: ignore[arg-type]


GROUPS: dict[str, Callable[[], list[tuple[str, Scenario]]]] = {
    "2": lambda: _by_step(2.0),
    "none": _none,
    "noise": _noise,
    "two": _two,
    "3": lambda: _by_step(3.0),
    "5": lambda: _by_step(5.0),
    "1": lambda: _by_step(1.0),
}


def _told(broken: float) -> str:
    return f", {100 * broken:.0f} % do not build" if broken else ""


def simulated_rows(group: str, replicates: int, seed: int) -> Iterator[Row]:
    """Each row as it is done; the seeds are those from `seed` on."""
    seeds = range(seed, seed + replicates)
    for name, scenario in scenarios(group):
        yield Row(name, scenario, {prior: simulate(scenario, seeds, weighted=on) for prior, on in PRIORS.items()})


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share (Wilson 1927), at 95 % unless z says otherwise."""
    share = hits / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def markdown_table(rows: Sequence[Row]) -> str:
    """Rows of one group, and all of them together. Each pair of columns is flat prior, weighted prior."""
    head = ["range", "N", "found", "", "certain but wrong", "", "builds (limit)", "", "attempts", "", "pairs", ""]
    lines = [
        f"| {' | '.join(head)} |",
        f"|---|--:|{'--:|' * (len(head) - 2)}",
        f"| | | {' | '.join(list(PRIORS) * ((len(head) - 2) // 2))} |",
    ]
    for row in rows:
        limit = math.log2(row.scenario.commits) + WITHIN
        cells = [f(row.ended[prior]) for f in (_found, _wrong, _builds(limit), _attempts, _pairs) for prior in PRIORS]
        lines.append(f"| {' | '.join([row.name, str(row.scenario.commits), *cells])} |")
    if len(rows) > 1:
        pooled = {prior: [one for row in rows for one in row.ended[prior]] for prior in PRIORS}
        cells = [f(pooled[prior]) for f in (_found, _wrong) for prior in PRIORS]
        lines.append(f"| {' | '.join(['all of these', '', *cells, *[''] * 6])} |")
    return "\n".join(lines) + "\n"


def _share(hits: Sequence[bool]) -> str:
    low, high = wilson(sum(hits), len(hits))
    return f"{100 * sum(hits) / len(hits):.1f} ({100 * low:.1f}–{100 * high:.1f})"


def _found(ended: Sequence[Ended]) -> str:
    return _share([one.held for one in ended])


def _wrong(ended: Sequence[Ended]) -> str:
    return _share([one.certain_but_wrong for one in ended])


def _builds(limit: float) -> Callable[[Sequence[Ended]], str]:
    return lambda ended: f"{np.median([one.builds for one in ended]):g} ({limit:g})"


def _attempts(ended: Sequence[Ended]) -> str:
    return f"{np.median([one.attempts for one in ended]):g}"


def _pairs(ended: Sequence[Ended]) -> str:
    return f"{np.median([one.probes for one in ended]):g}"
