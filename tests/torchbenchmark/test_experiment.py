"""Experiments and their ids."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import DEVICES, PRECISIONS, PRESETS, TESTS, Experiment, grid

FIELDS = st.from_regex(r"[A-Za-z0-9_.]+", fullmatch=True)
EXPERIMENTS = st.builds(
    Experiment,
    model=FIELDS,
    test=st.sampled_from(TESTS),
    device=st.sampled_from(DEVICES),
    backend=FIELDS | st.sampled_from([*PRECISIONS, *PRESETS, "bs8", "evalmode"]),
    precision=st.sampled_from(PRECISIONS),
    batch_size=st.none() | st.integers(1, 10**9 - 1),
    preset=st.sampled_from(PRESETS),
    training_mode=st.sampled_from(["", "evalmode"]),
)
PIECES = st.sampled_from(
    ["resnet50", "cpu", "cuda", "eager", "", *PRECISIONS, *PRESETS, "bs8", "bs08", "bs0", "evalmode", "x y", "é"]
)
ALMOST_IDS = st.builds(
    lambda head, fields, tail: f"{head}{'-'.join(fields)}{tail}",
    st.sampled_from(["test_eval[", "test_train[", "test_infer[", ""]),
    st.lists(PIECES, max_size=7),
    st.sampled_from(["]", "]\n", ""]),
)


@given(EXPERIMENTS)
def test_parsing_gives_back_every_experiment_that_was_formatted(experiment: Experiment) -> None:
    assert Experiment.parse(experiment.id) == experiment


@given(EXPERIMENTS, EXPERIMENTS)
def test_two_experiments_never_share_an_id(one: Experiment, other: Experiment) -> None:
    assume(one != other)
    assert one.id != other.id


@given(st.text() | ALMOST_IDS)
def test_any_text_is_either_refused_or_the_id_of_what_it_parses_to(text: str) -> None:
    try:
        experiment = Experiment.parse(text)
    except BenchmarkError:
        return
    assert experiment.id == text


def test_an_id_names_only_what_is_not_the_default() -> None:
    assert Experiment("resnet50", "eval", "cuda").id == "test_eval[resnet50-cuda-eager]"
    assert Experiment("resnet50", "eval", "cuda", batch_size=1).id == "test_eval[resnet50-cuda-eager-bs1]"
    everything = Experiment("resnet50", "train", "cpu", "inductor", "amp_bf16", 8, "tiny", "evalmode")
    assert everything.id == "test_train[resnet50-cpu-inductor-amp_bf16-bs8-tiny-evalmode]"


@pytest.mark.parametrize(
    ("test_id", "problem"),
    [
        ("resnet50", "not a test id"),
        ("test_infer[resnet50-cpu-eager]", "not a test id"),
        ("test_eval[resnet50-cpu-eager]\n", "not a test id"),
        ("test_eval[resnet50-cpu]", "at least a model, a device and a backend"),
        ("test_eval[resnet50-tpu-eager]", "device 'tpu' is not one of cpu, cuda"),
        ("test_eval[resnet50-cpu-]", "backend ''"),
        ("test_eval[resnét-cpu-eager]", "model 'resnét'"),
        ("test_eval[resnet50-cpu-eager-fast]", "'fast' is no precision, batch size"),
        ("test_eval[resnet50-cpu-eager-bs0]", "'bs0' is no precision, batch size"),
        ("test_eval[resnet50-cpu-eager-bs08]", "'bs08' is no precision, batch size"),
        ("test_eval[resnet50-cpu-eager-fp32]", r"did you mean 'test_eval\[resnet50-cpu-eager\]'"),
        ("test_eval[resnet50-cpu-eager-tiny-bs8]", r"did you mean 'test_eval\[resnet50-cpu-eager-bs8-tiny\]'"),
        ("test_eval[resnet50-cpu-eager-bs8-bs9]", "did you mean"),
    ],
)
def test_an_id_that_formatting_would_not_write_is_refused(test_id: str, problem: str) -> None:
    with pytest.raises(BenchmarkError, match=problem):
        Experiment.parse(test_id)


def test_a_batch_size_of_thousands_of_digits_is_refused_like_any_other_nonsense() -> None:
    with pytest.raises(BenchmarkError, match="is no precision, batch size"):
        Experiment.parse(f"test_eval[resnet50-cpu-eager-bs{'9' * 5000}]")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "res-net"}, "model 'res-net': use letters"),
        ({"backend": ""}, "backend ''"),
        ({"test": "infer"}, "test 'infer' is not one of train, eval"),
        ({"precision": "fp8"}, "precision 'fp8' is not one of fp32"),
        ({"preset": "huge"}, "preset 'huge' is not one of full, head, tiny"),
        ({"training_mode": "frozen"}, "training mode 'frozen' is not one of evalmode"),
        ({"batch_size": 0}, "batch size 0: must be from 1"),
        ({"batch_size": 10**9}, "batch size 1000000000: must be from 1"),
    ],
)
def test_an_experiment_without_a_valid_id_cannot_be_made(changes: dict, problem: str) -> None:
    with pytest.raises(BenchmarkError, match=problem):
        Experiment(**({"model": "resnet50", "test": "eval", "device": "cpu"} | changes))


def test_the_grid_goes_by_model_then_device_then_test() -> None:
    ids = [experiment.id for experiment in grid(["b", "a"], ["train", "eval"], ["cpu", "cuda"], preset="tiny")]
    assert ids[:5] == [
        "test_train[b-cpu-eager-tiny]",
        "test_eval[b-cpu-eager-tiny]",
        "test_train[b-cuda-eager-tiny]",
        "test_eval[b-cuda-eager-tiny]",
        "test_train[a-cpu-eager-tiny]",
    ]
    assert len(ids) == 8
