"""What most benchmark pipelines do instead of measuring again: a rule on the nights alone, every finding filed.

A rule is given the values (series, nights) up to tonight, and says onsets with, for each series, 1 (slower), -1
(faster) or 0.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

FIRST_NIGHT = 20  # nights before it are not scored
FILED_ONCE = 14  # nights, from an onset on, in which the test is not filed again
PREVIOUS_LIMIT = 0.07
Z_LIMIT, Z_NIGHTS = 5.0, 40
FENCE_REACH, FENCE_NIGHTS = 1.5, 40
DELTAS_REACH, DELTAS_NIGHTS = 3.0, 30
T_LIMIT, T_WINDOW, T_OLDEST, T_LEAST_CHANGE = 7.0, 12, 14, 0.02

Moves = Iterator[tuple[int, np.ndarray]]  # onset, sign of each series
Rule = Callable[[np.ndarray], Moves]


def against_previous(values: np.ndarray) -> Moves:
    """TorchBench: the previous night alone."""
    yield _tonight(values, _outside(_changes(values)[:, -1], -PREVIOUS_LIMIT, PREVIOUS_LIMIT))


def z_score(values: np.ndarray) -> Moves:
    """conbench, over fewer nights: standard deviations from the mean."""
    before = values[:, -1 - Z_NIGHTS : -1]
    z = (values[:, -1] - before.mean(axis=1)) / before.std(axis=1, ddof=1)
    yield _tonight(values, _outside(z, -Z_LIMIT, Z_LIMIT))


def iqr_fence(values: np.ndarray) -> Moves:
    """Tukey: beyond the quartiles by so many interquartile ranges."""
    low, high = np.quantile(values[:, -1 - FENCE_NIGHTS : -1], [0.25, 0.75], axis=1)
    reach = FENCE_REACH * (high - low)
    yield _tonight(values, _outside(values[:, -1], low - reach, high + reach))


def iqr_fence_of_changes(values: np.ndarray) -> Moves:
    """rustc-perf: the upper fence of the distances between neighbouring nights."""
    changes = _changes(values)
    low, high = np.quantile(np.abs(changes[:, -DELTAS_NIGHTS:-1]), [0.25, 0.75], axis=1)
    fence = high + DELTAS_REACH * (high - low)
    yield _tonight(values, _outside(changes[:, -1], -fence, fence))


def perfherder(values: np.ndarray) -> Moves:
    """Mozilla's Perfherder: where |t| between the nights before and those from the onset on is above the limit and
    above its neighbours', the window after it full, the onset not too old."""
    nights = values.shape[1]
    oldest = max(T_WINDOW, nights - T_OLDEST)
    t = {onset: weighted_t(values, onset) for onset in range(oldest - 1, nights - T_WINDOW + 2)}
    for onset in range(oldest, nights - T_WINDOW + 1):
        before, after = values[:, onset - T_WINDOW : onset], values[:, onset : onset + T_WINDOW]
        size = np.abs(t[onset])
        highest = (size > T_LIMIT) & (size >= np.abs(t[onset - 1])) & (size >= np.abs(t[onset + 1]))
        large = np.abs(after.mean(axis=1) / before.mean(axis=1) - 1) >= T_LEAST_CHANGE
        yield onset, np.where(highest & large, np.sign(t[onset]), 0)


RULES: dict[str, Rule] = {
    f"{PREVIOUS_LIMIT:.0%} off the previous night": against_previous,
    f"z {Z_LIMIT:g} of the last {Z_NIGHTS} nights": z_score,
    f"{FENCE_REACH} IQR beyond the quartiles of {FENCE_NIGHTS} nights": iqr_fence,
    f"{DELTAS_REACH:g} IQR beyond the quartile of {DELTAS_NIGHTS - 1} changes": iqr_fence_of_changes,
    f"Perfherder's t, {T_WINDOW} and {T_WINDOW} nights, {T_LIMIT:g}": perfherder,
}


def weighted_t(values: np.ndarray, onset: int) -> np.ndarray:
    """Both means lean towards the onset, by linear weights; the variances are those about them."""

    def side(nearest_first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = nearest_first.shape[1]
        mean = np.average(nearest_first, axis=1, weights=np.arange(number, 0, -1))
        variance = ((nearest_first - mean[:, None]) ** 2).sum(axis=1) / (number - 1)
        return mean, variance / number

    earlier, error_earlier = side(values[:, max(0, onset - T_WINDOW) : onset][:, ::-1])
    later, error_later = side(values[:, onset : onset + T_WINDOW])
    return (later - earlier) / np.sqrt(error_earlier + error_later)


def file_findings(values: np.ndarray, rule: Rule, seed: int, by_test: bool) -> dict[str, Any]:
    """The alerts of a rule over all nights, as the judge reads them: one a night, sign and onset with all its tests, or
    one a test."""
    alerts: list[dict[str, Any]] = []
    filed = np.full(len(values), -FILED_ONCE)  # the last onset of each series
    for night in range(FIRST_NIGHT, values.shape[1]):
        for onset, signs in rule(values[:, : night + 1]):
            new = (signs != 0) & (onset - filed >= FILED_ONCE)
            filed[new] = onset
            for sign, kind in ((1, "regression"), (-1, "improvement")):
                tests = np.flatnonzero(new & (signs == sign)).tolist()
                for together in [[test] for test in tests] if by_test else [tests] * bool(tests):
                    alerts.append(
                        {"night": night, "kind": kind, "tests": together, "onset_lo": onset, "onset_hi": onset}
                    )
    return {"seed": seed, "alerts": alerts}


def _changes(values: np.ndarray) -> np.ndarray:
    return values[:, 1:] / values[:, :-1] - 1


def _outside(found: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    return (found > high).astype(int) - (found < low)


def _tonight(values: np.ndarray, signs: np.ndarray) -> tuple[int, np.ndarray]:
    return values.shape[1] - 1, signs
