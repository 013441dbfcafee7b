"""Alerts of a package that a model uses, bisected with real builds and real pairs: on one machine, and by the jobs of
the workflow."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from alert_of_commits import KEY, alert_of, at, interval
from night_factory import run_of
from package_of_commits import TEST, configuration, package

from baselines.history import add_night
from baselines.runs import run_prefix, store_run
from baselines.store import open_store
from bot.github.alert import Alert, AlertNight
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.issue_file import read_issues
from torchbenchmark.environment import cpu_class
from torchbenchmark.records import Environment, Run

ROOT = Path(__file__).resolve().parents[3]
HERE = cpu_class(1)
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="models are imported into a build")
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def store_night(folder: Path, day: int, commit: str, **facts: str) -> None:
    store = open_store(str(folder / "store"))
    run = run_of(day, {TEST: 1.0}, suite="works", machine_class=HERE)
    known = {"cpu": "a CPU", **facts}
    header = run.header.model_copy(
        update={
            "build": run.header.build.model_copy(
                update={"commit": commit, "subject": "worksteps", "wheels": {"worksteps": str(day), "torch": "2.12.0"}}
            ),
            "environment": Environment(fingerprint=str(sorted(known.items())), facts=known),
            "measuring": run.header.measuring.model_copy(update={"threads": 1, "budget_s": 0.1}),
        }
    )
    store_run(store, Run(header, run.records))
    add_night(store, run_prefix(header))


def keep_alert(folder: Path, effect: float) -> None:
    alert = alert_of(
        HERE,
        suite="works",
        tests=(TEST,),
        nights=(AlertNight(run="r0001", started=at(1), build="b", findings={TEST: f"{effect:+.1%}"}),),
        effects={TEST: effect},
        intervals=(interval(TEST, effect),),
    )
    change_alerts(open_store(str(folder / "store")), "works", HERE, lambda before: (*before, alert))


def stored_alert(folder: Path) -> Alert:
    (alert,) = read_alerts(open_store(str(folder / "store")), "works", HERE)
    return alert


def test_a_change_of_the_environment_alone_is_told_as_that(tmp_path):
    repository = package(tmp_path / "package", [200_000] * 5)
    config = configuration(tmp_path)
    store_night(tmp_path, 0, repository.git("rev-parse", "c0"))
    store_night(tmp_path, 1, repository.git("rev-parse", "c4"), governor="powersave", measuring_code="other")
    keep_alert(tmp_path, 0.6)

    ended = subprocess.run(
        [
            *(sys.executable, "-m", "bot", "bisect", "--repo", repository.folder, "--from-signal", KEY),
            *("--config", config, "--work", tmp_path / "bisect"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    verdict = stored_alert(tmp_path).verdict
    assert verdict is not None and verdict.verdict == "environment"
    assert verdict.environment == (
        "environment governor: nothing became powersave",
        "environment measuring_code: nothing became other",
    )
    assert "environment, not a commit: the ends show" in ended.stdout


class Jobs:
    """The jobs of bisect-round.yml: the scripts that stand there, each in a folder of its own."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder = folder
        self.repository = repository
        self.jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "bisect-round.yml").read_text())["jobs"]
        self.artifacts = folder / "artifacts"

    def run(self, job: str, step: str, given: Mapping[str, str], needs: tuple[tuple[str, str], ...] = ()) -> Path:
        """A step, with artifacts as (name, folder) before it. Returns the folder of the job."""
        where = self.folder / "jobs" / f"{job}-{len(list((self.folder / 'jobs').glob('*')))}"
        where.mkdir(parents=True)
        for name, into in needs:
            shutil.copytree(self.artifacts / name, where / into, dirs_exist_ok=True)
        (script,) = [one["run"] for one in self.jobs[job]["steps"] if one.get("name") == step]
        output = where / "output"
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=where,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTHON": sys.executable,
                "CONFIG": str(self.folder / "nightly.yaml"),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(where / "summary"),
                **given,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        return where

    def keep(self, name: str, files: list[Path]) -> None:
        (self.artifacts / name).mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copy(path, self.artifacts / name / path.name)


def outputs(where: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (where / "output").read_text().splitlines())


def test_the_jobs_of_the_workflow_find_the_commit_and_leave_its_issue(tmp_path):
    repository = package(tmp_path / "package", [100_000] * 4 + [250_000] * 3, broken=2)
    configuration(tmp_path)
    store_night(tmp_path, 0, repository.git("rev-parse", "c0"))
    store_night(tmp_path, 1, repository.git("rev-parse", "c6"))
    keep_alert(tmp_path, 0.8)
    jobs = Jobs(tmp_path, repository.folder)
    nothing = dict.fromkeys(("SIGNAL", "GOOD", "BAD", "TESTS", "BUILD"), "")
    there, again, rounds = "", "true", 0
    while again and rounds < 3:
        rounds += 1
        asked = jobs.run("ask", "Ask", {**nothing, "REPO": str(repository.folder), "BUILDS": "2", "THERE": there})
        told = outputs(asked)
        jobs.keep("question", [asked / "question.json"])
        names = []
        for one in json.loads(told["builds"] or "[]"):
            built = jobs.run("build", "Build the commit", {"COMMIT": one["commit"]}, (("question", "."),))
            jobs.keep(one["name"], list((built / "built").iterdir()))
            names.append(one["name"])
        made = sorted(path.name for path in jobs.artifacts.glob("made-*"))
        needs = (("question", "."), *((name, f"made/{name}") for name in made))
        measured = jobs.run("measure", "Measure what was built", {}, needs)
        jobs.keep("answer", [measured / "answer.json"])
        decided = jobs.run(
            "decide",
            "Decide by the answer",
            {"DIGEST": told["digest"]},
            (("question", "."), ("answer", "answers/bisect-answer-1")),
        )
        there, again = told["there"], outputs(decided)["again"]

    assert not again
    culprit = repository.git("rev-parse", "c4")
    verdict = stored_alert(tmp_path).verdict
    assert verdict is not None and verdict.verdict == "culprit"
    assert [one.commit for one in verdict.changes[0].commits] == [culprit]
    (issue,) = read_issues(decided / "issues.json")
    assert issue.body.startswith(f"**The culprit is** `{culprit[:12]}` `c4`")
    assert "The culprit is found" in (decided / "summary").read_text()
