"""Runs that ended between two steps: what the next start makes of what is on disk."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS, processes_with_variable, write_suite

from torchbenchmark.builds.cache import WHOLE, BuildCache
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status, read_run
from torchbenchmark.registry import load_suite
from torchbenchmark.runner import resume_run, start_run


class Silent:
    def __getattr__(self, _: str):
        return lambda *_: None


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The file of a run of two tests in two rounds, one of which fails."""
    folder = tmp_path_factory.mktemp("finished")
    suite = load_suite(str(write_suite(folder, ["healthy", "raises"])))
    request = RunRequest(
        suite=suite, device="cpu", rounds=2, threads=1, budget_s=0.05, model_folders=(MISBEHAVING_MODELS,)
    )
    start_run(request, folder / "run.jsonl", Silent())
    return folder / "run.jsonl"


def test_a_build_of_the_cache_is_kept_while_it_is_measured(tmp_path):
    cache, key = BuildCache.open(tmp_path / "cache"), "0" * 64
    python = cache.environment_folder(key) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (cache.environment_folder(key) / WHOLE).touch()
    in_use = []

    class Watching(Silent):
        def round_started(self, *_: object) -> None:
            with cache.unused(f"environment-{key}") as unused:
                in_use.append(not unused)

    request = RunRequest(
        suite=load_suite(str(write_suite(tmp_path, ["healthy"]))), device="cpu", rounds=1, threads=1, budget_s=0.02,
        model_folders=(MISBEHAVING_MODELS,), python=python,
    )  # fmt: skip
    out = tmp_path / "run.jsonl"
    start_run(request, out, Watching())
    out.write_text(out.read_text().splitlines(keepends=True)[0])
    resume_run(out, None, Watching())
    assert in_use == [True, True]
    with cache.unused(f"environment-{key}") as unused:
        assert unused


def interrupted(finished: Path, folder: Path) -> Path:
    """The files as a kill leaves them after the last process was noted and before any record was written."""
    out = folder / "run.jsonl"
    header, *records = finished.read_text().splitlines(keepends=True)
    out.write_text(header)
    entries = []
    for record in map(json.loads, records):
        for process in record["processes"]:
            entries.append(
                {
                    "kind": "measured",
                    "run": record["run"],
                    "test": record["test"],
                    "batch_size": record["batch_size"],
                    "process": process,
                }
            )
    out.with_name("run.jsonl.journal").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return out


def test_a_run_killed_between_a_process_and_its_record_is_decided_without_measuring_again(finished, tmp_path):
    out = interrupted(finished, tmp_path)
    resumed = resume_run(out, None, Silent())
    before = {record.test: record for record in read_run(finished).records}
    for record in resumed.records:
        assert record.status is before[record.test].status
        assert record.processes == before[record.test].processes
    assert {record.status for record in resumed.records} == {Status.OK, Status.ERROR}


def test_a_refused_resume_leaves_every_record_where_it_was(finished, tmp_path):
    out = tmp_path / "run.jsonl"
    content = finished.read_text().replace('"fingerprint":"', '"fingerprint":"other')
    out.write_text(content)
    with pytest.raises(BenchmarkError, match="was begun on environment other"):
        resume_run(out, None, Silent())
    assert out.read_text() == content


def test_resume_uses_the_interpreter_that_it_is_given_when_the_old_one_has_moved(finished, tmp_path):
    out = tmp_path / "run.jsonl"
    content = finished.read_text()
    interpreter = json.loads(content.splitlines()[0])["build"]["interpreter"]
    out.write_text(content.replace(json.dumps(interpreter), '"/moved/away/bin/python"'))
    resumed = resume_run(out, Path(sys.executable), Silent())
    failed = next(record for record in resumed.records if "raises" in record.test)
    assert failed.status is Status.ERROR
    assert len(failed.attempts) == 1, "it was measured again"
    assert "the shape is wrong on purpose" in failed.attempts[0].reason


def test_a_second_driver_on_the_same_file_is_refused(finished, tmp_path):
    from torchbenchmark.run_file import RunFile

    out = shutil.copy(finished, tmp_path / "run.jsonl")
    holder = RunFile(Path(out))
    try:
        with pytest.raises(BenchmarkError, match="another torchbench writes this run"):
            resume_run(Path(out), None, Silent())
    finally:
        holder.close()


class KillsTheWaiting(Silent):
    """Kills every process of the run after its first measurement, but for the one that has just measured."""

    def planned(self, header, _):
        self.run, self.killed = header.run, 0

    def measured(self, _, process):
        if process.round == 1 and not self.killed:
            _measuring, *waiting = sorted(processes_with_variable("TORCHBENCH_RUN", self.run))
            for pid in waiting:
                os.kill(pid, signal.SIGKILL)
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it ends before its round begins
            self.killed = len(waiting)


def test_a_zygote_that_ends_while_it_waits_for_its_round_is_replaced(tmp_path):
    """The zygotes of the next rounds are idle beside the first: what ends them there is no test of their own round."""
    suite = load_suite(str(write_suite(tmp_path, ["healthy"])))
    request = RunRequest(
        suite=suite, device="cpu", rounds=2, threads=1, budget_s=0.05, model_folders=(MISBEHAVING_MODELS,)
    )
    reporter = KillsTheWaiting()
    (record,) = start_run(request, tmp_path / "run.jsonl", reporter).records
    assert reporter.killed == 1
    assert record.status is Status.OK, record
    assert [process.zygote for process in record.processes] == ["r1z0", "r2z2"]
