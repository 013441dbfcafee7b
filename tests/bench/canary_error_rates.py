"""How often five canaries are said to have moved, on made-up normal nights: the figures of docs/detection.md.

python tests/bench/canary_error_rates.py [--times 10000]
"""

import argparse
from datetime import UTC, datetime, timedelta

import numpy as np
from scipy import stats

from baselines.canaries import FEWEST_NIGHTS, LEVEL_NIGHTS, LIMIT, _move, combined

CANARIES = 5
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def rate(rng: np.random.Generator, nights: int, shift: float, times: int) -> str:
    """The share of nights in which the canaries moved; `shift` in standard deviations of a night."""
    dates = [FIRST + timedelta(days=day) for day in range(nights)]
    hits = 0
    for _ in range(times):
        logs = 0.01 * rng.normal(size=(CANARIES, nights + 1))
        moves = [_move("", list(zip(dates, row[:-1], strict=True)), row[-1] + 0.01 * shift, None) for row in logs]
        hits += abs(combined([move.z for move in moves if move is not None])) > LIMIT
    low, high = stats.binomtest(hits, times).proportion_ci()
    return f"{hits / times:.4f} [{low:.4f}, {high:.4f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10_000)
    times = parser.parse_args().times
    rng = np.random.default_rng(1)
    print(f"a standard normal is beyond {LIMIT:g} in {2 * stats.norm.sf(LIMIT):.5f}")
    print("nights of the level, shift in deviations of a night: share of nights said to have moved [95 %]")
    for nights in (FEWEST_NIGHTS, LEVEL_NIGHTS):
        for shift, count in ((0.0, times), (2.0, times // 10), (3.0, times // 10)):
            print(f"{nights}, {shift:g}: {rate(rng, nights, shift, count)}", flush=True)


if __name__ == "__main__":
    main()
