"""TorchBench Score V1: a weighted geometric mean of reference time over new time; the reference itself scores 1000.

Source: the published "PyTorch Benchmark Score V1" and its reference v1.1 (pytorch/benchmark, branch v1.0). Beyond it, a
score over fewer tests than the reference has is the score over the intersection, with the weights of the intersection.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from score.coverage import Coverage, cover
from score.errors import ScoreError
from score.taxonomy import DomainOf
from torchbenchmark.experiment import Experiment

TARGET = 1000.0  # score of the reference itself
SUBSCORES = {
    f"subscore-{device}-{test}": (device, test) for device, test in product(("cpu", "cuda"), ("train", "eval"))
}

# Published: training on the CPU is the configuration of least interest and counts half of any other.
CPU_TRAIN_SHARE = 1
OTHER_SHARE = 2

# exp() of a little more overflows; times of real machines differ by far less.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Weight:
    """A test's part in the score: that of its model among all models, and its own among the tests of its model."""

    domain: float
    config: float

    @property
    def total(self) -> float:
        return self.domain * self.config


@dataclass(frozen=True)
class ScoredTest:
    experiment: Experiment
    reference: float  # seconds per iteration
    result: float  # seconds per iteration
    weight: Weight

    @property
    def log_ratio(self) -> float:
        """ln(reference / result): above zero is faster than the reference."""
        return math.log(self.reference) - math.log(self.result)


@dataclass(frozen=True)
class ScoreV1:
    total: float
    subscores: dict[str, float | None]  # by their published keys; None where no test belongs to it
    jit_speedup: float | None  # eager time over jit time, not times 1000; None without a pair
    coverage: Coverage
    jit_without_eager: tuple[str, ...]  # scored jit tests that the jit-speedup had to leave out
    tests: tuple[ScoredTest, ...]

    def as_json(self) -> dict[str, object]:
        """The published keys, and beside them the coverage."""
        return {
            "total": self.total,
            **self.subscores,
            "jit-speedup": self.jit_speedup,
            "coverage": {
                "fraction": self.coverage.fraction,
                "scored": len(self.coverage.scored),
                "reference": self.coverage.reference,
                "missing": list(self.coverage.missing),
                "extra": list(self.coverage.extra),
                "jit-without-eager": list(self.jit_without_eager),
            },
        }


def score_v1(
    reference: Mapping[str, float], results: Mapping[str, float], domain_of: DomainOf, *, strict: bool = False
) -> ScoreV1:
    """The score of `results` against `reference`, both {test id: mean seconds per iteration}.

    With `strict` a test of the reference without a result is a ScoreError instead of lost coverage.
    """
    coverage = cover(reference, results, strict=strict)
    experiments = [Experiment.parse(test) for test in coverage.scored]
    weights = weights_of(experiments, domain_of)
    tests = tuple(
        ScoredTest(experiment, reference[experiment.id], results[experiment.id], weights[experiment])
        for experiment in experiments
    )
    paired, unpaired = split_by_eager_twin(experiments, results)
    return ScoreV1(
        total=TARGET * ratio_of(math.fsum(test.weight.total * test.log_ratio for test in tests)),
        subscores={name: subscore(tests, device, test) for name, (device, test) in SUBSCORES.items()},
        jit_speedup=jit_speedup(paired, results, domain_of),
        coverage=coverage,
        jit_without_eager=tuple(experiment.id for experiment in unpaired),
        tests=tests,
    )


def weights_of(experiments: Iterable[Experiment], domain_of: DomainOf) -> dict[Experiment, Weight]:
    """Weights of a set of tests; their totals sum to 1.

    Equal shares for the categories, in each for its domains, in each for its models; a model's share goes to its tests
    by `config_share`.
    """
    experiments = list(experiments)
    domains = {model: domain_of(model) for model in sorted({experiment.model for experiment in experiments})}
    domains_in_category = Counter(domain.category for domain in set(domains.values()))
    models_in_domain = Counter(domains.values())
    shares_of_model: dict[str, int] = defaultdict(int)
    for experiment in experiments:
        shares_of_model[experiment.model] += config_share(experiment)

    def weight(experiment: Experiment) -> Weight:
        domain = domains[experiment.model]
        siblings = len(domains_in_category) * domains_in_category[domain.category] * models_in_domain[domain]
        return Weight(1 / siblings, config_share(experiment) / shares_of_model[experiment.model])

    return {experiment: weight(experiment) for experiment in experiments}


def config_share(experiment: Experiment) -> int:
    """Eager and jit count as tests of their own, with equal shares."""
    return CPU_TRAIN_SHARE if (experiment.device, experiment.test) == ("cpu", "train") else OTHER_SHARE


def subscore(tests: Iterable[ScoredTest], device: str, test: str) -> float | None:
    """As published: by domain weights alone, which do not sum to 1 over a part of the tests.

    So a uniform slowdown moves each sub-score differently, and none like the total.
    """
    log_ratios = [
        scored.weight.domain * scored.log_ratio
        for scored in tests
        if (scored.experiment.device, scored.experiment.test) == (device, test)
    ]
    return TARGET * ratio_of(math.fsum(log_ratios)) if log_ratios else None


def split_by_eager_twin(
    experiments: Iterable[Experiment], results: Mapping[str, float]
) -> tuple[list[Experiment], list[Experiment]]:
    """The jit tests whose eager twin has a result, and those whose has none."""
    jit = [experiment for experiment in experiments if experiment.backend == "jit"]
    return (
        [experiment for experiment in jit if _eager_twin(experiment).id in results],
        [experiment for experiment in jit if _eager_twin(experiment).id not in results],
    )


def jit_speedup(jit: Iterable[Experiment], results: Mapping[str, float], domain_of: DomainOf) -> float | None:
    """Weighted geometric mean of eager time over jit time within `results`, weights made anew for these tests."""
    weights = weights_of(jit, domain_of)
    if not weights:
        return None
    return ratio_of(
        math.fsum(
            weight.total * (math.log(results[_eager_twin(experiment).id]) - math.log(results[experiment.id]))
            for experiment, weight in weights.items()
        )
    )


def _eager_twin(experiment: Experiment) -> Experiment:
    return replace(experiment, backend="eager")


def ratio_of(log_ratio: float) -> float:
    """exp, or a ScoreError where that is no number a computer can hold."""
    if abs(log_ratio) > _LARGEST_EXPONENT:
        raise ScoreError(
            "results and reference are hundreds of orders of magnitude apart; check that both are in seconds"
        )
    return math.exp(log_ratio)
