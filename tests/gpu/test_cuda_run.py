"""On a machine with an NVIDIA GPU: the smoke suite on cuda, forked from a zygote that never touched the device."""

import shutil

import pytest

from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status
from torchbenchmark.registry import load_suite
from torchbenchmark.runner import start_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]


class Noting:
    """A reporter that keeps the notes and says nothing else."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def __getattr__(self, _: str):
        return lambda *_: None


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    reporter = Noting()
    request = RunRequest(suite=load_suite("smoke"), device="cuda", rounds=1, threads=1, budget_s=0.2)
    return start_run(request, tmp_path_factory.mktemp("cuda") / "run.jsonl", reporter), reporter


def test_every_test_of_the_smoke_suite_runs_on_cuda(measured):
    run, _ = measured
    assert {record.test: record.reason for record in run.records if record.status is not Status.OK} == {}
    assert run.header.machine_class.startswith("cuda-nvidia-")
    assert any(name.startswith("gpu.") for name in run.header.environment.facts)


def test_every_test_is_forked_from_a_zygote_with_one_thread_and_no_cuda(measured):
    run, reporter = measured
    assert reporter.notes == []
    assert {process.start_method for record in run.records for process in record.processes} == {"fork"}


def test_operators_are_counted_on_cuda_as_on_the_cpu(measured, tmp_path):
    run, _ = measured
    request = RunRequest(
        suite=load_suite("smoke"), device="cpu", rounds=1, threads=1, budget_s=0.05, selection=("resnet18",)
    )
    on_cpu = start_run(request, tmp_path / "cpu.jsonl", Noting())
    for record in on_cpu.records:
        twin = next(other for other in run.records if other.test == record.test.replace("-cpu-", "-cuda-"))
        assert twin.samples("flops") == record.samples("flops")
