"""`torchbench bisect --tests`: builds of a package that a model uses, by pairs, by status and by count."""

import json
import site
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from small_repository import SmallRepository

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
# It makes the wheel itself, as no index may be asked, and lets the build see the torch of this interpreter.
MAKE_WHEEL = """import base64, hashlib, os, pathlib, zipfile
source = pathlib.Path("worksteps.py").read_text()
compile(source, "worksteps.py", "exec")
info = "worksteps-1.0.dist-info"
members = {
    "worksteps.py": source,
    "torch_of_the_tests.pth": SITE + "\\n",
    f"{info}/METADATA": "Metadata-Version: 2.1\\nName: worksteps\\nVersion: 1.0\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
record = ""
for name, text in members.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(text.encode())}\\n"
folder = pathlib.Path(os.environ["TORCHBENCH_BUILD_OUT"])
with zipfile.ZipFile(folder / "worksteps-1.0-py3-none-any.whl", "w") as archive:
    for name, text in {**members, f"{info}/RECORD": f"{record}{info}/RECORD,,\\n"}.items():
        archive.writestr(name, text)
"""
PACKAGE = """def work():
    steps = 0
    for _ in range({loops}):
        steps += 1
    return steps
"""


CRASHES = """import os

def work():
    os.abort()
"""
COUNTS = """import torch

def work():
    for _ in range({operators}):
        torch.zeros(1)
"""


class Package(NamedTuple):
    """Commits c0 ... of a package that a model uses; c2 does not build."""

    repository: SmallRepository
    options: tuple[object, ...]  # of `bisect`, but for the way of comparing
    folder: Path

    def bisect(self, *options: object) -> tuple[dict, str, str]:
        """The JSON, the Markdown and what was printed; a change is found."""
        out, markdown = self.folder / "out.json", self.folder / "out.md"
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "bot", "bisect", *self.options, *options),
                *("--json", out, "--markdown", markdown),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1, ended.stdout + ended.stderr
        return json.loads(out.read_text()), markdown.read_text(), ended.stdout

    def commit(self, place: int) -> str:
        return self.repository.git("rev-parse", f"c{place}")


@pytest.fixture
def package(tmp_path, monkeypatch) -> Callable[[Sequence[str]], Package]:
    pytest.importorskip("torch", reason="models are imported into a build")
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))

    def made(texts: Sequence[str]) -> Package:
        repository = SmallRepository(tmp_path / "package")
        site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
        for place, text in enumerate(texts):
            broken = "def broken(:\n" if place == 2 else ""
            (repository.folder / "worksteps.py").write_text(f"{text}{broken}")
            (repository.folder / f"note{place}").touch()
            (repository.folder / "make_wheel.py").write_text(f"SITE = {site_packages!r}\n{MAKE_WHEEL}")
            repository.git("add", "--all")
            repository.git("commit", "--quiet", "-m", f"c{place}")
            repository.git("tag", f"c{place}")
        config = tmp_path / "nightly.yaml"
        config.write_text("builds: {requirements: []}\n")
        suite = tmp_path / "works.yaml"
        suite.write_text(
            "name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\nthreads: 1\n"
        )
        options = (
            *("--repo", repository.folder, "--good", "c0", "--bad", f"c{len(texts) - 1}"),
            *("--build", "python make_wheel.py", "--tests", "works", "--suite", suite, "--subject", "worksteps"),
            *("--models", HERE / "model_of_package", "--config", config, "--work", tmp_path / "work"),
            *("--threads", "1", "--budget", "0.1"),
        )
        return Package(repository, options, tmp_path)

    return made


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_commit_that_slows_a_test_is_found_by_pairs_of_builds(package):
    slowed = package([PACKAGE.format(loops=100_000 if place < 4 else 200_000) for place in range(6)])

    asked = ("--beyond", "0.2", "--closing", "6")
    report, answer, _ = slowed.bisect(*asked)

    assert [one["commits"] for one in report["changes"]] == [[slowed.commit(4)]]
    assert 0.5 < report["changes"][0]["change"] < 1.5
    parent, revert = report["changes"][0]["closing"]
    assert 0.3 < parent["interval"][0] < parent["interval"][1] < 2
    assert revert["interval"][1] < -0.2
    assert {one["commit"] for one in report["builds"] if not one["ok"]} <= {slowed.commit(2)}
    (inside,) = report["attribution"]
    assert (inside["base"], inside["head"]) == (slowed.commit(3), slowed.commit(4))
    (profiled,) = inside["attribution"]["tests"]
    (account,) = profiled["accounts"]
    python = next(row for row in account["rows"] if row["kind"] == "python")
    assert profiled["pairs"] == 6 and python["head"] > python["base"], "the package is Python, and no operator"
    assert len(inside["traces"]) == 2 and all(Path(trace).is_file() for trace in inside["traces"])
    assert "What got slower inside" in answer
    again, _, printed = slowed.bisect(*asked)
    assert again == report and "by turns" not in printed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_commit_that_makes_a_test_crash_is_found_by_its_status(package):
    crashing = package([PACKAGE.format(loops=1000) if place < 4 else CRASHES for place in range(6)])

    report, markdown, _ = crashing.bisect("--status")

    assert report["verdict"] == "culprit"
    assert [one["commits"] for one in report["changes"]] == [[crashing.commit(4)]]
    assert report["changes"][0]["before"]["outcome"] == "ok"
    assert report["changes"][0]["after"]["outcome"] == "crash"
    assert "`ok -> crash: " in markdown
    assert "SIGABRT" in markdown
    parent, revert = report["changes"][0]["closing"]
    assert [[end["outcome"] for end in side] for side in parent["outcomes"]] == [["ok"] * 3, ["crash"] * 3]
    assert [[end["outcome"] for end in side] for side in revert["outcomes"]] == [["crash"] * 3, ["ok"] * 3]
    assert {one["commit"] for one in report["builds"] if not one["ok"]} <= {crashing.commit(2)}
    measured = [one for one in report["commits"] if one["outcomes"]]
    assert all(len(one["outcomes"]) == 3 for one in measured)

    again, _, told = crashing.bisect("--status")

    assert again == report
    assert "going on: " in told
    assert not [line for line in told.splitlines() if line.startswith(("building ", "measuring "))]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_commit_that_dispatches_more_operators_is_found_by_their_count(package):
    more = package([COUNTS.format(operators=1 if place < 1 else 3) for place in range(5)])

    report, _, printed = more.bisect("--channel", "operators", "--closing", "0")

    assert [one["commits"] for one in report["changes"]] == [[more.commit(1)]]
    before, after = (int(report["changes"][0][side]["outcome"]) for side in ("before", "after"))
    assert after - before in (2, 4)  # a tensor of zeros is one operator or two, by the torch
    assert f"({before} -> {after} (worse); probability 1.000, certain)" in printed.replace("\n", " ")
