"""The declared rules of the grid."""

import pytest

from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import DEVICES, PRECISIONS, TESTS, Experiment, grid
from torchbenchmark.rules import RULES, ruled_out


@pytest.mark.parametrize(
    ("experiment", "reason"),
    [
        (Experiment("m", "eval", "cpu", "cudagraphs"), "CUDA graphs need a GPU"),
        (Experiment("m", "train", "cpu", "inductor_cudagraphs"), "CUDA graphs need a GPU"),
        (Experiment("m", "eval", "cpu", precision="tf32"), "TF32 is a mode of NVIDIA's tensor cores"),
        (Experiment("m", "train", "cuda", precision="fp16"), "do not train"),
        (Experiment("m", "train", "cpu", "jit", "amp_fp16"), "TorchScript derives under autocast"),
        (Experiment("m", "eval", "cuda", "jit", "amp_fp16"), "find no cuDNN engine in amp_fp16"),
        (Experiment("m", "eval", "cpu", "warp"), "there is no backend 'warp'"),
    ],
    ids=lambda value: value.id if isinstance(value, Experiment) else "",
)
def test_what_no_model_can_run_is_ruled_out_with_its_reason(experiment, reason):
    assert reason in ruled_out(experiment)


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment("m", "train", "cuda", "cudagraphs"),
        Experiment("m", "train", "cuda", "inductor_cudagraphs", "tf32"),
        Experiment("m", "eval", "cpu", precision="fp16"),
        Experiment("m", "train", "cpu", precision="amp_fp16"),
        Experiment("m", "eval", "cpu", "jit", "amp_fp16"),
        Experiment("m", "train", "cpu", "jit", "amp_bf16", 8, "tiny", "evalmode"),
    ],
    ids=lambda experiment: experiment.id,
)
def test_what_can_run_is_not_ruled_out(experiment):
    assert ruled_out(experiment) is None


def test_every_rule_rules_something_out_and_no_two_the_same():
    whole = list(grid(["m"], TESTS, DEVICES, backends=BACKENDS, precisions=PRECISIONS))
    hits = [[experiment for experiment in whole if rule.matches(experiment)] for rule in RULES]
    assert all(hits)
    assert len({tuple(hit) for hit in hits}) == len(RULES)


def test_the_grid_loses_to_the_rules_what_they_say_and_no_more():
    whole = list(grid(["m"], TESTS, DEVICES, backends=BACKENDS, precisions=PRECISIONS))
    left = {
        device: sum(ruled_out(experiment) is None for experiment in whole if experiment.device == device)
        for device in DEVICES
    }
    # cpu: 6 backends x (5 precisions for eval, 4 for train); cuda: 8 x (6, 5); jit under amp_fp16: eval on cpu alone
    assert left == {"cpu": 6 * (5 + 4) - 1, "cuda": 8 * (6 + 5) - 2}
