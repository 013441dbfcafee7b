"""The workflows as they stand, run by act: a clean night, a slowed build, a machine that dies; and the watchdog."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from acting import Acting, plan_of
from github_servers import BOT, REPOSITORY, TOKENS, github, needs_emulator
from pipeline import write_suite
from s3_servers import BUCKET, READER_KEY
from slow_build import make_slow_build

from baselines.store import open_store

PREFIX = "workflow/nightly"
CONFIG = {
    "suite": "suite.yaml",
    "threads": 1,
    "rounds": 3,
    "budget_s": 0.1,
    "timeout_s": 60,
    "policy": "policy.yaml",
    "store": "$TORCHBENCH_STORE",
    "github": "$GITHUB_REPOSITORY",
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
    slow = make_slow_build(tmp_path / "slow", operator="embedding_bag", training=250, inference=250)
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
            "TORCHBENCH_STORE": f"s3://{BUCKET}/{PREFIX}",
            "TORCHBENCH_REGION": "us-east-1",
            "TORCHBENCH_READER_ROLE": "reader",
            "TORCHBENCH_WRITER_ROLE": "writer",
            "TORCHBENCH_SHARDS": "2",
        },
        repository=REPOSITORY,
        files={
            "usual.yaml": {**CONFIG, "python": str(usual)},
            "slowed.yaml": {**CONFIG, "python": str(slow)},
            "policy.yaml": POLICY,
        },
    )


def stored_shards() -> list[str]:
    return sorted(open_store(f"s3://{BUCKET}/{PREFIX}").list("runs/"))


def kill_the_driver_of(model: str, acting: Acting) -> str:
    """Kill the measuring step of the model's shard, as soon as it is there, as the system does when memory ends.

    Returns the shard.
    """
    deadline, below = time.monotonic() + 120, acting.folder
    while not (acting.artifacts / "plan" / "plan.json").exists():
        assert time.monotonic() < deadline, "nothing was planned"
        time.sleep(0.02)
    time.sleep(0.2)  # the copying ends
    shard = f"{plan_of(acting)['shards'].index([model]) + 1}/2"
    while time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
                if "measure" in arguments and shard in arguments and (entry / "cwd").readlink().is_relative_to(below):
                    os.kill(int(entry.name), signal.SIGKILL)
                    return shard
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(f"shard {shard} was never measured")


@needs_emulator
@pytest.mark.timeout(600)
def test_a_clean_night_a_slowed_build_and_a_machine_that_dies(acting, tracker):
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
    assert len(stored_shards()) == 2

    exit_code, log = acting.run("watchdog")
    assert exit_code == 0, log
    (issue,) = tracker.issues()
    assert issue["state"] == "closed"

    # A regression is a success, with an annotation and an issue.
    exit_code, log = acting.run("nightly", TORCHBENCH_CONFIG="slowed.yaml")
    assert exit_code == 0, log
    assert "::warning title=nightly%3A regression::slower by over 200%25: test_train[dlrm-cpu-eager-tiny] +" in log, log
    assert "not measured yet" not in log  # the plan was balanced by the first night
    assert "Summary - ## Nightly: regression" in log
    _, issue = tracker.issues()
    assert issue["state"] == "open" and issue["user"]["login"] == BOT
    assert "slower by up to" in issue["title"] and "`test_train[dlrm-cpu-eager-tiny]`" in issue["body"]
    assert len(stored_shards()) == 4

    # The next night, the machine of the slower model dies: the other shard is kept, and no second issue is filed.
    shutil.rmtree(acting.artifacts)  # each run has its own
    acting.artifacts.mkdir()
    workflow = acting.start("nightly", acting.folder / "third.log", TORCHBENCH_CONFIG="slowed.yaml")
    dying = kill_the_driver_of("dlrm", acting)
    exit_code, log = workflow.wait(timeout=200), (acting.folder / "third.log").read_text()
    assert exit_code == 1, log
    assert f"shard {dying} is missing" in log
    assert "::error title=nightly" in log
    assert len(stored_shards()) == 5
    assert len(tracker.issues()) == 2
    assert re.search(r"\[nightly/file *\] 🏁  Job succeeded", log), "what the others showed is filed"
