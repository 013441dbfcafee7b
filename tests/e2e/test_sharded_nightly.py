"""A nightly of two shards on the command line: planned, measured apart, concluded as they come."""

import dataclasses
import json
from datetime import timedelta

import pytest
import yaml
from pipeline import write_suite

from torchbenchmark.records import Run, encode_run, read_run, replace_lines
from torchbenchmark.shards import read_plan


@pytest.fixture
def nightly(tmp_path, torchbench):
    """The configuration of a small nightly; gives what `torchbench conclude` of some shard files says."""
    suite = write_suite(tmp_path, ["dlrm", "soft_actor_critic"])
    config = {"suite": str(suite), "threads": 1, "rounds": 1, "budget_s": 0.05, "policy": "smoke", "store": "store"}
    (tmp_path / "nightly.yaml").write_text(yaml.safe_dump({**config, "work": "work", "outbox": "outbox"}))

    def conclude(*files):
        ended = torchbench("conclude", *files)
        assert "internal error" not in ended.stderr, ended.stderr
        return ended, json.loads((tmp_path / "work" / "nightly.json").read_text())

    return conclude


def slowed(path, factor: float) -> Run:
    """The shard with all its times multiplied, as of the next night."""
    run = read_run(path)
    for channel in ("latency", "cpu_time", "cpu_time_adjusted"):
        for record in run.records:
            for process in record.processes:
                old = process.channels[channel]
                new = old.model_copy(
                    update={
                        "samples": tuple(sample * factor for sample in old.samples),
                        **{name: getattr(old, name) * factor for name in ("median", "mean", "p20")},
                    }
                )
                process.channels[channel] = new
    return run


def as_next_night(run: Run, days: int) -> Run:
    header = run.header.model_copy(
        update={"run": f"{run.header.run}.{days}", "started": run.header.started + timedelta(days=days)}
    )
    return dataclasses.replace(
        run,
        header=header,
        records=tuple(record.model_copy(update={"run": header.run}) for record in run.records),
    )


def test_shards_are_planned_measured_apart_and_reported_as_they_come(torchbench, tmp_path, nightly):
    planned = torchbench("plan", "--shards", 2)
    assert planned.returncode == 0, planned.stderr
    plan = read_plan(tmp_path / "plan.json")
    assert sorted(plan.shards) == [("dlrm",), ("soft_actor_critic",)]
    for index in (1, 2):
        measured = torchbench("run", "--plan", "plan.json", "--shard", f"{index}/2", "--out", f"{index}.jsonl")
        assert measured.returncode == 0, measured.stderr
    first, second = (read_run(tmp_path / f"{index}.jsonl") for index in (1, 2))
    assert first.header.run == second.header.run == plan.run
    assert first.header.started == second.header.started == plan.started
    assert first.header.plan == second.header.elsewhere and second.header.plan == first.header.elsewhere

    ended = torchbench("run", "--plan", "plan.json", "--shard", "2/2", "--out", "1.jsonl", "--resume")
    assert ended.returncode == 2 and "holds shard 1/2 of run" in ended.stderr

    # One shard died.
    ended, summary = nightly("1.jsonl")
    assert ended.returncode == 2
    assert summary["verdict"] == "broken"
    assert "shard 2/2 is missing, 1 of 2 tests" in summary["reason"]
    assert "shard 2/2 is missing" in ended.stdout.splitlines()[-1]
    # It comes a day late.
    ended, summary = nightly("2.jsonl")
    assert ended.returncode == 0, ended.stdout
    assert summary["verdict"] == "baseline made"
    assert summary["planned"] == 2 and summary["delivered"]["ok"] == 2
    # It comes twice, the second time with other results.
    replace_lines(tmp_path / "again.jsonl", [(again := slowed(tmp_path / "2.jsonl", 3.0)).header, *again.records])
    ended, summary = nightly("1.jsonl", "again.jsonl")
    assert "has come before, with other results: those stay" in " ".join(ended.stdout.split())
    assert summary["verdict"] == "baseline made" and summary["delivered"]["ok"] == 2
    (stored,) = (tmp_path / "store" / "runs").rglob("2-of-2.jsonl.gz")
    assert stored.read_bytes() == encode_run(second)

    # The next night, one model is slower; its shard comes first and then the other.
    files = []
    for index in (1, 2):
        run = as_next_night(slowed(tmp_path / f"{index}.jsonl", 2.0 if index == 2 else 1.0), 1)
        files.append(f"next-{index}.jsonl")
        replace_lines(tmp_path / files[-1], [run.header, *run.records])
    ended, summary = nightly(files[1])
    assert ended.returncode == 1
    assert [issue["effect"] for issue in summary["issues"]] == ["created"]
    assert "shard 1/2 is missing" in summary["reason"]
    ended, summary = nightly(*files)
    assert ended.returncode == 1
    assert "missing" not in summary["reason"]
    assert len(list((tmp_path / "outbox").glob("*.md"))) == 1

    # A shard whose machine died in the middle is not taken for a whole one.
    cut = as_next_night(first, 2)
    replace_lines(tmp_path / "cut.jsonl", [cut.header])
    ended = torchbench("conclude", "cut.jsonl")
    assert ended.returncode == 2
    assert "ended early, with 0 of 1 tests" in " ".join(ended.stderr.split())

    # The next plan is balanced by what was recorded.
    planned = torchbench("plan", "--shards", 1)
    assert planned.returncode == 0 and "not measured yet" not in planned.stdout


@pytest.mark.long
def test_a_shard_needs_its_plan(torchbench, tmp_path, nightly):
    ended = torchbench("run", "--shard", "1/2", "--suite", tmp_path / "suite.yaml")
    assert (ended.returncode, ended.stderr.strip()) == (
        2,
        "error: --shard 1/2: needs the --plan that all shards of the run have",
    )
    assert torchbench("plan", "--shards", 2).returncode == 0
    ended = torchbench("plan", "--shards", 1, "--out", "no/such/folder.json")
    assert ended.returncode == 2 and "no/such/folder.json: cannot be written" in ended.stderr
    ended = torchbench("run", "--plan", "plan.json", "--shard", "1/3")
    assert ended.returncode == 2 and "the plan has 2 shards" in ended.stderr
    for option in (("--test", "dlrm"), ("--suite", "smoke"), ("--rounds", 3), ("--models", tmp_path)):
        ended = torchbench("run", "--plan", "plan.json", "--shard", "1/2", *option)
        assert ended.returncode == 2 and f"{option[0]}: comes from the --plan" in ended.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["suite"] == "suite.yaml", "so that it holds in another checkout"
    plan["shards"][0] = ["resnet18"]
    (tmp_path / "other.json").write_text(json.dumps(plan))
    ended = torchbench("run", "--plan", "other.json", "--shard", "1/2")
    assert ended.returncode == 2 and "and the suite differ in " in ended.stderr and "resnet18" in ended.stderr
    ended = torchbench("plan", "--shards", 3)
    assert ended.returncode == 2 and "the suite has 2 models" in ended.stderr
