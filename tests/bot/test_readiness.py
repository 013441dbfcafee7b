"""A name in the configuration that is wrong is told before a night begins, and stops none that is measured already."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from night_factory import A, run_of

from baselines.policy import load_policy
from baselines.runs import list_runs
from baselines.store import open_store
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.github.outbox import Outbox
from bot.nightly import run_nightly
from bot.readiness import require_ready
from bot.sharded import conclude_shards
from torchbenchmark.errors import SentinelError
from torchbenchmark.records import replace_lines

ROOT = Path(__file__).parents[2]
FITTING = "test_eval[resnet18-cpu-eager-tiny]: {norm: 0.01}\n"
BUILD = {"index": "https://example.invalid/simple"}
COMMANDS = {
    "nightly": ("nightly",),
    "plan": ("plan", "--shards", "2"),
    "workflow plan": ("workflow", "plan", "--shards", "2"),
    "build": ("build", "--config", "nightly.yaml", "--into", "build"),
}
MISTAKES = {
    "reference": ({"reference": "v1.l"}, "`reference` in the configuration: reference v1.l: no such file"),
    "no times": ({"reference": "notes.md"}, "notes.md: no entry"),
    "other tests": ({"reference": "v1.1"}, "v1.1 has none of the 10 tests of suite smoke on cpu"),
    "policy": ({"policy": "defualt"}, "unknown policy 'defualt'; known: default, smoke"),
    "policy of another device": ({"policy": "cuda.yaml"}, "names no channel for the device 'cpu'; add judged.cpu"),
    "suite": ({"suite": "smok"}, "unknown suite 'smok'; did you mean smoke?"),
    "model": ({"suite": "mine.yaml"}, "unknown model in suite mine: 'resnet81'; did you mean resnet18"),
    "key": ({"polciy": "smoke"}, "nightly.yaml: unknown key polciy; did you mean policy?"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "reference.yaml").write_text(FITTING)
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: d\nmodels: [resnet81]\n")
    (tmp_path / "cuda.yaml").write_text("name: cuda\njudged: {cuda: [{channel: latency, statistic: median}]}\n")
    return tmp_path


def configured(folder: Path, **keys: object) -> NightlyConfig:
    (folder / "nightly.yaml").write_text(yaml.safe_dump({"store": "store", "work": "work", **keys}))
    return load_config(folder / "nightly.yaml")


def refused(folder: Path, command: str) -> str:
    """What a command line says that must end with 2 in one line."""
    ended = subprocess.run(
        [sys.executable, "-m", "bot", *COMMANDS[command]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_OUTPUT": os.devnull, "GITHUB_STEP_SUMMARY": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended.stdout + ended.stderr
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_name_that_is_wrong_is_told_with_what_there_is(folder, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    keys, said = MISTAKES[mistake]
    with pytest.raises(SentinelError) as error:
        require_ready(configured(folder, **keys))
    assert said in str(error.value)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("mistake", ["reference", "policy", "suite"])
def test_every_command_that_leads_to_measuring_refuses_it_before_it_does_anything(folder, command, mistake):
    keys, said = MISTAKES[mistake]
    # Whoever gets as far as to look at the build says so instead.
    build = {"build": BUILD} if command == "build" else {"python": "/bin/sh"}
    (folder / "nightly.yaml").write_text(yaml.safe_dump({"store": "store", "work": "work", **build, **keys}))
    assert said in refused(folder, command)
    assert not (folder / "build").exists()
    assert not (folder / "plan.json").exists()
    assert not (folder / "work" / "tonight.jsonl").exists()


def test_a_configuration_whose_names_are_all_there_is_ready(folder, monkeypatch):
    for keys in ({}, {"reference": "reference.yaml"}, {"suite": "v1", "device": "cuda", "reference": "v1.1"}):
        require_ready(configured(folder, **keys))
    monkeypatch.chdir(folder.parent)
    require_ready(configured(folder, reference="reference.yaml"))


def test_a_reference_that_has_gone_bad_stops_no_verdict(folder):
    config = configured(folder, reference="reference.yaml")
    (folder / "reference.yaml").unlink()
    config.work.mkdir()
    store = open_store(config.store)
    code = conclude_shards(config, store, load_policy("default"), [run_of(0, {A: 1.0})], Outbox(config.outbox))
    assert code == 0
    summary = json.loads((config.work / "nightly.json").read_text())
    assert summary["verdict"] == "baseline made"
    assert "no such file" in summary["score_problem"]


def test_a_night_that_is_measured_already_is_judged_also_if_tonight_cannot_begin(folder):
    config = configured(folder, reference="v1.l", outbox="outbox")
    config.work.mkdir()
    left = run_of(0, {A: 1.0})
    replace_lines(config.work / "tonight.jsonl", [left.header, *left.records])
    with pytest.raises(BotError, match=r"reference v1\.l: no such file"):
        run_nightly(config)
    assert [run[-5:] for run in list_runs(open_store(config.store), "smoke", "cpu-4t")] == ["r0000"]
    assert json.loads((config.work / "nightly.json").read_text())["verdict"] == "baseline made"
    assert not (config.work / "tonight.jsonl").exists()
