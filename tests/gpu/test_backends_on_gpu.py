"""On a machine with an NVIDIA GPU: every backend and precision there, and what a CUDA graph does to outputs."""

import importlib
from pathlib import Path

import pytest
import torch

from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import PRECISIONS, Experiment
from torchbenchmark.registry import Registry
from torchbenchmark.worker.backends import apply_backend
from torchbenchmark.worker.precisions import apply_precision
from torchbenchmark.worker.timing import Timed, synchronizer
from torchbenchmark.worker.verify import require_finite

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

MODELS = ("resnet18", "timm_vision_transformer", "hf_Bert", "dlrm", "soft_actor_critic")  # those of the smoke suite
COMPARED = [name for name in BACKENDS if name not in ("eager", "inductor_max_autotune")]  # that one tunes for minutes
CLOSE = {"rtol": 2e-2, "atol": 2e-3}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
    torch._dynamo.reset()


def built(name: str, test: str, backend: str = "eager", precision: str = "fp32"):
    """The model, or a skip where rules or metadata say that it cannot be."""
    experiment = Experiment(name, test, "cuda", backend, precision, preset="tiny")
    if reason := Registry().model(name).unsupported_reason(experiment):
        pytest.skip(reason)
    model = importlib.import_module(f"torchbenchmark.models.{name}").Model(test=test, device="cuda", preset="tiny")
    apply_precision(precision, model)
    apply_backend(backend, model)
    return model


def iterate(model, count: int = 4) -> list[list[torch.Tensor]]:
    """Copies of the outputs: a CUDA graph writes the next ones over them."""
    return [[tensor.detach().clone() for tensor in model.invoke()] for _ in range(count)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("test", ["train", "eval"])
@pytest.mark.parametrize("backend", COMPARED)
def test_the_first_iteration_of_a_backend_gives_what_eager_gives_and_all_are_finite(name, test, backend):
    compiled = iterate(built(name, test, backend))
    eager = iterate(built(name, test), 1)
    for outputs in compiled:
        require_finite(outputs, "an iteration")
    if (
        name != "soft_actor_critic" or test == "eval"
    ):  # its update draws random numbers, which a compiler draws otherwise
        for one, other in zip(compiled[0], eager[0], strict=True):
            if test == "eval" or name in ("resnet18", "dlrm"):  # the others train with dropout
                torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("test", ["train", "eval"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_runs_and_gives_finite_numbers(name, test, precision):
    for outputs in iterate(built(name, test, precision=precision)):
        require_finite(outputs, "an iteration")


@pytest.mark.parametrize("backend", ["inductor", "inductor_cudagraphs", "jit", "export"])
@pytest.mark.parametrize("precision", ["tf32", "bf16", "amp_bf16", "amp_fp16"])
@pytest.mark.parametrize("test", ["train", "eval"])
def test_backends_and_precisions_go_together(backend, precision, test):
    for outputs in iterate(built("resnet18", test, backend, precision)):
        require_finite(outputs, "an iteration")


@pytest.mark.parametrize(
    ("backend", "test"),
    [
        ("inductor_cudagraphs", "train"),
        ("inductor_cudagraphs", "eval"),
        ("cudagraphs", "train"),
        ("cudagraphs", "eval"),
        ("inductor_max_autotune", "eval"),
    ],
)
def test_a_warm_iteration_is_replayed_from_graphs(backend, test):
    model = built("resnet18", test, backend)
    iterate(model, 5)
    both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=both) as profile:
        model.invoke()
        torch.cuda.synchronize()
    assert any("cudaGraphLaunch" in event.key for event in profile.key_averages())


@pytest.mark.parametrize("backend", ["inductor_cudagraphs", "cudagraphs"])
def test_the_last_timed_outputs_outlive_the_iterations_after_them(backend):
    model = built("resnet18", "eval", backend)
    spec = {"budget_s": 0.05, "warmup_cap_s": 0.2, "min_unit_s": 0.01, "min_samples": 3}
    timed = Timed(model, synchronizer("cuda"), spec)
    model.invoke()
    timed.warm_up()
    timed.sample()
    model.invoke()
    torch.cuda.synchronize()
    require_finite(timed.last_outputs, "the last timed iteration")


def test_tf32_moves_products_and_convolutions_and_fp32_is_near_the_double_result():
    torch.manual_seed(0)
    left, right = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
    images, filters = torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
    work = {
        "product": lambda cast: cast(left) @ cast(right),
        "convolution": lambda cast: torch.nn.functional.conv2d(cast(images), cast(filters), padding=1),
    }
    errors = {}
    for precision in ("fp32", "tf32"):
        built("resnet18", "eval", precision=precision)
        for what, compute in work.items():
            exact = compute(torch.Tensor.double)
            off = (compute(torch.Tensor.float).double() - exact).abs().max() / exact.abs().max()
            errors[what, precision] = float(off)
    for what in work:
        assert errors[what, "fp32"] < 5e-5, errors
        assert errors[what, "tf32"] > 10 * errors[what, "fp32"], errors


def test_no_compiling_process_is_left_when_the_iterations_are_timed():
    model = built("resnet18", "eval", "inductor")
    model.invoke()
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]
    assert not [command for command in commands if b"compile_worker" in command]
    model.invoke()
