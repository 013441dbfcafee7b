"""Models that crash, hang, exhaust memory, raise or compute NaN each end in one record, and harm nobody else."""

from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS, processes_with_variable, write_suite

from torchbenchmark.records import Run, Status, read_run

EXPECTED = {
    "segfaults": (Status.CRASH, "ended by signal 11 (SIGSEGV) in stage 'first batch'"),
    "kills_itself": (Status.CRASH, "ended by signal 9 (SIGKILL) in stage 'first batch'"),
    "hangs": (Status.TIMEOUT, "no result within 6 s; it was in stage 'first batch'"),
    "exhausts_memory": (Status.OOM, "DefaultCPUAllocator: can't allocate memory"),
    "outgrows_limit": (Status.OOM, "ended by the runner's memory limit"),
    "raises": (Status.ERROR, "ValueError during first batch: the shape is wrong on purpose"),
    "nan_loss": (Status.ACCURACY_FAIL, "the loss of the first iteration is not finite"),
}
OPTIONS = ("--threads", 1, "--rounds", 2, "--budget", 0.1, "--timeout", 6, "--memory-limit", 900)


def by_model(run: Run) -> dict[str, object]:
    return {record.test.removeprefix("test_train[").partition("-")[0]: record for record in run.records}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path, [*EXPECTED, "healthy"], "[train]")


def test_each_failure_has_its_status_and_reason_and_resume_measures_only_the_failed_again(torchbench, tmp_path, suite):
    out = tmp_path / "results.jsonl"
    first = torchbench("run", "--suite", suite, "--models", MISBEHAVING_MODELS, *OPTIONS, "--out", out)
    assert first.returncode == 2, first.stderr
    run = read_run(out)
    records = by_model(run)
    for model, (status, reason) in EXPECTED.items():
        assert records[model].status is status, records[model]
        assert reason in records[model].reason
        assert len(records[model].processes) == 1, "a failed test leaves the later rounds"
    healthy = records["healthy"]
    assert healthy.status is Status.OK
    assert len(healthy.processes) == 2
    assert run.missing == []
    assert processes_with_variable("TORCHBENCH_RUN", run.header.run) == []
    assert not list(tmp_path.glob("*.journal")) and not list(tmp_path.glob("*.scratch"))

    second = torchbench("run", "--out", out, "--resume", WELL_BEHAVED="raises")
    assert second.returncode == 2, second.stderr
    resumed = read_run(out)
    again = by_model(resumed)
    assert len(resumed.records) == len(EXPECTED) + 1
    assert again["healthy"] == healthy, "a good record is not measured again"
    assert again["raises"].status is Status.OK
    assert [attempt.status for attempt in again["raises"].attempts] == [Status.ERROR]
    for model in EXPECTED.keys() - {"raises"}:
        assert again[model].status is records[model].status
        assert [attempt.reason for attempt in again[model].attempts] == [records[model].reason]
    assert processes_with_variable("TORCHBENCH_RUN", run.header.run) == []


@pytest.mark.long
def test_a_model_whose_import_fails_kills_or_starts_threads_harms_no_other(torchbench, tmp_path):
    folder = tmp_path / "models"
    for name, statement in {
        "import_raises": "raise KeyError('no such thing')",
        "import_exits": "import os; os._exit(7)",
        "import_threads": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    }.items():
        model = folder / name
        model.mkdir(parents=True)
        source = (MISBEHAVING_MODELS / "healthy" / "__init__.py").read_text()
        (model / "__init__.py").write_text(f"{statement}\n{source}")
        (model / "metadata.yaml").write_text((MISBEHAVING_MODELS / "healthy" / "metadata.yaml").read_text())
    suite = write_suite(tmp_path, ["import_raises", "import_exits", "import_threads", "dlrm"], "[train]")
    options = ("--threads", 1, "--rounds", 1, "--budget", 0.1)
    torchbench("run", "--suite", suite, "--models", folder, *options, "--out", "out.jsonl")
    records = by_model(read_run(tmp_path / "out.jsonl"))
    assert records["import_raises"].status is Status.ERROR
    assert "does not import: KeyError" in records["import_raises"].reason
    assert records["import_exits"].status is Status.CRASH
    assert "importing import_exits ended the zygote" in records["import_exits"].reason
    assert records["import_threads"].status is Status.OK
    assert [process.start_method for process in records["import_threads"].processes] == ["spawn"]
    assert records["dlrm"].status is Status.OK
    assert [process.start_method for process in records["dlrm"].processes] == ["fork"]
