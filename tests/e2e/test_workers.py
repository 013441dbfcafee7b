"""A run with several workers delivers what a run with one does, and one that loses its zygote harms only its own test.

`--workers 2` on the CPU stands for a host with two GPUs: all but the device is the same code.
"""

import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS, command_line, processes_with_variable, write_suite

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.isolation import Zygote
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Record, Run, Status, read_run
from torchbenchmark.registry import load_suite
from torchbenchmark.runner import resume_run, start_run

ROUNDS = 2
VARIANTS = 4  # of the healthy model: enough that no worker can take all


class Silent:
    def __getattr__(self, _: str):
        return lambda *_: None


def variants(folder: Path, extra: str = "") -> Path:
    """A folder of copies of the healthy model, `extra` being run in the forward pass of the first."""
    source = (MISBEHAVING_MODELS / "healthy" / "__init__.py").read_text()
    metadata = (MISBEHAVING_MODELS / "healthy" / "metadata.yaml").read_text()
    for number in range(VARIANTS):
        model = folder / "models" / f"variant{number}"
        model.mkdir(parents=True)
        (model / "metadata.yaml").write_text(metadata)
        body = source
        if extra and number == 0:
            head, _, tail = source.partition("    def forward(self) -> torch.Tensor:\n")
            body = f"import os, signal, time\n{head}    def forward(self) -> torch.Tensor:\n        {extra}\n{tail}"
        (model / "__init__.py").write_text(body)
    return folder / "models"


def request(folder: Path, workers: int, extra: str = "", **changes) -> RunRequest:
    models = variants(folder, extra)
    suite = load_suite(str(write_suite(folder, [f"variant{number}" for number in range(VARIANTS)])))
    fields = {"rounds": ROUNDS, "threads": 1, "budget_s": 0.05, "model_folders": (models,), "seed": 5}
    return RunRequest(suite=suite, device="cpu", workers=workers, **(fields | changes))


def worker_of(zygote: str) -> str:
    return zygote[2:4]


def shape(record: Record) -> tuple:
    """What must not depend on the number of workers."""
    processes = sorted((process.round, process.index, process.status) for process in record.processes)
    return record.test, record.status, record.batch_size, record.workload, processes


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> tuple[Run, dict[str, set[int]]]:
    """A run of two workers, and the cores that the zygotes of each could use."""
    folder = tmp_path_factory.mktemp("two")
    cores: dict[str, set[int]] = {}
    measure = Zygote.measure

    def note_cores(self, *arguments, **options):
        cores[worker_of(self.name)] = os.sched_getaffinity(self._process.pid)
        return measure(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Zygote, "measure", note_cores)
        return start_run(request(folder, 2), folder / "two.jsonl", Silent()), cores


def test_two_workers_deliver_the_records_of_one_each_test_once_a_round(two, tmp_path):
    one, (run, _) = start_run(request(tmp_path, 1), tmp_path / "one.jsonl", Silent()), two
    assert sorted(map(shape, one.records)) == sorted(map(shape, run.records))
    processes = [process for record in run.records for process in record.processes]
    for number in range(1, ROUNDS + 1):
        assert {worker_of(process.zygote) for process in processes if process.round == number} == {"w0", "w1"}
    assert len({process.zygote for process in processes}) == 2 * ROUNDS, "a zygote for each worker and round"
    assert {process.zygote[:3] for record in one.records for process in record.processes} == {"r1z", "r2z"}
    assert (one.header.measuring.workers, run.header.measuring.workers) == (1, 2)
    assert run.missing == []


def test_workers_measure_at_the_same_time_and_each_one_test_at_a_time(two):
    run, _ = two
    spans: dict[str, list[tuple[float, float]]] = {"w0": [], "w1": []}
    for process in (process for record in run.records for process in record.processes):
        began = process.started.timestamp()
        spans[worker_of(process.zygote)].append((began, began + process.seconds))
    for taken in spans.values():
        assert all(end <= began + 0.05 for (_, end), (began, _) in itertools.pairwise(sorted(taken)))
    assert any(
        began < end_of_other and began_of_other < end
        for began, end in spans["w0"]
        for began_of_other, end_of_other in spans["w1"]
    )


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_each_worker_has_cores_of_its_own(two):
    _, cores = two
    mine = sorted(os.sched_getaffinity(0))
    half = len(mine) // 2
    assert cores == {"w0": set(mine[:half]), "w1": set(mine[half : 2 * half])}


def test_a_worker_whose_zygote_is_killed_hurts_only_the_test_in_flight(tmp_path):
    extra = "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    run = start_run(request(tmp_path, 2, extra), tmp_path / "run.jsonl", Silent())
    status = {record.test: record.status for record in run.records}
    assert status.pop("test_eval[variant0-cpu-eager-tiny]") is Status.CRASH
    assert set(status.values()) == {Status.OK}
    assert len(status) == VARIANTS - 1
    assert all(len(record.processes) == ROUNDS for record in run.records if record.status is Status.OK)


def test_a_model_that_fails_to_import_in_both_workers_has_one_record(tmp_path):
    models = variants(tmp_path)
    (models / "variant0" / "__init__.py").write_text("raise ValueError('not today')\n")
    suite = load_suite(str(write_suite(tmp_path, [f"variant{number}" for number in range(3)])))
    asked = RunRequest(
        suite=suite, device="cpu", workers=2, rounds=1, threads=1, budget_s=0.05, model_folders=(models,)
    )
    run = start_run(asked, tmp_path / "run.jsonl", Silent())
    assert sorted(record.status for record in run.records) == [Status.ERROR, Status.OK, Status.OK]


def test_a_process_that_ends_after_its_test_was_decided_is_dropped(tmp_path):
    """Two processes of a failing test at once: the record holds the one that failed first."""
    run = start_run(
        request(tmp_path, 2, "raise ValueError('both')", rounds=1, processes=3), tmp_path / "run.jsonl", Silent()
    )
    failed = next(record for record in run.records if record.status is not Status.OK)
    assert [process.status for process in failed.processes] == [Status.ERROR]


def test_a_refused_build_ends_both_workers_with_its_error(tmp_path, monkeypatch):
    def refuse(self):
        raise BenchmarkError("another package named torchbenchmark")

    monkeypatch.setattr(Zygote, "wait_ready", refuse)
    with pytest.raises(BenchmarkError, match="another package named torchbenchmark"):
        start_run(request(tmp_path, 2), tmp_path / "run.jsonl", Silent())
    assert processes_with_variable("TORCHBENCH_RUN", read_run(tmp_path / "run.jsonl").header.run) == []


@pytest.mark.long
@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_a_run_of_two_workers_that_is_ended_leaves_nothing_alive_and_is_resumed(tmp_path, how):
    models = variants(tmp_path)
    suite = write_suite(tmp_path, [f"variant{number}" for number in range(VARIANTS)])
    out = tmp_path / "run.jsonl"
    options = ["run", "--suite", suite, "--models", models, "--threads", 1, "--rounds", ROUNDS, "--budget", 0.3]
    process = subprocess.Popen(command_line(*options, "--workers", 2, "--out", out), cwd=tmp_path, text=True)
    journal = out.with_name("run.jsonl.journal")
    deadline = time.monotonic() + 120
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(timeout=30) == (-how if how is signal.SIGKILL else 130)
    before = read_run(out)
    deadline = time.monotonic() + 10
    while (left := processes_with_variable("TORCHBENCH_RUN", before.header.run)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    assert all(record.status is Status.OK for record in before.records), "the interruption became a test's outcome"
    resumed = resume_run(out, None, Silent())
    assert resumed.header.measuring.workers == 2
    for record in resumed.records:
        assert record.status is Status.OK, record.reason
        assert [process.round for process in record.processes] == list(range(1, ROUNDS + 1))
    assert resumed.missing == []
