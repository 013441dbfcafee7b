"""A comparison that ends early: looked at after some rounds, with the error shared out over the looks.

Looking again and again until something shows would find something in any two equal builds. So the rounds at which is
looked are fixed before the first pair, and each look has its part of the error (Bonferroni over the looks, whatever is
found at the others). A test whose first judged channel is decided at a look leaves the later rounds.
"""

import dataclasses
from collections.abc import Collection

from torchbenchmark.paired.comparison import Comparison, Criterion, Effect, assemble, compare
from torchbenchmark.paired.noise_table import NoiseTable
from torchbenchmark.paired.pairs_file import Pairs
from torchbenchmark.paired.results import collapse, judge_pairs, measured_tests, with_left_out

# None before six pairs: where the processes of a build come at two speeds, four pairs fall alike now and then, and look
# like a sure change. docs/benchmark.md has the figures.
LOOKS = (6, 9, 12, 16, 24)
DECIDED = ("slower", "faster", "no change")


def looks_of(rounds: int) -> tuple[int, ...]:
    """After which rounds is looked; the last one is always among them."""
    return (*(look for look in LOOKS if look < rounds), rounds)


def judge_sequentially(
    pairs: Pairs, criterion: Criterion, noise: NoiseTable | None = None
) -> tuple[Comparison, Collection[str]]:
    """The verdicts so far, and the tests that are decided. It depends on the pairs alone, and so can be repeated."""
    looks = looks_of(pairs.header.rounds)
    tests = measured_tests(pairs)
    each = dataclasses.replace(
        criterion,
        level=1 - (1 - criterion.level) / len(looks),
        family=len(tests) * len(criterion.judged(pairs.header.device)),
    )
    last = max((pair.round for pair in pairs.pairs), default=0)
    open_tests = {test.base: test for test in tests}
    settled: dict[str, list[Effect]] = {}
    decided: list[str] = []
    for look in looks:
        seen = Pairs(pairs.header, tuple(pair for pair in pairs.pairs if pair.round <= look))
        found = compare([collapse(seen, test) for test in open_tests.values()], each, noise)
        for test in list(open_tests):
            effects = [_not_before(looks[0], effect) for effect in found.of_test(test)]
            settled[test] = effects
            # A round that a kill has cut is no look: it would come a second time, and is paid for once.
            if _measured_whole(pairs, test, look) and effects and effects[0].verdict in DECIDED:
                decided.append(test)
                del open_tests[test]
        if look >= last:
            break
    comparison = assemble(
        [collapse(pairs, test) for test in tests],  # failures and counts know no looks: they are exact
        [effect for test in tests for effect in settled[test.base]],
        level=criterion.level,
        family=each.family,
        method=f"Student t of the pairs or max-t bootstrap, looked at after {', '.join(map(str, looks))} pairs",
        noise=noise,
    )
    return with_left_out(comparison, pairs), decided


def _not_before(first_look: int, effect: Effect) -> Effect:
    """What was measured in fewer pairs than the first look asks for is called nothing, also where the time is up."""
    if effect.pairs >= first_look or effect.verdict not in DECIDED:
        return effect
    return effect.model_copy(update={"verdict": "inconclusive", "needs": first_look - effect.pairs, "reason": ""})


def _measured_whole(pairs: Pairs, test: str, number: int) -> bool:
    """Whether all pairs that round `number` has of a test are there."""
    return sum(pair.round == number for pair in pairs.of_test(test)) >= pairs.header.processes


def judge(pairs: Pairs, criterion: Criterion, noise: NoiseTable | None) -> tuple[Comparison, Collection[str]]:
    """The verdicts so far, and the tests that need no more pairs: none unless it was asked to end early."""
    if pairs.header.sequential:
        return judge_sequentially(pairs, criterion, noise)
    return judge_pairs(pairs, criterion, noise), ()
