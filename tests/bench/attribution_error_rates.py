"""How often `torchbench profile` tells something of equal sides, and how much it takes for an operator to be told: made
profiles, 99 %.

    PYTHONPATH=.:tests python tests/bench/attribution_error_rates.py [REPETITIONS]

Every name has noise of about 3 % from process to process; `unlike`: how far the names differ in that, `host`: how far
whole processes do (logarithms).
"""

import random
import sys

from made_profiles import side

from torchbenchmark.profiles.difference import TestProfiles, attribute
from torchbenchmark.profiles.series import ProfiledPair

NOISE = 0.03
PLANTED = 1.3  # times, of the first operator


def told(seed: int, names: int, pairs: int, unlike: float, host: float, factor: float = 1.0) -> list[str]:
    generator = random.Random(seed)
    base = {f"aten::op{number}": (1, generator.lognormvariate(3, 1.5)) for number in range(names)}
    head = {**base, "aten::op0": (1, factor * base["aten::op0"][1])}
    noise = [NOISE * generator.lognormvariate(0, unlike) for _ in range(names + 2)]

    def process(operators):
        speed, drawn = generator.lognormvariate(0, host), iter(noise)
        return side(lambda: speed * generator.lognormvariate(0, next(drawn)), operators)

    made = tuple(ProfiledPair(process(base), process(head)) for _ in range(pairs))
    (one,) = attribute([TestProfiles("test", "test", "cpu", made)]).tests
    return [row.name for _, row in one.found()]


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    for names in (6, 30):
        for pairs in (3, 4, 6):
            for unlike, host in ((0.0, 0.0), (0.7, 0.0), (0.0, 0.1), (0.7, 0.1)):
                options = (names, pairs, unlike, host)
                false = sum(bool(told(seed, *options)) for seed in range(repetitions)) / repetitions
                found = sum("aten::op0" in told(seed, *options, PLANTED) for seed in range(repetitions)) / repetitions
                print(
                    f"{names:3d} names {pairs} pairs, unlike {unlike:.1f}, host {host:.1f}: equal sides tell something "
                    f"in {false:.1%}, an operator that takes {PLANTED:g} times as long is told in {found:.0%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
