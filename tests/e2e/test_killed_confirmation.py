"""A nightly that is killed while it measures again what it suspects: it goes on, and no pair is measured twice."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from nights import Nights
from pipeline import command_line, write_suite
from slow_build import make_slow_build

ENOUGH_PAIRS, PATIENCE_S = 3, 240


def pairs_so_far(work: Path) -> list[str]:
    """The lines of the pairs that are there, whole ones only."""
    files = sorted((work / "confirm").rglob("*-pairs-*.jsonl"))
    lines = [line for file in files for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if '"kind":"pair"' in line]


def killed_with_pairs(nights: Nights, python: Path) -> list[str]:
    """Start the night, kill it when some pairs are there, and return them."""
    config = nights.folder / "nightly.yaml"
    config.write_text(yaml.safe_dump({**nights.config, "python": str(python)}))
    process = subprocess.Popen(
        command_line("nightly", "--config", config),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    give_up = time.monotonic() + PATIENCE_S
    while len(found := pairs_so_far(nights.folder / "work")) < ENOUGH_PAIRS:
        assert process.poll() is None and time.monotonic() < give_up, "no pair was measured"
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return found


@pytest.mark.timeout(900)
def test_a_night_killed_while_it_confirms_goes_on_with_the_pairs_it_has(tmp_path):
    nights = Nights(tmp_path, suite=str(write_suite(tmp_path, ["dlrm"])), rounds=2, budget_s=0.05)
    assert nights.run().exit_code == 0
    slow = make_slow_build(tmp_path / "slow", operator="embedding_bag", training=400, inference=400)
    left = killed_with_pairs(nights, slow)
    night = nights.run(slow)
    assert night.exit_code == 1, night.output
    assert "finishing the night" in night.output
    there = [int(count) for count in re.findall(r"(\d+) pairs? are there from before", night.output)]
    assert there and there[0] >= len(left), night.output
    (tried,) = night.summary["report"]["confirmation"]["tried"]
    assert tried["verdict"] == "confirmed" and tried["effect"] > 0.5
    assert nights.issues == []
    assert len(list((tmp_path / "store" / "runs").rglob("*.jsonl.gz"))) == 2
    assert not (tmp_path / "work" / "confirm").exists()
