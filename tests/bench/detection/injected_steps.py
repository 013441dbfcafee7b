"""Steps, drifts and spikes put into real stretches in which nothing happens: power that owes nothing to any label."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import evalkit
import numpy as np
from markdown_page import table, verdict, with_interval
from scores import rate_interval, sandmark

from baselines.screening.screen import screen_night
from baselines.screening.shifts import KNOBS, Knob, Shift, replay
from baselines.suspects import LEAST_SCORE

CLEAR, LONGEST_WITHOUT = 10, 60  # nights to the next label, and the shortest stretch that is taken
BEFORE, AFTER = 20, 14  # nights of a stretch that lie before and after what is put in, at least
SIZES, CASES, SEED = (0.01, 0.02, 0.03, 0.05), 200, 5
HORIZONS = (3, 7, 14)  # nights, that of the onset among them
WITHIN = 5  # nights by which the reported onset may be off
NOISE_CLASSES = {
    "<= .25 %": (0, 0.0025),
    ".25 - .5 %": (0.0025, 0.005),
    ".5 - 1 %": (0.005, 0.01),
    "> 1 %": (0.01, 9.0),
}
POWER = 0.9
OF_SPIKE = 0.1
DRIFT, DRIFT_NIGHTS, FLAGGED_BEFORE, CALM = 0.005, 20, 0.04, 0.01
SPIKES = {"one night, 10 x": (10, 1), "one night, 2 x": (2, 1), "two nights, 10 x": (10, 2), "two nights, 2 x": (2, 2)}


@dataclass(frozen=True)
class Stretch:
    series: str
    logs: np.ndarray

    @property
    def scale(self) -> float:
        """Robust sd of a night, from differences of neighbours."""
        return 1.4826 * float(np.median(np.abs(np.diff(self.logs)))) / np.sqrt(2)


@dataclass(frozen=True)
class Case:
    stretch: Stretch
    onset: int
    size: float  # relative change: .05 is 5 % slower
    logs: np.ndarray


def measure(data: Path, cache: Path) -> str:
    labelled = sandmark(data)
    stretches = unlabelled_stretches(labelled)
    years = sum(len(stretch.logs) for stretch in stretches) / 365
    scales = [stretch.scale for stretch in stretches]
    low, middle, high = 100 * np.quantile(scales, [0.1, 0.5, 0.9])
    calm = [stretch for stretch in stretches if stretch.scale <= CALM]
    return (
        f"{len(stretches)} stretches of at least {LONGEST_WITHOUT} nights with no label within {CLEAR}, {years:.1f} "
        f"years; noise (robust sd of neighbouring nights) {low:.2f} / {middle:.2f} / {high:.2f} % at the quantiles "
        f"10 / 50 / 90. {CASES} cases a size, half of them faster, from a random night on. Found: a report of the same "
        f"sign, onset within {WITHIN} nights, not more than so many nights after the first one of the new level, that "
        "one counted.\n\n"
        f"{table(found_by_size(stretches))}\n"
        f"The size that is found in {POWER:.0%}, default, {CASES} cases a size and class, interpolated on its "
        f"logarithm, and the shares found within {HORIZONS[-1]} nights:\n\n{table(power_by_noise(stretches))}\n"
        f"Drift of {DRIFT:.1%} a night for {DRIFT_NIGHTS} nights, in stretches with noise <= {CALM:.0%}; and spikes. "
        f"Of a spike: an onset within {WITHIN} nights that is not reported without it; as the spike, where the effect "
        f"is at least {OF_SPIKE:.0%} of it, or as a small step that it tips over the limit.\n\n"
        f"{table(drifts_and_spikes(stretches, calm))}"
    )


def unlabelled_stretches(labelled: evalkit.Data) -> list[Stretch]:
    found = []
    for series in labelled.names:
        logs = labelled.y[series]
        free = np.ones(len(logs), dtype=int)
        for label in labelled.L[series]:
            free[max(0, label[0] - CLEAR) : label[0] + CLEAR + 1] = 0
        edges = np.diff(np.concatenate([[0], free, [0]]))
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        found += [
            Stretch(series, logs[begin:end])
            for begin, end in zip(begins, ends, strict=True)
            if end - begin >= LONGEST_WITHOUT
        ]
    return found


def cases(stretches: Sequence[Stretch], size: float, number: int = CASES) -> list[Case]:
    """Steps of both signs; the same stretches and nights at every size."""
    rng = np.random.default_rng(SEED)
    made = []
    for turn in range(number):
        stretch = stretches[rng.integers(len(stretches))]
        onset = int(rng.integers(BEFORE, len(stretch.logs) - AFTER))
        relative = size if turn % 2 == 0 else 1 / (1 + size) - 1
        logs = stretch.logs[: onset + AFTER].copy()
        logs[onset:] += np.log1p(relative)
        made.append(Case(stretch, onset, relative, logs))
    return made


def nights_to_find(case: Case, reports: Sequence[Shift]) -> int:
    """Of the new level, that on which it is reported among them; a large number where it is not."""
    right = [
        report.reported - case.onset + 1
        for report in reports
        if abs(report.onset - case.onset) <= WITHIN and report.reported >= case.onset and report.effect * case.size > 0
    ]
    return min(right, default=10**6)


def found_within(made: Sequence[Case], nights: Sequence[int], horizon: int) -> str:
    names = sorted({case.stretch.series for case in made})
    place = {name: i for i, name in enumerate(names)}
    hits, of = np.zeros(len(names)), np.zeros(len(names))
    for case, taken in zip(made, nights, strict=True):
        of[place[case.stretch.series]] += 1
        hits[place[case.stretch.series]] += taken <= horizon
    return with_interval(*rate_interval(hits, of))


def found_by_size(stretches: Sequence[Stretch]) -> list[list[str]]:
    rows = [["knob", "nights", *(f"{size:.0%}" for size in SIZES), "reports a year without a step"]]
    years = sum(len(stretch.logs) for stretch in stretches) / 365
    for name, knob in KNOBS.items():
        quiet = sum(map(len, replay([stretch.logs for stretch in stretches], knob))) / years
        columns = []
        for size in SIZES:
            made = cases(stretches, size)
            taken = list(map(nights_to_find, made, replay([case.logs for case in made], knob)))
            columns.append([found_within(made, taken, horizon) for horizon in HORIZONS])
        for i, horizon in enumerate(HORIZONS):
            last = f"{quiet:.2f}" if i == 0 else ""
            rows.append([name if i == 0 else "", f"{horizon}", *(column[i] for column in columns), last])
    return rows


def power_by_noise(stretches: Sequence[Stretch]) -> list[list[str]]:
    rows = [["noise", "stretches", *(f"within {horizon} nights" for horizon in HORIZONS), "shares at 1, 2, 3, 5 %"]]
    for name, (above, most) in NOISE_CLASSES.items():
        members = [stretch for stretch in stretches if above < stretch.scale <= most]
        shares = np.zeros((len(SIZES), len(HORIZONS)))
        for i, size in enumerate(SIZES):
            made = cases(members, size)
            taken = np.array(list(map(nights_to_find, made, replay([case.logs for case in made], KNOBS["default"]))))
            shares[i] = [np.mean(taken <= horizon) for horizon in HORIZONS]
        powers = [size_of_power(shares[:, j]) for j in range(len(HORIZONS))]
        rows.append([name, str(len(members)), *powers, " ".join(f"{share:.2f}" for share in shares[:, -1])])
    return rows


def size_of_power(shares: np.ndarray) -> str:
    """Where the share reaches .9 and stays, linear in ln size between the sizes that were tried."""
    below = np.flatnonzero(shares < POWER)
    if not len(below):
        return f"<= {SIZES[0]:.0%}"
    if below[-1] == len(SIZES) - 1:
        return f"> {SIZES[-1]:.0%}"
    i = int(below[-1])
    part = (POWER - shares[i]) / (shares[i + 1] - shares[i])
    return f"{100 * np.exp(np.log(SIZES[i]) + part * np.log(SIZES[i + 1] / SIZES[i])):.1f} %"


def drifts_and_spikes(stretches: Sequence[Stretch], calm: Sequence[Stretch]) -> list[list[str]]:
    head = ["knob", f"drift reported before {FLAGGED_BEFORE:.0%}", "reported within 14 nights"]
    head.append(f"reported or among the suspects before {FLAGGED_BEFORE:.0%}")
    rows = [[*head, *(f"reported: {name}" for name in SPIKES)]]
    in_time = int(np.log(1 + FLAGGED_BEFORE) / np.log(1 + DRIFT))  # nights of the drift
    for name, knob in KNOBS.items():
        made = [with_drift(case) for case in cases(calm, 0.0)]
        taken = list(map(nights_to_flag, made, replay([case.logs for case in made], knob)))
        columns = [found_within(made, taken, horizon) for horizon in (in_time, AFTER)]
        suspected = nights_to_suspect(made, knob, in_time)
        columns.append(found_within(made, [min(both) for both in zip(taken, suspected, strict=True)], in_time))
        plain = cases(stretches, 0.0)
        without = replay([case.logs for case in plain], knob)
        for factor, nights in SPIKES.values():
            with_it = replay([with_spike(case, factor, nights) for case in plain], knob)
            large, small = (
                np.mean(
                    [spike_reported(*of_case, factor, large) for of_case in zip(plain, with_it, without, strict=True)]
                )
                for large in (True, False)
            )
            must = f" {verdict(large == 0)}" if (factor, nights) == (10, 1) else ""
            columns.append(f"{large:.3f}{must}; tipped over {small:.3f}")
        rows.append([name, *columns])
    return rows


def with_drift(case: Case) -> Case:
    """Faster in every second stretch drawn, by where it begins."""
    sign = 1 if case.onset % 2 else -1
    nights = np.clip(np.arange(len(case.logs)) - case.onset + 1, 0, DRIFT_NIGHTS)
    return replace(case, size=sign * DRIFT, logs=case.logs + sign * nights * np.log1p(DRIFT))


def nights_to_flag(case: Case, reports: Sequence[Shift]) -> int:
    """As nights_to_find; a drift has no one onset, so that any night of it will do."""
    right = [
        report.reported - case.onset + 1
        for report in reports
        if report.reported >= case.onset and report.onset >= case.onset - WITHIN and report.effect * case.size > 0
    ]
    return min(right, default=10**6)


def nights_to_suspect(made: Sequence[Case], knob: Knob, nights: int) -> list[int]:
    """As nights_to_flag, of the first of so many nights that has the series among its suspects, the right way."""
    first = [10**6] * len(made)
    for night in reversed(range(nights)):
        for index, found in enumerate(screen_night([case.logs[: case.onset + night + 1] for case in made], knob)):
            if found is not None and found.score >= LEAST_SCORE and found.effect * made[index].size > 0:
                first[index] = night + 1
    return first


def with_spike(case: Case, factor: float, nights: int) -> np.ndarray:
    logs = case.logs.copy()
    logs[case.onset : case.onset + nights] += np.log(factor)
    return logs


def spike_reported(case: Case, reports: Sequence[Shift], without: Sequence[Shift], factor: float, large: bool) -> bool:
    """`large`: whether the spike itself is meant, or a small step."""

    def near(shift: Shift, position: int) -> bool:
        return abs(shift.onset - position) <= WITHIN

    return any(
        near(report, case.onset)
        and (abs(report.effect) >= OF_SPIKE * np.log(factor)) == large
        and not any(near(other, report.onset) for other in without)
        for report in reports
    )
