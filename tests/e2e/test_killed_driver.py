"""kill -9 of the driver at any moment: the file stays readable, nothing told as done is lost, no process is left."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS, command_line, processes_with_variable, write_suite

from torchbenchmark.records import Status, read_run

ROUNDS, PROCESSES = 2, 2
MODELS = ["healthy", "dlrm"]


def kill_after(seconds: float, arguments: list[object], folder: Path) -> bool:
    """Start the driver and kill it after `seconds`. False if it ended by itself before."""
    process = subprocess.Popen(
        command_line(*arguments), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, errors = process.communicate(timeout=seconds)
        assert process.returncode == 0, errors
        return False
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return True


def journalled(out: Path) -> set[tuple[str, int, int]]:
    """(test, round, index) of the processes on disk, in records or in the journal."""
    found = set()
    if out.exists():
        for record in read_run(out).records:
            found |= {(record.test, process.round, process.index) for process in record.processes}
    journal = out.with_name(f"{out.name}.journal")
    if journal.exists():
        for line in journal.read_bytes().split(b"\n")[:-1]:
            entry = json.loads(line)
            found.add((entry["test"], entry["process"]["round"], entry["process"]["index"]))
    return found


def wait_until_gone(run: str) -> None:
    deadline = time.monotonic() + 10
    while (left := processes_with_variable("TORCHBENCH_RUN", run)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_runs_killed_again_and_again_complete_with_each_test_exactly_once(tmp_path, kills):
    suite = write_suite(tmp_path, MODELS, tests="[train, eval]")
    options = ["run", "--suite", suite, "--models", MISBEHAVING_MODELS, "--threads", 1, "--rounds", ROUNDS]
    options += ["--processes", PROCESSES, "--budget", 0.1, "--resume", "--out"]
    moments = random.Random()  # any moment must do, so none is chosen
    killed, out = 0, tmp_path / "run-0.jsonl"
    while killed < kills:
        before = journalled(out)
        if not kill_after(moments.uniform(0.3, 8.0), [*options, out], tmp_path):
            check_complete(out)
            out = tmp_path / f"run-{killed}.jsonl"  # it came to its end before its kill: go on with another
            continue
        killed += 1
        assert before <= journalled(out), "something that was on disk is gone"
        if out.exists():
            wait_until_gone(read_run(out).header.run)
    final = subprocess.run(
        command_line(*options, out), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200
    )
    assert final.returncode == 0, final.stderr
    check_complete(out)


def check_complete(out: Path) -> None:
    """Every planned test has one record, with every process of every round exactly once."""
    run = read_run(out)
    assert sorted(record.test for record in run.records) == sorted(planned.test for planned in run.header.plan)
    for record in run.records:
        assert record.status is Status.OK, record
        done = [(process.round, process.index) for process in record.processes]
        assert len(done) == len(set(done)) == ROUNDS * PROCESSES
    assert not out.with_name(f"{out.name}.journal").exists()
    assert not out.with_name(f"{out.name}.scratch").exists()
