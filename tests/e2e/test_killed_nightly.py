"""A nightly that is killed, or started twice, stores every night once and files nothing twice."""

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from nights import Night, Nights
from pipeline import command_line, write_suite

from baselines.store import open_store
from torchbenchmark.records import decode_run, encode_run, read_run, replace_lines


def small_nights(folder: Path, rounds: int) -> Nights:
    """Nights of one small model, some seconds each."""
    return Nights(folder, suite=str(write_suite(folder, ["dlrm"])), rounds=rounds, budget_s=0.05)


@pytest.fixture(scope="module")
def first_night(tmp_path_factory) -> tuple[Nights, Night]:
    """One night, stored; each test goes on with a copy."""
    nights = small_nights(tmp_path_factory.mktemp("first"), rounds=1)
    return nights, nights.run()


@pytest.fixture
def nights(first_night, tmp_path) -> Nights:
    folder = shutil.copytree(first_night[0].folder, tmp_path / "nights")
    return Nights(folder, **first_night[0].config)


def stored_runs(nights: Nights) -> list[Path]:
    return sorted((nights.folder / "store" / "runs").rglob("*.jsonl.gz"))


def test_a_nightly_killed_at_random_moments_ends_as_one_night(tmp_path):
    nights = small_nights(tmp_path, rounds=2)
    config = nights.folder / "nightly.yaml"
    config.write_text(yaml.safe_dump(nights.config))
    moments = random.Random()  # any moment must do, so none is chosen
    for _ in range(3):
        process = subprocess.Popen(
            command_line("nightly", "--config", config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(timeout=moments.uniform(1.0, 9.0))
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    ended = nights.run()
    assert ended.exit_code == 0, ended.output
    assert ended.summary["delivered"]["ok"] == 1
    runs = stored_runs(nights)
    assert len(runs) == len({path.parent.name for path in runs}) <= 2, "killed nights became nights of their own"
    assert not (nights.folder / "work" / "tonight.jsonl").exists()
    assert not list((nights.folder / "work").glob("abandoned-*"))


def test_a_night_that_was_measured_but_not_filed_is_finished_and_not_measured_again(nights, first_night):
    (path,) = stored_runs(nights)
    run = decode_run(path.read_bytes(), str(path))
    replace_lines(nights.folder / "work" / "tonight.jsonl", [run.header, *run.records])
    again = nights.run()
    assert again.exit_code in (0, 1), again.output
    assert "finishing the night" in again.output
    assert again.summary["run"] == first_night[1].summary["run"]
    assert stored_runs(nights) == [path]


def test_an_interrupted_run_of_another_build_is_kept_aside_and_a_new_one_measured(nights):
    (path,) = stored_runs(nights)
    run = decode_run(path.read_bytes(), str(path))
    other = run.header.model_copy(update={"build": run.header.build.model_copy(update={"id": "2.0.0-12345678"})})
    replace_lines(nights.folder / "work" / "tonight.jsonl", [other])
    night = nights.run()
    assert night.exit_code in (0, 1), (
        night.output
    )  # one short round beside other tests: whether it is slower says nothing
    assert "was begun on build 2.0.0-12345678" in night.output
    (aside,) = (nights.folder / "work").glob("abandoned-*.jsonl")
    assert read_run(aside).header == other
    assert len(stored_runs(nights)) == 2


def test_the_history_of_a_stored_night_can_be_lost_and_the_next_night_compares_all_the_same(nights):
    (history,) = (nights.folder / "store" / "history").rglob("*.json.gz")
    history.unlink()
    night = nights.run()
    assert night.summary["verdict"] in ("clean", "regression"), night.output
    assert night.summary["report"]["baseline"] is not None
    store = open_store(str(nights.folder / "store"))
    assert len(store.list("runs/")) == 2
    for key in store.list("runs/"):
        content = store.read(key)
        assert encode_run(decode_run(content, key)) == content


def test_a_damaged_reference_costs_the_score_and_nothing_else(nights):
    (path,) = stored_runs(nights)
    path.write_bytes(path.read_bytes()[:200])
    night = nights.run()
    assert night.exit_code in (0, 1), night.output
    assert night.summary["score"] is None
    assert "damaged gzip" in night.summary["score_problem"]
    assert night.summary["report"]["baseline"] is not None
    assert not (nights.folder / "work" / "tonight.jsonl").exists()
