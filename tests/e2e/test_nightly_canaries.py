"""Nightlies with canaries, for real: measured first and last, on one machine and in shards, also if they are killed or
their build is not the one that was frozen."""

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from nights import Nights
from pipeline import command_line, write_suite
from slow_build import make_slow_build

from torchbenchmark.canaries.measuring import canary_file
from torchbenchmark.records import Run, Status, decode_run, read_run, replace_lines

CANARIES = """
name: canary
description: Five quick ones.
models: [dlrm]
tests: [eval]
preset: tiny
batch_sizes: [default, 2, 4, 8, 16]
"""


@pytest.fixture
def nights(tmp_path, monkeypatch) -> Nights:
    """Nights of one small model, with canaries on this very interpreter."""
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    (tmp_path / "canaries.yaml").write_text(CANARIES)
    suite = write_suite(tmp_path, ["dlrm"])
    canary = {"python": sys.executable, "suite": "canaries.yaml"}
    made = Nights(tmp_path, suite=str(suite), rounds=1, budget_s=0.05, canary=canary)
    (tmp_path / "nightly.yaml").write_text(yaml.safe_dump(made.config))
    return made


def stored(nights: Nights, suite: str) -> list[Run]:
    paths = sorted((nights.folder / "store" / "runs" / suite).rglob("*.jsonl.gz"))
    return [decode_run(path.read_bytes(), str(path)) for path in paths]


def records_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") - 1 if path.exists() else 0


def kill_when(nights: Nights, path: Path, records: int) -> Run:
    """Start a nightly and kill it as soon as the file has so many records: what it holds then."""
    config = nights.folder / "nightly.yaml"
    process = subprocess.Popen(
        command_line("nightly", "--config", config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while records_in(path) < records:
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline, f"{path} never had {records} records"
        time.sleep(0.01)
    process.kill()
    process.wait()
    return read_run(path)


def test_a_nightly_measures_its_canaries_first_and_last_and_a_killed_one_goes_on(nights):
    tonight = nights.folder / "work" / "tonight.jsonl"
    held = {
        "first": kill_when(nights, canary_file(tonight, "first"), 2),
        "night": kill_when(nights, tonight, 1),
        "last": kill_when(nights, canary_file(tonight, "last"), 3),
    }
    ended = nights.run()
    assert ended.exit_code == 0, ended.output
    (night,) = stored(nights, "trial")
    first, last = stored(nights, "canary")
    for turn, run in (("first", first), ("last", last)):
        assert run.header.run == f"{night.header.run}-canary-{turn}"
        assert (run.header.canary.run, run.header.canary.turn) == (night.header.run, turn)
        assert run.header.machine_class == night.header.machine_class
        assert run.header.measuring.settings == night.header.measuring.settings
        assert [record.status for record in run.records] == [Status.OK] * 5
        assert [len(record.processes) for record in run.records] == [1] * 5
    for part, run in (("first", first), ("night", night), ("last", last)):
        before = held[part].records
        assert run.records[: len(before)] == before, f"{part}: measured twice"
    began = {
        part: min(one.processes[0].started for one in run.records)
        for part, run in (("first", first), ("night", night), ("last", last))
    }
    assert began["first"] < began["night"] < began["last"]
    assert ended.summary["canaries"]["why_not"] == "0 comparable nights before, and a level needs 7"
    assert ended.summary["planned"] == 1, "canaries are no tests of the night"
    assert not list((nights.folder / "work").glob("*.jsonl*"))

    # Killed once more, when all was measured and stored.
    for path, run in ((tonight, night), (canary_file(tonight, "first"), first), (canary_file(tonight, "last"), last)):
        replace_lines(path, [run.header, *run.records])
    again = nights.run()
    assert "finishing the night" in again.output and "round 1 of" not in again.output
    assert again.summary["run"] == night.header.run
    assert len(stored(nights, "trial")) == 1 and len(stored(nights, "canary")) == 2


@pytest.mark.long
def test_a_frozen_build_that_changed_is_refused_and_told_and_the_night_goes_on(nights, torchbench):
    build = make_slow_build(nights.folder / "frozen", training=0, inference=0)
    nights.config["canary"] = {"python": str(build), "suite": "canaries.yaml"}
    (nights.folder / "nightly.yaml").write_text(yaml.safe_dump(nights.config))
    frozen = torchbench("canary")
    assert frozen.returncode == 0, frozen.stderr
    *_, interpreter = frozen.stdout.splitlines()
    assert interpreter == str(build)
    assert "build id: " in frozen.stdout and "lock: " in frozen.stdout
    assert frozen.stdout.count("can be measured") == 5
    assert "frozen:" not in torchbench("canary").stdout, "it was frozen before"

    (packages,) = (nights.folder / "frozen").glob("lib/python*/site-packages")
    (packages / "upgraded-2.0.dist-info").mkdir()
    (packages / "upgraded-2.0.dist-info" / "METADATA").write_text("Name: upgraded\nVersion: 2.0\n")
    refused = torchbench("canary")
    assert refused.returncode == 2
    assert "is not what was frozen on" in refused.stderr and "upgraded absent -> 2.0" in refused.stderr
    night = nights.run()
    assert night.exit_code == 0, night.output
    said = " ".join(night.output.split())
    assert said.count("upgraded absent -> 2.0") >= 2 and "warning: the first canaries of run" in said
    (whole,) = stored(nights, "trial")
    assert {record.status for record in whole.records} == {Status.OK}
    for run in stored(nights, "canary"):
        assert not run.missing and {record.status for record in run.records} == {Status.ERROR}
        assert all("upgraded absent -> 2.0" in record.reason for record in run.records)
    assert torchbench("canary", "--anew").returncode == 0


@pytest.mark.long
def test_a_shard_measures_its_canaries_and_the_workflow_stores_them_with_the_night(nights, torchbench):
    folder = nights.folder
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
    planned = torchbench("workflow", "plan", "--shards", 1, **files)
    assert planned.returncode == 0, planned.stdout
    shard, shards = ("--plan", "plan.json", "--shard", "1/1", "--out", "shards/shard.jsonl"), folder / "shards"
    shards.mkdir()
    measured = torchbench("workflow", "measure", *shard, "--into", "build", **files)
    assert measured.returncode == 0, measured.stderr + measured.stdout
    assert "::warning" not in measured.stdout
    names = ["shard.canary-first.jsonl", "shard.canary-last.jsonl", "shard.jsonl"]
    assert sorted(path.name for path in shards.iterdir()) == names

    (shards / "shard.canary-last.jsonl").unlink()  # as if it had been killed before
    first = (shards / "shard.canary-first.jsonl").read_bytes()
    resumed = torchbench("run", *shard, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "-canary-last: 5 of 5 tests" in resumed.stdout and "-canary-first: " not in resumed.stdout
    assert (shards / "shard.canary-first.jsonl").read_bytes() == first

    digest = hashlib.sha256((folder / "plan.json").read_bytes()).hexdigest()
    conclude = ("workflow", "conclude", "shards", "--plan", "plan.json", "--digest", digest, "--issues", "issues.json")
    ended = torchbench(*conclude, **files)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "warning" not in ended.stdout
    runs = stored(nights, "canary")
    assert [run.header.canary.turn for run in runs] == ["first", "last"]
    assert all(run.coverage == 1.0 for run in runs)
    again = torchbench(*conclude, **files)
    assert again.returncode == 0 and len(stored(nights, "canary")) == 2


@pytest.mark.long
def test_a_job_whose_canaries_cannot_be_measured_succeeds_with_a_warning(nights, torchbench):
    nights.config["canary"] = {"python": "/no/such/python", "suite": "canaries.yaml"}
    (nights.folder / "nightly.yaml").write_text(yaml.safe_dump(nights.config))
    files = {name: str(nights.folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
    assert torchbench("workflow", "plan", "--shards", 1, **files).returncode == 0
    measure = ("workflow", "measure", "--plan", "plan.json", "--shard", "1/1", "--into", "build", "--out", "1.jsonl")
    ended = torchbench(*measure, **files)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (warning,) = [line for line in ended.stdout.splitlines() if line.startswith("::warning")]
    assert warning.startswith("::warning title=shard 1/1%3A canaries::the first canaries of run ")
    assert "/no/such/python: not a usable interpreter" in warning
    assert not read_run(nights.folder / "1.canary-last.jsonl").missing
