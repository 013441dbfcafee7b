"""On a machine with NVIDIA GPUs: workers at once, each seeing one GPU. On a machine with a single one they share it."""

import shutil
from pathlib import Path

import pytest
from test_cuda_run import Noting

from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status
from torchbenchmark.registry import load_suite
from torchbenchmark.runner import start_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]

HEALTHY = Path(__file__).parents[1] / "misbehaving_models" / "healthy"
COPIES = 8


def test_workers_share_the_turns_of_a_round_and_each_sees_one_gpu(tmp_path):
    source = (HEALTHY / "__init__.py").read_text()
    metadata = (HEALTHY / "metadata.yaml").read_text()
    begins = "    def setup(self) -> None:\n"
    assert begins in source
    assert "devices: [cpu]" in metadata
    for number in range(COPIES):
        folder = tmp_path / "models" / f"copy{number}"
        folder.mkdir(parents=True)
        (folder / "metadata.yaml").write_text(metadata.replace("devices: [cpu]", "devices: [cuda]"))
        (folder / "__init__.py").write_text(
            source.replace(begins, f"{begins}        assert torch.cuda.device_count() == 1\n")
        )
    names = ", ".join(f"copy{number}" for number in range(COPIES))
    (tmp_path / "suite.yaml").write_text(
        f"{{name: s, description: d, models: [{names}], tests: [train], preset: tiny, threads: 1}}"
    )
    run = start_run(
        RunRequest(
            suite=load_suite(str(tmp_path / "suite.yaml")),
            device="cuda",
            rounds=2,
            budget_s=0.2,
            workers=2,
            model_folders=(tmp_path / "models",),
        ),
        tmp_path / "run.jsonl",
        Noting(),
    )
    assert {record.test: record.reason for record in run.records if record.status is not Status.OK} == {}
    processes = [process for record in run.records for process in record.processes]
    assert {process.zygote[:4] for process in processes} == {"r1w0", "r1w1", "r2w0", "r2w1"}
    assert {process.device_index for process in processes} == set(range(min(2, run.header.measuring.gpus)))
    assert "-x1-" in run.header.machine_class
