"""The pieces of a child: statistics, outcomes, checks."""

import math

import pytest
import torch

from torchbenchmark.worker.backends import apply_backend
from torchbenchmark.worker.measure import of_the_first_batch, summarise
from torchbenchmark.worker.outcome import NonFiniteOutput, classify
from torchbenchmark.worker.verify import require_finite


def test_a_channel_carries_median_mean_and_interpolated_20th_percentile():
    summary = summarise("latency", [5.0, 1.0, 2.0, 3.0, 4.0, 21.0])
    assert summary == {"unit": "s", "samples": [5.0, 1.0, 2.0, 3.0, 4.0, 21.0], "median": 3.5, "mean": 6.0, "p20": 2.0}


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [math.inf]])
def test_a_channel_without_finite_samples_is_refused(samples):
    with pytest.raises(ValueError, match="channel latency"):
        summarise("latency", samples)


@pytest.mark.parametrize(
    ("error", "stage", "status"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"), "warm-up", "oom"),
        (MemoryError(), "build", "oom"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "warm-up", "oom"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "warm-up", "oom"),
        (RuntimeError("expected scalar type Float but found Half"), "warm-up", "error"),
        (SystemExit(3), "build", "error"),
        (NotImplementedError("this model has no training"), "build", "unsupported"),
        (NotImplementedError("Could not run 'aten::nms' with arguments from the 'CPU' backend"), "build", "error"),
        (NotImplementedError("not now"), "first batch", "error"),
        (NonFiniteOutput("the loss is not finite"), "verify", "accuracy_fail"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_exception_has_one_status(error, stage, status):
    found, reason = classify(error, stage)
    assert found == status
    assert reason
    assert "\n" not in reason


def test_finite_outputs_pass_and_others_are_named():
    whole = (torch.ones(3), torch.tensor([1, 2]), torch.zeros(0))
    require_finite(whole, "the first iteration")
    with pytest.raises(NonFiniteOutput, match="output 1 of the first iteration is not finite \\(1 of 3 values\\)"):
        require_finite((torch.ones(3), torch.tensor([1.0, math.inf, 2.0])), "the first iteration")
    with pytest.raises(NonFiniteOutput, match="the loss of the last timed iteration"):
        require_finite((torch.tensor(math.nan),), "the last timed iteration")


@pytest.mark.parametrize("cache", [None, {"mode": "cold"}])
def test_the_first_batch_is_told_by_eager_tests_and_by_cold_ones(cache):
    assert of_the_first_batch({"device": "cpu", "compile_cache": cache}, 0.5) == {"first_batch": [0.5]}
    assert of_the_first_batch({"device": "cpu"}, 0.5) == {"first_batch": [0.5]}


@pytest.mark.parametrize("mode", ["fill", "warm"])
def test_a_first_batch_with_something_in_the_cache_is_none_of_that_series(mode):
    assert of_the_first_batch({"device": "cpu", "compile_cache": {"mode": mode}}, 0.5) == {}


def test_an_unknown_backend_is_not_implemented():
    with pytest.raises(NotImplementedError, match="backend 'warp'"):
        apply_backend("warp", object())
