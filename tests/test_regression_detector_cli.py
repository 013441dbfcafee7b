"""`torchbench detect` and `torchbench baseline` on real files."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from night_factory import A, B, run_of

import baselines.cli
import regression_detector
from baselines.report import Report, State
from torchbenchmark.records import Run, Status, encode_run
from torchbenchmark.terminal import new_app, run_app

ROOT = Path(__file__).parents[1]


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def torchbench(tmp_path, monkeypatch, capsys) -> Callable[..., Ended]:
    """The command line with the commands of both packages, in this process: starting one takes half a second."""
    app = new_app("torchbench")
    baselines.cli.register(app)
    regression_detector.register(app)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run_app(app, [str(argument) for argument in arguments])
        return Ended(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def detect(torchbench) -> Callable[..., Ended]:
    return lambda *arguments: torchbench("detect", *arguments)


@pytest.fixture
def write(tmp_path):
    def write(run: Run) -> Path:
        path = tmp_path / f"{run.header.run}.jsonl.gz"
        path.write_bytes(encode_run(run))
        return path

    return write


def test_nights_put_into_a_store_become_the_baseline_of_the_next(tmp_path, detect, torchbench, write):
    first = detect(write(run_of(0, {A: 1.0, B: 1.0})), "--store", "store", "--add")
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-1].startswith("baseline made: no test has a baseline yet: 2 new")
    again = detect(write(run_of(0, {A: 1.0, B: 1.0})), "--store", "store", "--add")
    assert again.returncode == 0 and "baseline made" in again.stdout  # not compared with itself
    second = detect(write(run_of(1, {A: 1.0, B: 1.0})), "--store", "store", "--add")
    assert second.returncode == 0 and "clean: 2 tests compared" in second.stdout

    slow = write(run_of(2, {A: 1.5, B: 1.0}))
    third = detect(slow, "--store", "store", "--json", "report.json", "--yaml", "report.yaml")
    assert third.returncode == 1
    assert f"slower by over 7%: {A} +50.0%" in third.stdout.splitlines()[-1]
    report = Report.model_validate(json.loads((tmp_path / "report.json").read_text()))
    assert report.tests(State.SLOWER) == [A]
    assert Report.model_validate(yaml.safe_load((tmp_path / "report.yaml").read_text())) == report
    assert detect(slow, "--store", "store", "--policy", "smoke").returncode == 1

    key = "runs/smoke/cpu-4t/2026-03-01-build0000-r0000"
    listed = torchbench("baseline", "list", "--store", "store")
    assert "smoke" in listed.stdout and "2026-03-02" in listed.stdout
    assert key in torchbench("baseline", "history", "--store", "store", "smoke", "cpu-4t").stdout
    series = torchbench("baseline", "history", "--store", "store", "smoke", "cpu-4t", "--test", A)
    assert series.stdout.count(A) == 2 and "1 s" in series.stdout
    shown = torchbench("baseline", "show", "--store", "store", key)
    assert A in shown.stdout and "cpu_time 1 s" in shown.stdout
    assert torchbench("baseline", "pin", "--store", "store", "release", key).returncode == 0
    assert "release" in torchbench("baseline", "list", "--store", "store").stdout
    assert "pinned" in detect(slow, "--store", "store").stdout
    assert "2 nights in 1 months" in torchbench("baseline", "rebuild", "--store", "store").stdout
    assert torchbench("baseline", "unpin", "--store", "store", "release", "smoke", "cpu-4t").returncode == 0

    masked = tmp_path / "alerts.yaml"
    masked.write_text(f"{json.dumps(A)}: 2026-03-01\n")
    alert = detect(slow, "--store", "store", "--alerts", masked)
    assert "inside the alert open since 2026-03-01" in alert.stdout


def test_a_first_night_is_told_what_else_the_store_has_and_not_itself(detect, write):
    first = detect(write(run_of(0, {A: 1.0}, suite="other")), "--store", "store", "--add").stdout.splitlines()[0]
    assert first == "store has no night of other on cpu-4t before this one; of others it has: nothing"
    second = detect(write(run_of(1, {A: 1.0})), "--store", "store", "--add").stdout.splitlines()[0]
    assert second == "store has no night of smoke on cpu-4t before this one; of others it has: other on cpu-4t"


def test_runs_can_be_compared_without_a_store(tmp_path, torchbench, write):
    nights = [write(run_of(day, {A: 1.0, B: Status.OOM if day == 2 else 1.0})) for day in range(3)]
    found = torchbench("detect", nights[2], "--control", nights[0], "--control", nights[1])
    assert found.returncode == 1
    assert f"newly failing: {B}" in found.stdout
    broken = torchbench("detect", write(run_of(3, {A: Status.CRASH})), "--control", nights[0])
    assert broken.returncode == 2 and "broken: no test ended ok: 1 crash" in broken.stdout


def test_the_file_itself_is_the_program_detect(tmp_path, write):
    paths = [str(write(run_of(day, {A: 1.0 + day}))) for day in range(2)]

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(ROOT / "regression_detector.py"), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    slower = run(paths[1], "--control", paths[0])
    assert slower.returncode == 1 and "regression: slower" in slower.stdout
    error = run(paths[1], "--control", "missing.jsonl")
    assert error.returncode == 2 and error.stderr == "error: missing.jsonl: cannot be read: No such file or directory\n"


def test_a_test_id_is_whole_in_the_output_however_long(detect, write):
    long = f"test_train[{'a_model_with_a_very_long_name_' * 3}-cpu-eager]"
    found = detect(write(run_of(1, {long: 1.0})), "--control", write(run_of(0, {long: 1.0})))
    assert sum(long in line for line in found.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r0000.jsonl.gz"], "either --store or --control"),
        (["r0000.jsonl.gz", "--store", "store", "--control", "r0001.jsonl.gz"], "either --store or --control"),
        (["r0000.jsonl.gz", "--control", "r0001.jsonl.gz", "--add"], "--add needs --store"),
        (["r0000.jsonl.gz", "--store", "nowhere"], "no such store"),
        (["r0000.jsonl.gz", "--store", "s3://BUCKET"], "not a name of a bucket"),
        (["missing.jsonl", "--control", "r0000.jsonl.gz"], "missing.jsonl: cannot be read"),
        (["r0000.jsonl.gz", "--control", "other.jsonl.gz"], "class 'cpu-4t', run other of 'gpu'"),
        (["r0000.jsonl.gz", "--control", "r0001.jsonl.gz", "--policy", "x"], "known: default, smoke"),
        (["r0000.jsonl.gz", "--control", "r0001.jsonl.gz", "--json", "no/folder.json"], "cannot be written"),
        (["r0000.jsonl.gz", "--store", ".", "--pin", "v1"], "has no pin 'v1'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(tmp_path, detect, write, arguments, message):
    for run in (run_of(0, {A: 1.0}), run_of(1, {A: 1.0}), run_of(2, {A: 1.0}, machine_class="gpu", run="other")):
        write(run)
    found = detect(*arguments)
    assert found.returncode == 2, found.stdout
    assert message in found.stderr and found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "--store", ".", "runs/a/b"], "is not the key of a run"),
        (["history", "--store", ".", "smoke", "cpu-4t"], "no runs of smoke"),
        (["rebuild", "--store", "."], "no such runs"),
        (["list", "--store", "typo"], "no such store"),
    ],
)
def test_an_error_of_a_baseline_command_is_one_line_and_exit_code_2(torchbench, arguments, message):
    found = torchbench("baseline", *arguments)
    assert found.returncode == 2
    assert message in found.stderr and found.stderr.count("\n") == 1
