"""How often a comment with a verdict calls something slower or faster, or newly failing, of equal builds: made pairs,
judged as the report of `/benchmark` judges them.

    PYTHONPATH=.:tests:tests/bot/pull_request python tests/bench/comment_error_rates.py [COMMENTS]

`two speeds`: half of the processes of either build take 10 % longer.
"""

import sys

import numpy as np
from made_results import make_header, make_process, make_request

from bot.pages.verdict import sort_tests
from bot.pull_request.answer import judged
from torchbenchmark.paired.pairs_file import SIDES, Pair, Pairs

NOISES = {
    "normal": lambda draw: draw.normal(0, 0.01),
    "Student t (3)": lambda draw: 0.01 * draw.standard_t(3),
    "exponential": lambda draw: draw.exponential(0.02),
    "two speeds": lambda draw: 0.1 * draw.integers(2) + draw.normal(0, 0.002),
}
SHAPES = ((20, 12), (5, 12), (20, 6))  # tests, and pairs of each at most


def is_wrong(noise: str, tests: int, pairs: int, seed: int) -> bool:
    """Whether one comment calls something."""
    draw = np.random.default_rng(seed)
    request = make_request([f"test_eval[m{number}-cpu-eager]" for number in range(tests)], pairs=pairs)
    measured = [
        Pair(
            test=test,
            round=number,
            index=0,
            order=SIDES,
            **{side: make_process(number, float(np.exp(NOISES[noise](draw)))) for side in SIDES},
        )
        for number in range(1, pairs + 1)
        for test in request.tests
    ]
    found = sort_tests(judged(Pairs(make_header(request), tuple(measured)), None))
    return bool(found.slower or found.faster or found.failing)


def main(comments: int) -> None:
    print("| noise | tests x pairs | wrong comments |\n|---|--:|--:|")
    for noise in NOISES:
        for tests, pairs in SHAPES:
            wrong = sum(is_wrong(noise, tests, pairs, seed) for seed in range(comments))
            print(f"| {noise} | {tests} x {pairs} | {wrong} of {comments} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
