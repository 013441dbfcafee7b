"""Score V1 against the published formula: worked by hand, by a golden case, and by its properties."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from score.errors import ScoreError
from score.inputs import find_reference
from score.taxonomy import Domain, published_taxonomy
from score.v1 import SUBSCORES, score_v1, weights_of
from torchbenchmark.experiment import Experiment
from torchbenchmark.formats import read_latencies

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "v1_score"

# Worked by hand from the formula: three models in two categories, weights as in the comments.
WORKED = {  # test: (reference, new) in seconds
    "test_train[alexnet-cpu-eager]": (1.0, 1.0),  # 1/4 * 1/9
    "test_eval[alexnet-cpu-eager]": (0.5, 0.5),  # 1/4 * 2/9
    "test_train[alexnet-cuda-eager]": (0.2, 0.2),  # 1/4 * 2/9
    "test_eval[alexnet-cuda-eager]": (0.1, 0.11),  # 1/4 * 2/9
    "test_eval[alexnet-cuda-jit]": (0.08, 0.08),  # 1/4 * 2/9
    "test_eval[yolov3-cuda-eager]": (0.4, 0.428),  # 1/4 * 1
    "test_train[hf_Bert-cuda-eager]": (0.3, 0.24),  # 1/2 * 1/2
    "test_eval[hf_Bert-cuda-eager]": (0.06, 0.06),  # 1/2 * 1/2
}
REFERENCE = {test: reference for test, (reference, _) in WORKED.items()}
NEW = {test: new for test, (_, new) in WORKED.items()}
DOMAINS = {
    "alexnet": Domain("COMPUTER_VISION", "CLASSIFICATION"),
    "yolov3": Domain("COMPUTER_VISION", "SEGMENTATION"),
    "hf_Bert": Domain("NLP", "LANGUAGE_MODELING"),
}
PUBLISHED_KEYS = [
    "total",
    "subscore-cpu-train",
    "subscore-cpu-eval",
    "subscore-cuda-train",
    "subscore-cuda-eval",
    "jit-speedup",
]


def domain_of(model: str) -> Domain:
    return DOMAINS[model]


def numbers(reference: dict[str, float], results: dict[str, float]) -> dict[str, object]:
    """The six published numbers, models grouped as published."""
    answer = score_v1(reference, results, published_taxonomy().domain_of).as_json()
    return {key: answer[key] for key in PUBLISHED_KEYS}


# Sets of tests over up to six models in up to three categories.
MODELS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(Domain, st.sampled_from(["CV", "NLP", "RL"]), st.sampled_from(["X", "Y"])),
    min_size=1,
)
CONFIGS = st.sets(
    st.tuples(st.sampled_from(["train", "eval"]), st.sampled_from(["cpu", "cuda"]), st.sampled_from(["eager", "jit"])),
    min_size=1,
)
SECONDS = st.floats(min_value=1e-6, max_value=1e4)


@st.composite
def sets_of_tests(draw: st.DrawFn) -> tuple[list[Experiment], dict[str, Domain]]:
    domains = draw(MODELS)
    experiments = [
        Experiment(model, test, device, backend)
        for model in sorted(domains)
        for test, device, backend in sorted(draw(CONFIGS))
    ]
    return experiments, domains


def test_the_worked_example_gives_the_published_numbers() -> None:
    answer = score_v1(REFERENCE, NEW, domain_of).as_json()
    assert answer["total"] == pytest.approx(1034.1462589254738, rel=1e-9)
    assert answer["subscore-cpu-train"] == 1000
    assert answer["subscore-cpu-eval"] == 1000
    assert answer["subscore-cuda-train"] == pytest.approx(1118.033988749895, rel=1e-9)
    assert answer["subscore-cuda-eval"] == pytest.approx(960.0765990084707, rel=1e-9)
    assert answer["jit-speedup"] == pytest.approx(1.375, rel=1e-9)


def test_the_worked_example_weighs_each_test_as_worked_by_hand() -> None:
    weights = weights_of([Experiment.parse(test) for test in WORKED], domain_of)
    by_test = {experiment.id: weight.total for experiment, weight in weights.items()}
    expected = [1 / 36, 1 / 18, 1 / 18, 1 / 18, 1 / 18, 1 / 4, 1 / 4, 1 / 4]
    assert [by_test[test] for test in WORKED] == pytest.approx(expected, rel=1e-12)


def test_a_reference_against_itself_scores_exactly_1000_with_its_own_jit_speedup() -> None:
    answer = score_v1(REFERENCE, REFERENCE, domain_of).as_json()
    assert [answer[key] for key in PUBLISHED_KEYS[:-1]] == [1000.0] * 5
    assert answer["jit-speedup"] == pytest.approx(1.25, rel=1e-12)


def test_the_keys_are_the_published_ones_and_the_coverage() -> None:
    assert list(score_v1(REFERENCE, NEW, domain_of).as_json()) == [*PUBLISHED_KEYS, "coverage"]


def test_the_golden_case_of_the_published_reference_agrees_in_all_six_numbers() -> None:
    golden = SHARED / "golden.json"
    if not golden.is_file():
        pytest.skip(f"the golden case lies beside the repository, and {golden} is absent")
    cases = json.loads(golden.read_text())
    reference = read_latencies(find_reference("v1.1"))
    assert cases
    for case in cases:
        assert numbers(reference, case["tests"]) == pytest.approx(case["expected"], rel=1e-9)


def test_the_published_reference_was_carried_over_bit_by_bit() -> None:
    original = SHARED / "reference-v1.1.yaml"
    if not original.is_file():
        pytest.skip(f"the original lies beside the repository, and {original} is absent")
    assert read_latencies(find_reference("v1.1")) == read_latencies(original)


def test_the_published_reference_has_245_tests_that_all_have_a_domain_and_weigh_1() -> None:
    reference = read_latencies(find_reference("v1.1"))
    weights = weights_of(map(Experiment.parse, reference), published_taxonomy().domain_of)
    assert len(weights) == 245
    assert math.fsum(weight.total for weight in weights.values()) == pytest.approx(1, abs=1e-12)
    # Known oddity of the published grouping: vovnet, alone in its domain, weighs as much as 17 classifiers.
    of_model = {experiment.model: weight.domain for experiment, weight in weights.items()}
    assert of_model["timm_vovnet"] == pytest.approx(17 * of_model["resnet50"])


def test_the_published_reference_with_every_time_a_tenth_longer_scores_909() -> None:
    reference = read_latencies(find_reference("v1.1"))
    slower = {test: 1.1 * seconds for test, seconds in reference.items()}
    answer = numbers(reference, slower)
    assert answer["total"] == pytest.approx(909.0909090909091, rel=1e-12)
    # The published sub-scores are not normalised, and so move by other amounts.
    assert answer["subscore-cpu-train"] == pytest.approx(941, abs=0.5)
    assert answer["subscore-cuda-eval"] == pytest.approx(878, abs=0.5)
    assert answer["jit-speedup"] == pytest.approx(numbers(reference, reference)["jit-speedup"], rel=1e-12)


@pytest.mark.parametrize(
    ("slow", "total"),
    [
        # 6 categories; 1 domain with 2 models; of the model's 1 + 2 + 2 + 2 shares: 2 ** -(1/6 * 1/2 * 2/7)
        ("test_eval[dlrm-cuda-eager]", 983.63193244419),
        # 2 domains with 1 model each; training on the CPU has 1 share of 7: 2 ** -(1/6 * 1/2 * 1/7)
        ("test_train[tts_angular-cpu-eager]", 991.7822001045341),
    ],
)
def test_one_test_of_the_published_reference_that_takes_twice_its_time_moves_the_total_by_its_weight(
    slow: str, total: float
) -> None:
    reference = read_latencies(find_reference("v1.1"))
    scored = score_v1(reference, reference | {slow: 2 * reference[slow]}, published_taxonomy().domain_of)
    assert scored.total == pytest.approx(total, rel=1e-12)


@given(sets_of_tests())
def test_the_weights_of_any_set_of_tests_sum_to_1(drawn: tuple[list[Experiment], dict[str, Domain]]) -> None:
    experiments, domains = drawn
    weights = weights_of(experiments, domains.__getitem__)
    assert set(weights) == set(experiments)
    assert math.fsum(weight.total for weight in weights.values()) == pytest.approx(1, abs=1e-12)
    assert all(weight.total > 0 for weight in weights.values())


@given(sets_of_tests(), st.data(), st.floats(min_value=0.01, max_value=100))
def test_a_uniform_slowdown_moves_the_total_by_its_inverse_and_leaves_the_jit_speedup(
    drawn: tuple[list[Experiment], dict[str, Domain]], data: st.DataObject, factor: float
) -> None:
    experiments, domains = drawn
    reference = {experiment.id: data.draw(SECONDS) for experiment in experiments}
    slowed = score_v1(reference, {test: factor * s for test, s in reference.items()}, domains.__getitem__)
    itself = score_v1(reference, reference, domains.__getitem__)
    assert slowed.total == pytest.approx(1000 / factor, rel=1e-9)
    assert (slowed.jit_speedup is None) == (itself.jit_speedup is None)
    if itself.jit_speedup is not None:
        assert slowed.jit_speedup == pytest.approx(itself.jit_speedup, rel=1e-9)


@given(sets_of_tests(), st.data())
def test_score_and_counterscore_are_inverse(
    drawn: tuple[list[Experiment], dict[str, Domain]], data: st.DataObject
) -> None:
    experiments, domains = drawn
    first = {experiment.id: data.draw(SECONDS) for experiment in experiments}
    second = {experiment.id: data.draw(SECONDS) for experiment in experiments}
    there = score_v1(first, second, domains.__getitem__)
    back = score_v1(second, first, domains.__getitem__)
    assert there.total * back.total == pytest.approx(1e6, rel=1e-9)
    for name in SUBSCORES:
        assert (there.subscores[name] is None) == (back.subscores[name] is None)
        if there.subscores[name] is not None:
            assert there.subscores[name] * back.subscores[name] == pytest.approx(1e6, rel=1e-9)


def test_a_missing_test_is_named_and_the_rest_scores_as_if_it_had_never_been_in_the_reference() -> None:
    missing = "test_eval[yolov3-cuda-eager]"
    results = {test: s for test, s in NEW.items() if test != missing}
    smaller = {test: s for test, s in REFERENCE.items() if test != missing}
    partial = score_v1(REFERENCE, results, domain_of)
    assert partial.coverage.missing == (missing,)
    assert partial.coverage.fraction == 7 / 8
    assert partial.total == score_v1(smaller, results, domain_of).total
    # COMPUTER_VISION has one domain left, so alexnet weighs 1/2 and its eval on the GPU 1/9.
    assert partial.total == pytest.approx(1000 * 1.25 ** (1 / 4) * 1.1 ** (-1 / 9), rel=1e-12)


def test_strict_makes_every_missing_test_an_error_that_names_it() -> None:
    gone = ["test_eval[hf_Bert-cuda-eager]", "test_eval[yolov3-cuda-eager]"]
    results = {test: s for test, s in NEW.items() if test not in gone}
    with pytest.raises(ScoreError, match="2 of 8 tests") as refusal:
        score_v1(REFERENCE, results, domain_of, strict=True)
    assert all(test in str(refusal.value) for test in gone)


def test_strict_does_not_mind_extra_tests() -> None:
    extra = "test_train[hf_Bert-cpu-eager]"
    scored = score_v1(REFERENCE, NEW | {extra: 1.0}, domain_of, strict=True)
    assert scored.coverage.extra == (extra,)


def test_an_extra_test_is_named_and_changes_no_number() -> None:
    extra = {"test_eval[yolov3-cpu-jit]": 3.0, "test_eval[never_heard_of-cpu-eager]": 1.0}
    with_extra = score_v1(REFERENCE, NEW | extra, domain_of)
    assert with_extra.coverage.extra == tuple(sorted(extra))
    without = score_v1(REFERENCE, NEW, domain_of).as_json()
    assert {key: with_extra.as_json()[key] for key in PUBLISHED_KEYS} == {key: without[key] for key in PUBLISHED_KEYS}


def test_no_common_test_is_an_error() -> None:
    with pytest.raises(ScoreError, match="no test of the 1 results is among the 8 of the reference"):
        score_v1(REFERENCE, {"test_eval[alexnet-cpu-eager-tiny]": 1.0}, domain_of)


def test_a_subscore_without_a_test_is_null_and_no_made_up_1000() -> None:
    answer = score_v1(
        {"test_eval[hf_Bert-cuda-eager]": 1.0}, {"test_eval[hf_Bert-cuda-eager]": 2.0}, domain_of
    ).as_json()
    assert answer["subscore-cuda-eval"] == pytest.approx(500)
    assert [answer[key] for key in PUBLISHED_KEYS[1:4]] == [None, None, None]
    assert answer["jit-speedup"] is None


def test_a_jit_test_whose_eager_twin_has_no_result_is_left_out_of_the_jit_speedup_and_named() -> None:
    paired, alone = "test_eval[alexnet-cuda-jit]", "test_eval[yolov3-cuda-jit]"
    reference = REFERENCE | {alone: 1.0}
    results = {test: s for test, s in NEW.items() if test != "test_eval[yolov3-cuda-eager]"} | {alone: 1.0}
    scored = score_v1(reference, results, domain_of)
    assert scored.jit_speedup == pytest.approx(NEW["test_eval[alexnet-cuda-eager]"] / NEW[paired], rel=1e-12)
    assert scored.as_json()["coverage"]["jit-without-eager"] == [alone]
    assert alone in scored.coverage.scored


def test_the_jit_speedup_is_null_when_no_jit_test_has_its_eager_twin() -> None:
    lonely = {"test_eval[alexnet-cuda-jit]": 1.0}
    scored = score_v1(lonely, lonely, domain_of)
    assert scored.jit_speedup is None
    assert scored.jit_without_eager == tuple(lonely)


def test_the_jit_speedup_weighs_anew_over_the_jit_tests_alone() -> None:
    # alexnet: CPU training counts half of the GPU's, so 1/3 and 2/3; two categories at 1/2 each; yolov3 has no jit.
    times = {
        "test_train[alexnet-cpu-eager]": 8.0,
        "test_train[alexnet-cpu-jit]": 1.0,
        "test_train[alexnet-cuda-eager]": 2.0,
        "test_train[alexnet-cuda-jit]": 2.0,
        "test_eval[yolov3-cuda-eager]": 1.0,
        "test_eval[hf_Bert-cuda-eager]": 4.0,
        "test_eval[hf_Bert-cuda-jit]": 1.0,
    }
    scored = score_v1(times, times, domain_of)
    assert scored.jit_speedup == pytest.approx(8 ** (1 / 6) * 4 ** (1 / 2), rel=1e-12)


def test_other_compilers_than_jit_score_like_any_test_but_are_no_part_of_the_jit_speedup() -> None:
    compiled = {"test_eval[hf_Bert-cuda-inductor]": 0.01}
    scored = score_v1(REFERENCE | compiled, NEW | compiled, domain_of)
    assert scored.jit_speedup == pytest.approx(1.375, rel=1e-12)
    assert (scored.coverage.fraction, scored.jit_without_eager) == (1.0, ())


def test_suffixes_of_an_id_belong_to_the_test_and_neither_hide_nor_feign_device_or_backend() -> None:
    domains = {"train_cpu": Domain("CV", "X")}
    reference = {
        "test_eval[train_cpu-cuda-jit-bf16-bs8-tiny]": 1.0,
        "test_eval[train_cpu-cuda-eager-bf16-bs8-tiny]": 3.0,
    }
    results = {test: 2 * seconds for test, seconds in reference.items()}
    scored = score_v1(reference, results, domains.__getitem__)
    assert scored.jit_speedup == pytest.approx(3.0)
    assert [name for name, value in scored.subscores.items() if value is not None] == ["subscore-cuda-eval"]


def test_times_hundreds_of_orders_apart_are_an_error_and_no_infinite_score() -> None:
    test = "test_eval[hf_Bert-cuda-eager]"
    for reference, result in ((1e-300, 1e300), (1e300, 1e-300)):
        with pytest.raises(ScoreError, match="orders of magnitude"):
            score_v1({test: reference}, {test: result}, domain_of)
