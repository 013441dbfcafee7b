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

ROUNDS = 2
MODELS = ["healthy", "dlrm", "soft_actor_critic"]


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


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.long)])
def test_a_run_killed_again_and_again_completes_with_each_test_exactly_once(tmp_path, kills):
    out = tmp_path / "results.jsonl"
    suite = write_suite(tmp_path, MODELS, tests="[train, eval]")
    arguments = ["run", "--suite", suite, "--models", MISBEHAVING_MODELS, "--threads", 1, "--rounds", ROUNDS]
    arguments += ["--processes", max(1, kills // 3), "--budget", 0.2, "--out", out, "--resume"]
    moments = random.Random()  # any moment must do, so none is chosen
    killed = 0
    while killed < kills:
        before = journalled(out)
        if not kill_after(moments.uniform(0.3, 12.0), arguments, tmp_path):
            break
        killed += 1
        after = journalled(out)
        assert before <= after, "something that was on disk is gone"
        if out.exists():
            wait_until_gone(read_run(out).header.run)
    assert killed >= min(kills, 3), "the run ended before it could be killed"
    final = subprocess.run(command_line(*arguments), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert final.returncode == 0, final.stderr
    run = read_run(out)
    assert sorted(record.test for record in run.records) == sorted(planned.test for planned in run.header.plan)
    for record in run.records:
        assert record.status is Status.OK
        done = [(process.round, process.index) for process in record.processes]
        assert len(done) == len(set(done)) == ROUNDS * max(1, kills // 3)
    assert not list(tmp_path.glob("*.journal"))
