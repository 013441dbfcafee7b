"""How often equal builds are called different if zygotes are kept, and if every pair has fresh ones.

The pairs of one round share their zygotes: whoever takes them for replicates counts one address layout many times over.
One A/A study of N rounds with N processes gives both: N comparisons with fixed zygotes (the pairs within a round), and
N with fresh ones (the pairs of one index across the rounds). Beside these, comparisons are simulated from the levels
that the study measured. Prints both rates; docs/measuring.md has those of the machine named there.

    python tests/bench/aa_zygotes.py --into FOLDER [--rounds 10] [--tests dlrm] [--simulated 400]
"""

import argparse
import math
import subprocess
import sys
from pathlib import Path

import numpy

from torchbenchmark.paired.comparison import Criterion, compare
from torchbenchmark.paired.noise_table import SeriesNoise
from torchbenchmark.paired.pair_series import PairOfValues, TestPairs
from torchbenchmark.paired.pairs_file import Pairs, read_pairs
from torchbenchmark.paired.results import noise_table_of
from torchbenchmark.paired.values import values_of

LEVELS = (0.99, 0.95)


def measure(into: Path, rounds: int, tests: list[str], device: str) -> Pairs:
    """The study; one that is there already is used again."""
    out = into / "aa.jsonl"
    command = [sys.executable, "-m", "torchbenchmark", "doctor", "--aa", "--pairs", str(rounds)]
    command += ["--processes", str(rounds), "--budget", "0.1", "--device", device, "--out", str(out), "--resume"]
    command += ["--table", str(into / "noise.json")]
    for test in tests:
        command += ["--tests", test]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_pairs(out)


def real(pairs: Pairs, level: float, channels: tuple[str, ...], *, fresh: bool) -> list[bool]:
    """Whether each comparison called something."""
    device = pairs.header.device
    calls = []
    for number in range(pairs.header.rounds):
        tests = []
        for test in pairs.header.tests:
            mine = [
                PairOfValues(values_of(pair.base).locations, values_of(pair.head).locations)
                for pair in pairs.of_test(test.base)
                if pair.base and pair.head and pair.ok and (pair.index if fresh else pair.round - 1) == number
            ]
            tests.append(TestPairs(test.base, test.base, device, tuple(mine)))
        calls.append(called(tests, level, channels))
    return calls


def called(tests: list[TestPairs], level: float, channels: tuple[str, ...]) -> bool:
    found = compare(tests, Criterion(level=level, channels=channels))
    return any(effect.verdict in ("slower", "faster") for effect in found.effects)


def simulated(
    rows: list[SeriesNoise], pairs: int, count: int, level: float, channels: tuple[str, ...], *, fresh: bool, seed: int
) -> list[bool]:
    """The same of made-up pairs with the measured levels; the iterations of a process are in its level."""
    generator = numpy.random.default_rng(seed)
    calls = []
    for _ in range(count):
        made: dict[str, list[dict[str, tuple[float, float]]]] = {}
        for row in rows:
            zygotes = generator.normal(0, row.sd_zygote or 0.0, (2, pairs if fresh else 1))
            sides = zygotes + generator.normal(0, row.sd_process or 0.0, (2, pairs))
            several = made.setdefault(row.test, [{} for _ in range(pairs)])
            for index in range(pairs):
                several[index][row.channel] = (math.exp(sides[0, index]), math.exp(sides[1, index]))
        tests = [TestPairs(test, test, "cpu", tuple(map(as_pair, several))) for test, several in made.items()]
        calls.append(called(tests, level, channels))
    return calls


def as_pair(both: dict[str, tuple[float, float]]) -> PairOfValues:
    """From (base, head) per channel."""
    return PairOfValues(
        {name: one for name, (one, _) in both.items()}, {name: head for name, (_, head) in both.items()}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tests", action="append")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--simulated", type=int, default=400)
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    pairs = measure(options.into, options.rounds, options.tests or ["dlrm"], options.device)
    channels = Criterion().judged(options.device)
    rows = [row for row in noise_table_of(pairs).series if row.channel in channels]
    for row in rows:
        print(f"{row.test} {row.channel}: zygote {row.sd_zygote or 0:.2%}, process {row.sd_process or 0:.2%}")
    print(f"comparisons of {options.rounds} pairs of equal builds that called something:")
    for level in LEVELS:
        for fresh in (False, True):
            kind = "fresh zygotes" if fresh else "fixed zygotes"
            seen = real(pairs, level, channels, fresh=fresh)
            made = simulated(rows, options.rounds, options.simulated, level, channels, fresh=fresh, seed=1)
            told = f"{sum(seen)} of {len(seen)} real, {sum(made) / len(made):.1%} of {len(made)} simulated"
            print(f"  at {level:.0%}, {kind}: {told}")


if __name__ == "__main__":
    main()
