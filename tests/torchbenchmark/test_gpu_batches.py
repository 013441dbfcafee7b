"""The batch size of a model on a GPU that its metadata names: what the model is told, and that it is another
workload."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.environment import Interpreter
from torchbenchmark.experiment import Experiment
from torchbenchmark.gpu_batches import batch_on_gpu, gpu_of_class
from torchbenchmark.grid import GridOptions
from torchbenchmark.isolation import ChildOutcome
from torchbenchmark.one_process import Measurer
from torchbenchmark.planning import RunRequest, plan_run
from torchbenchmark.records import Build, RunHeader
from torchbenchmark.registry import Registry, Suite

BATCHES = {
    "NVIDIA A100": {"eval": 128, "train": 64},
    "NVIDIA A100-SXM4-80GB": {"eval": 256},
    "NVIDIA H200": {"eval": 512},
}
A100_80 = "cuda-nvidia-a100-sxm4-80gb-x1-t8"
A100_40 = "cuda-nvidia-a100-sxm4-40gb-x1-t8"


def head(test="eval", device="cuda", **changes):
    return Experiment("mine", test, device, **{"preset": "head"} | changes)


@pytest.mark.parametrize(
    ("experiment", "machine_class", "size"),
    [
        (head(), A100_40, 128),
        (head(), A100_80, 256),  # the longer name counts
        (head("train"), A100_80, 64),  # which says nothing of training
        (head(), "cuda-nvidia-h200-x1-t4", 512),
        (head("train"), "cuda-nvidia-h200-x1-t4", None),
        (head(), "cuda-nvidia-a10-x1-t4", None),
        (head(), "cuda-nvidia-a1000-x1-t4", None),  # another card, though its name begins with the same letters
        (head(), "cuda-nvidia-a100-x1-t4", 128),
        (head(preset="full"), A100_40, None),
        (head(batch_size=3), A100_40, None),
        (head(device="cpu"), "cpu-nvidia-a100-t4", None),
        (head(), None, None),
    ],
)
def test_a_batch_is_that_of_the_longest_name_with_which_the_gpus_name_begins(experiment, machine_class, size):
    assert batch_on_gpu(BATCHES, experiment, machine_class) == size


def test_the_gpu_of_a_class_is_what_the_class_names():
    assert gpu_of_class(A100_80) == "nvidia-a100-sxm4-80gb"
    assert gpu_of_class("cpu-intel-xeon-t4") is None


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    about = {"description": "d", "category": "OTHER", "domain": "OTHER_TASKS", "workload_version": "1"}
    (folder / "metadata.yaml").write_text(yaml.safe_dump(about | {"presets": ["full", "head"], "gpu_batches": BATCHES}))
    return tmp_path / "models"


def planned(models: Path, gpu: str, preset: str = "head", **options) -> RunHeader:
    """The header of a run on a machine with one such GPU."""
    build = Build(id="b1", subject="torch", version="2.9.0", python="3.11", interpreter="/usr/bin/python")
    suite = Suite(name="s", description="d", models=("mine",), preset=preset)
    request = RunRequest(
        suite, "cuda", options=GridOptions(**options), threads=8, model_folders=(models,), seed=1, workers=1
    )
    return plan_run(request, Interpreter(build, {}, {}, (gpu,)), Registry((models,)))


def test_a_batch_that_a_gpu_has_of_its_own_is_another_workload_of_the_same_test(models: Path):
    plans = {
        gpu: {test.test: test.workload.hash for test in planned(models, gpu).plan}
        for gpu in ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H200", "NVIDIA L4", "Tesla T4")
    }
    assert {tuple(plan) for plan in plans.values()} == {
        ("test_train[mine-cuda-eager-head]", "test_eval[mine-cuda-eager-head]")
    }
    train, evaluation = (
        {gpu: plan[test] for gpu, plan in plans.items()}
        for test in ("test_train[mine-cuda-eager-head]", "test_eval[mine-cuda-eager-head]")
    )
    assert evaluation["NVIDIA L4"] == evaluation["Tesla T4"]
    assert len(set(evaluation.values())) == 4
    assert train["NVIDIA A100-SXM4-80GB"] == train["NVIDIA A100-SXM4-40GB"] != train["NVIDIA H200"]
    assert train["NVIDIA H200"] == train["Tesla T4"]


def test_a_batch_that_is_asked_for_and_the_size_full_are_the_same_workload_on_every_gpu(models: Path):
    for changes in ({"preset": "full"}, {"batch_sizes": (8,)}):
        first, other = (planned(models, gpu, **changes).plan for gpu in ("NVIDIA A100-SXM4-40GB", "Tesla T4"))
        assert first == other


@pytest.mark.parametrize(
    ("experiment", "machine_class", "size"),
    [(head(), A100_40, 128), (head(batch_size=3), A100_40, 3), (head(), "cuda-tesla-t4-x1-t4", None)],
)
def test_the_driver_tells_the_model_the_batch_of_the_gpu(models: Path, tmp_path: Path, experiment, machine_class, size):
    told = []

    def measure(model, spec, **options):
        told.append(spec["batch_size"])
        return ChildOutcome({"batch_size": spec["batch_size"]}, "ok", "", "", 1.0)

    header = planned(models, "NVIDIA A100-SXM4-40GB")
    measurer = Measurer(Registry((models,)), header.measuring, machine_class, CompileCaches(tmp_path), {})
    nursery = SimpleNamespace(spawns=lambda model: False, place=SimpleNamespace(gpu=None, device_index=0))
    zygote = SimpleNamespace(measure=measure, name="r1z0")
    measured = measurer.measure(nursery, zygote, experiment, round=1, index=0)
    assert told == [size] and measured.batch_size == size
