"""The main job, end to end, nothing mocked: a build with one slower operator against nights of the untouched build."""

import json
import re
from pathlib import Path

import pytest
from nights import Night, Nights
from pipeline import write_suite
from slow_build import make_slow_build

from baselines.runs import load_run
from baselines.store import open_store
from score.taxonomy import published_taxonomy
from score.v1 import score_v1
from torchbenchmark.formats.run_records import measurements_of


def slowed(tests) -> set[str]:
    return {test for test in tests if "dlrm" in test}


def confirmed(night: Night) -> set[str]:
    tried = night.summary["report"]["confirmation"]["tried"]
    return {one["test"] for one in tried if one["verdict"] == "confirmed" and one["kind"] == "regression"}


def inside(body: str) -> str:
    """What an issue says of both builds' profiles."""
    return body.partition("Inside, both builds profiled by turns")[2].partition("</details>")[0]


def score_of(folder: Path, reference: Night, night: Night) -> float:
    """The published score of one night against another, from what the store keeps of both."""
    store = open_store(str(folder / "store"))
    times = [
        measurements_of(load_run(store, one.summary["key"]), one.summary["key"]).latencies for one in (reference, night)
    ]
    assert times[0] != times[1]
    return score_v1(*times, published_taxonomy().domain_of).total


@pytest.mark.timeout(1500)
def test_a_slower_operator_is_confirmed_on_one_night_and_filed_on_the_next_in_one_issue(tmp_path):
    # The model of the slowed operator, and one without it, which start quickly; repeat_slow_build.py has the whole
    # smoke suite.
    suite = write_suite(tmp_path, ["dlrm", "soft_actor_critic"])
    nights = Nights(tmp_path, suite=str(suite), budget_s=0.1, attribute={"pairs": 3})
    first = nights.run()
    assert first.exit_code == 0, first.output
    assert first.summary["verdict"] == "baseline made"
    assert first.output.rstrip().splitlines()[-1].startswith("verdict: baseline made")
    every = {row["test"] for row in first.summary["report"]["rows"]}
    assert len(every) == 2 and len(slowed(every)) == 1

    again = nights.run()
    assert again.exit_code == 0, (
        "one build against itself has nothing to confirm, whatever the machine did\n" + again.output
    )
    assert again.summary["verdict"] == "clean"
    assert again.summary["report"]["confirmation"]["tried"] == []

    # Slower by far more than other tests beside this one can move it.
    slow_python = make_slow_build(tmp_path / "slow", operator="embedding_bag", inference=80)
    # Killed while it confirms, it goes on with the pairs that it has.
    left = nights.killed_while_it_confirms(slow_python, pairs=3)
    second = nights.run(slow_python)
    assert second.exit_code == 1, second.output
    assert "finishing the night" in second.output
    there = [int(count) for count in re.findall(r"(\d+) pairs? are there from before", second.output)]
    assert there and there[0] >= len(left), second.output
    assert confirmed(second) == slowed(every), second.output
    assert nights.issues == [], "one night is not enough"
    assert "confirmed slower" in second.output.rstrip().splitlines()[-1]
    # Of wall latency, which this machine's neighbours move by a tenth: what was measured is scored, whatever it is.
    assert second.summary["score"]["total"] == pytest.approx(score_of(tmp_path, first, second), rel=1e-9)
    assert second.summary["score_reference"].startswith("the run of ")
    assert second.summary["score"]["coverage"]["fraction"] == 1.0

    third = nights.run(slow_python)
    assert third.exit_code == 1, third.output
    (issue,) = nights.issues
    body = issue.read_text()
    assert all(f"`{test}`" in body for test in slowed(every))
    assert "1 test is slower" in body and "confirmed twice" in body
    assert "aten::embedding_bag" in inside(body), "its calls are counted exactly, however noisy the machine is"
    assert "| `aten::embedding_bag` | CPU | " in body and "called more often" in body
    assert third.output.count("profiling both builds by turns") == 1
    assert "startup_code.overlay.pth" in body, "what differs between the builds"
    (filed,) = third.summary["report"]["confirmation"]["filed"]
    assert filed["kind"] == "regression"
    assert {one["test"] for one in filed["intervals"]} == slowed(every)
    assert all(one["low"] > 0.005 for one in filed["intervals"]), "beyond the margin, with the whole interval"

    fourth = nights.run(slow_python)
    assert fourth.exit_code == 1, fourth.output
    assert "still slower" in fourth.output
    assert "profiling both builds" not in fourth.output and inside(issue.read_text()) == inside(body)
    assert nights.issues == [issue], "updated, not doubled"
    assert [entry["effect"] for entry in fourth.summary["issues"]] == ["updated"]

    clean = nights.run()
    assert clean.exit_code == 0, clean.output
    assert clean.summary["verdict"] == "clean"
    assert nights.issues == [issue]
    # Whatever the machine did: the build from before the change is not slower than itself.
    told = issue.read_text()
    assert "recovered, night 1 of 3" in told or "tonight's build is that from before it" in told

    stored = sorted(path.name for path in (tmp_path / "store" / "runs").rglob("*.jsonl.gz"))
    assert len(stored) == 6
    assert not (tmp_path / "work" / "tonight.jsonl").exists()
    assert not (tmp_path / "work" / "confirm").exists()


def test_a_nightly_of_a_build_without_torch_is_broken_in_one_line(tmp_path, torchbench):
    torchbench_config = tmp_path / "nightly.yaml"
    torchbench_config.write_text(json.dumps({"python": "/bin/sh", "store": "store"}))
    ended = torchbench("nightly", "--config", torchbench_config)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: /bin/sh:")
    assert len(ended.stderr.splitlines()) == 1
