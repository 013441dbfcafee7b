"""`torchbench bisect --dates` on wheels that the tests serve: by a command, and by tests of a suite."""

import json
import site
import subprocess
import sys
from pathlib import Path

import pytest
from package_index import keep_pip_offline, serve, wheel
from test_bisection_dates import Project

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
PACKAGE = """def work():
    steps = 0
    for _ in range({loops}):
        steps += 1
    return steps
"""
DAYS = ("0105", "0106", "0108", "0109", "0110", "0111")  # none of the 7th
SLOW_FROM = "0109"


@pytest.fixture
def served(monkeypatch, tmp_path):
    """The address of the wheels, without a date."""
    pytest.importorskip("torch", reason="models are imported into a build")
    keep_pip_offline(monkeypatch, tmp_path)
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
    with serve() as index:
        for day in DAYS:
            version = f"1.0.dev2026{day}"
            files = {
                "worksteps.py": PACKAGE.format(loops=200_000 if day >= SLOW_FROM else 100_000) + f"# {day}\n",
                "torch_of_the_tests.pth": f"{site_packages}\n",
            }
            name = f"worksteps-{version}-py3-none-any.whl"
            index.raw[f"/w/{name}"] = (200, "application/zip", wheel("worksteps", version, "py3-none-any", files, ()))
        yield f"url:{index.address}/w/worksteps-1.0.dev{{yyyymmdd}}-py3-none-any.whl"


def bisect(tmp_path: Path, wheels: str, *more: object) -> dict:
    project = Project(tmp_path / "project")
    for number, day in enumerate(DAYS):
        project.night(day, number + 2)
    (tmp_path / "nightly.yaml").write_text(f"builds: {{requirements: [], dated: '{wheels}'}}\n")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "bot", "bisect", "--dates", "--good", "2026-01-05", "--bad", "2026-01-11"),
            *("--nightly-repo", tmp_path / "project", "--config", tmp_path / "nightly.yaml", "--beyond", "0.2"),
            *("--subject", "worksteps", "--work", tmp_path / "work", "--json", tmp_path / "out.json", *more),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    report = json.loads((tmp_path / "out.json").read_text())
    assert [one["date"] for one in report["dates"]] == [f"2026-{day[:2]}-{day[2:]}" for day in DAYS]
    assert [one["dates"] for one in report["changes"]] == [["2026-01-09"]]
    (further,) = report["follow_ups"]
    assert (further["good"], further["bad"]) == (project.mains[4], project.mains[5])
    assert further["command"] in ended.stdout
    return report


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_date_that_slows_a_command_is_found_with_the_commits_that_it_brought(served, tmp_path):
    line = "import os, random, worksteps; print(worksteps.work() * random.gauss(1, 0.01) * bool(os.environ['%s']))"
    measure = f'python -c "{line % "TORCHBENCH_BUILD_DATE"}"'
    report = bisect(tmp_path, served, "--measure", measure)
    assert report["changes"][0]["change"] == pytest.approx(1, abs=0.1)
    assert "--measure" in report["follow_ups"][0]["command"]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_date_that_slows_a_test_is_found_by_pairs_of_builds(served, tmp_path):
    suite = tmp_path / "works.yaml"
    suite.write_text(
        "name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\nthreads: 1\n"
    )
    report = bisect(
        tmp_path,
        served,
        *("--tests", "works", "--suite", suite, "--models", HERE / "model_of_package"),
        *("--threads", "1", "--budget", "0.1"),
    )
    assert 0.5 < report["changes"][0]["change"] < 1.5
    command = report["follow_ups"][0]["command"]
    assert f"--beyond 0.2 --tests works --models {HERE / 'model_of_package'} --suite" in command
