"""The workflows as they stand, run by act: a clean night, a slowed build, a machine that dies; and the watchdog."""

import os
import re
import secrets
import signal
import time
from pathlib import Path

import pytest
from acting import Acting, plan_of
from github_servers import BOT, REPOSITORY, TOKENS, GitHub, github, needs_emulator
from pipeline import write_suite
from s3_servers import BUCKET, READER_KEY
from slow_build import make_slow_build

from baselines.store import open_store

PATIENCE_S = 600
SLOWED = "test_eval[dlrm-cpu-eager-tiny]"
CONFIG = {
    "suite": "suite.yaml",
    "threads": 1,
    "rounds": 3,
    "budget_s": 0.1,
    "timeout_s": 60,
    "policy": "policy.yaml",
    "store": "$TORCHBENCH_STORE",
    "github": "$GITHUB_REPOSITORY",
    "runners": {"shards": 2},
}

# Both shards are measured at once here, beside whatever other tests run: no change but a gross one is one.
POLICY = {
    "name": "gross",
    "description": "Three times as slow.",
    "per_test": 2.0,
    "total": 0.9,
    "nights": 7,
    "min_coverage": 0.8,
    "judged": {"cpu": [{"channel": "cpu_time", "statistic": "p20"}]},
}


@pytest.fixture
def tracker(tmp_path):
    with github(tmp_path) as running:
        yield running


@pytest.fixture
def acting(tmp_path, tracker, seaweedfs_endpoint, monkeypatch):
    seaweedfs_endpoint.use(monkeypatch)
    writer = seaweedfs_endpoint.variables()
    usual = make_slow_build(tmp_path / "usual", operator="embedding_bag", training=0, inference=0)
    slow = make_slow_build(tmp_path / "slow", operator="embedding_bag", inference=80)
    folder = tmp_path / "acting"
    (folder / "checkout").mkdir(parents=True)
    write_suite(folder / "checkout", ["dlrm", "soft_actor_critic"])
    return Acting(
        folder=folder,
        github=tracker.url,
        token=TOKENS[BOT],
        roles={"writer": writer, "reader": {**writer, "AWS_ACCESS_KEY_ID": READER_KEY}},
        variables={
            "TORCHBENCH_CONFIG": "usual.yaml",
            "TORCHBENCH_STORE": f"s3://{BUCKET}/{secrets.token_hex(8)}/nightly",
            "TORCHBENCH_REGION": "us-east-1",
            "TORCHBENCH_READER_ROLE": "reader",
            "TORCHBENCH_WRITER_ROLE": "writer",
        },
        repository=REPOSITORY,
        files={
            "usual.yaml": {**CONFIG, "python": str(usual)},
            "slowed.yaml": {**CONFIG, "python": str(slow)},
            "policy.yaml": POLICY,
        },
    )


def stored_shards(acting: Acting) -> list[str]:
    return sorted(open_store(acting.variables["TORCHBENCH_STORE"]).list("runs/"))


def kill_the_driver_of(model: str, acting: Acting) -> str:
    """Kill the measuring step of the model's shard, as soon as it is there, as the system does when memory ends.

    Returns the shard.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (acting.artifacts / "plan" / "plan.json").exists():
        assert time.monotonic() < deadline, "nothing was planned"
        time.sleep(0.02)
    time.sleep(0.2)  # the copying ends
    shard = f"{plan_of(acting)['shards'].index([model]) + 1}/2"
    kill_the_step(["measure", shard], acting)
    return shard


def kill_the_step(named: list[str], acting: Acting) -> None:
    """Kill the process that was started with these arguments, as soon as it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
                here = set(named) <= set(arguments) and (entry / "cwd").readlink().is_relative_to(acting.folder)
                if here:
                    os.kill(int(entry.name), signal.SIGKILL)
                    return
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(f"{' '.join(named)} was never started")


def confirm_the_slowed_build(acting: Acting, tracker: GitHub, issues_before: int) -> None:
    """The first night of the slowed build: confirmed by pairs, told, and not filed."""
    exit_code, log = acting.run_with_its_own_artifacts("nightly", TORCHBENCH_CONFIG="slowed.yaml")
    assert exit_code == 0, log
    assert f"::warning title=nightly%3A regression::confirmed slower: {SLOWED}" in log, log
    assert "not measured yet" not in log  # the plan was balanced by the first night
    assert "Summary - ## Nightly: regression" in log
    assert re.search(r"\[nightly/confirm-1 *\] 🏁  Job succeeded", log), log
    assert sorted(path.name for path in acting.artifacts.iterdir()) == [
        "answers-confirm-1", "issues", "pairs-confirm-1", "plan", "questions", "shard-1-of-2", "shard-2-of-2",
    ]  # fmt: skip
    assert len(tracker.issues()) == issues_before and len(stored_shards(acting)) == 4


@needs_emulator
@pytest.mark.timeout(1500)
def test_a_clean_night_and_one_of_a_slowed_build(acting, tracker):
    exit_code, log = acting.run("watchdog")
    assert exit_code == 0, log
    assert "::warning title=watchdog::trial on any class: there has been no night" in log
    (issue,) = tracker.issues()
    assert (issue["title"], issue["state"]) == ("No nightly of trial on any class", "open")

    exit_code, log = acting.run("nightly")
    assert exit_code == 0, log
    assert "verdict: baseline made" in log
    assert "::warning" not in log and "::error" not in log
    assert len(tracker.issues()) == 1
    assert len(stored_shards(acting)) == 2

    exit_code, log = acting.run("watchdog")
    assert exit_code == 0, log
    (issue,) = tracker.issues()
    assert issue["state"] == "closed"

    # What is confirmed on one night is a success with an annotation, and no issue yet.
    confirm_the_slowed_build(acting, tracker, issues_before=1)


@needs_emulator
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_what_the_other_shards_show_is_kept_and_filed_when_the_machine_of_one_dies(acting, tracker):
    exit_code, log = acting.run("nightly")
    assert exit_code == 0 and "verdict: baseline made" in log, log
    acting.forget_artifacts()
    workflow = acting.start("nightly", acting.folder / "last.log", TORCHBENCH_CONFIG="slowed.yaml")
    dying = kill_the_driver_of("dlrm", acting)
    exit_code, log = workflow.wait(timeout=PATIENCE_S), (acting.folder / "last.log").read_text()
    assert exit_code == 1, log
    assert f"shard {dying} is missing" in log
    assert "::error title=nightly" in log
    assert len(stored_shards(acting)) == 3
    assert tracker.issues() == []
    assert re.search(r"\[nightly/file *\] 🏁  Job succeeded", log), "what the others showed is filed"


@needs_emulator
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_build_that_is_slow_on_two_nights_is_filed_on_the_second_and_once(acting, tracker):
    exit_code, log = acting.run("nightly")
    assert exit_code == 0 and "verdict: baseline made" in log, log
    confirm_the_slowed_build(acting, tracker, issues_before=0)

    exit_code, log = acting.run_with_its_own_artifacts("nightly", TORCHBENCH_CONFIG="slowed.yaml")
    assert exit_code == 0, log
    assert f"there again: {SLOWED} cpu_time +" in log, log
    (issue,) = tracker.issues()
    assert issue["state"] == "open" and issue["user"]["login"] == BOT
    assert "slower by up to" in issue["title"] and f"`{SLOWED}`" in issue["body"] and "confirmed twice" in issue["body"]
    assert len(stored_shards(acting)) == 6


@needs_emulator
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_night_whose_confirming_machine_dies_ends_and_files_nothing_slower(acting, tracker):
    exit_code, log = acting.run("nightly")
    assert exit_code == 0 and "verdict: baseline made" in log, log
    acting.forget_artifacts()
    workflow = acting.start("nightly", acting.folder / "killed.log", TORCHBENCH_CONFIG="slowed.yaml")
    kill_the_step(["confirm", "questions/confirm-1.json.gz"], acting)
    exit_code, log = workflow.wait(timeout=PATIENCE_S), (acting.folder / "killed.log").read_text()
    assert exit_code == 1, log
    assert "::warning title=not measured again::the confirming job has left no answers" in log, log
    assert "::warning title=nightly%3A regression::slower by over 200%25: " in log, log
    assert re.search(r"\[nightly/file *\] 🏁  Job succeeded", log), log
    assert tracker.issues() == [] and len(stored_shards(acting)) == 4
