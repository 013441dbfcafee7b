"""`torchbench bisect --releases`: on an index that the tests serve, of packages that they make up."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from package_index import Offered, PackageIndex, keep_pip_offline, serve, wheel
from small_repository import SmallRepository

from bot import bisect
from torchbenchmark.builds import simple_index
from torchbenchmark.terminal import new_app, run_app

ROOT = Path(__file__).resolve().parents[3]
# Run in the folder of --in. At the numbers of KILL_AT it ends the command that has started it.
WORK = """import os, random, signal, sys
import thing
with open(os.environ["JOURNAL"], "a") as journal:
    journal.write(os.environ["TORCHBENCH_BUILD_VERSION"] + "\\n")
assert os.environ["TORCHBENCH_BUILD_PYTHON"] == sys.executable, sys.executable
assert os.environ["TORCHBENCH_BUILD_VERSION"] == thing.__version__
runs = len(open(os.environ["JOURNAL"]).readlines())
if str(runs) in os.environ.get("KILL_AT", "").split(","):
    os.kill(int(open(os.environ["DRIVER"]).read()), signal.SIGKILL)
print(thing.steps * random.gauss(1, 0.004))
"""


@pytest.fixture
def index(monkeypatch, tmp_path) -> Iterator[PackageIndex]:
    keep_pip_offline(monkeypatch, tmp_path)
    monkeypatch.setattr(simple_index, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("DRIVER", str(tmp_path / "driver"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "work.py").write_text(WORK)
    with serve() as served:
        (tmp_path / "nightly.yaml").write_text(f"builds: {{index: {served.address}}}\n")
        yield served


def offer(index: PackageIndex, version: str, steps: float, **told: object) -> None:
    index.add("thing", version, files={"thing.py": f"__version__ = {version!r}\nsteps = {steps}\n"}, **told)


def arguments(tmp_path: Path, good: str, bad: str, *more: object) -> list[str]:
    given = ["--releases", "Thing", "--good", good, "--bad", bad, "--measure", "python work.py"]
    given += ["--in", tmp_path / "in", "--config", tmp_path / "nightly.yaml", "--work", tmp_path / "work"]
    return [str(one) for one in (*given, "--json", tmp_path / "out.json", "--markdown", tmp_path / "out.md", *more)]


@pytest.fixture
def torchbench(capsys) -> Callable[..., tuple[int, str, str]]:
    app = new_app("torchbench")
    app.callback()(lambda: None)
    bisect.register(app)

    def run(given: list[str]) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            run_app(app, ["bisect", *given])
        return (ended.value.code, *capsys.readouterr())

    return run


@pytest.mark.timeout(600)
def test_the_version_that_got_slower_is_found_past_one_without_a_wheel_and_one_that_cannot_be_installed(
    index, tmp_path, torchbench
):
    for version, steps in (("1.9", 90), ("1.10", 100), ("1.11", 100), ("1.14", 130), ("1.15", 130)):
        offer(index, version, steps)
    index.packages["thing"].append(Offered("thing-1.12.tar.gz", b""))
    offer(index, "1.13", 130, requires=("nowhere==1",))
    offer(index, "1.11.1", 700, yanked=True)
    offer(index, "1.12rc1", 700)

    code, out, error = torchbench(arguments(tmp_path, "1.10", "1.15", "--beyond", "0.1"))

    assert code == 1, out + error
    report = json.loads((tmp_path / "out.json").read_text())
    assert [one["version"] for one in report["versions"]] == ["1.10", "1.11", "1.12", "1.13", "1.14", "1.15"]
    assert (report["range"], report["verdict"]) == ("versions", "set")
    (change,) = report["changes"]
    assert change["versions"] == ["1.12", "1.13", "1.14"]
    assert change["change"] == pytest.approx(0.3, abs=0.05)
    reasons = {one["version"]: one["reason"] for one in report["builds"] if not one["ok"]}
    assert reasons.keys() == {"1.12", "1.13"}
    assert "source alone" in reasons["1.12"] and "nowhere" in reasons["1.13"]
    assert "a set of versions that no build tells apart" in out
    text = (tmp_path / "out.md").read_text()
    assert "Narrowed to a set of versions" in text and "| version | subject |" in text and "commit" not in text
    assert set((tmp_path / "journal").read_text().split()) <= {"1.10", "1.11", "1.14", "1.15"}

    # A version that appears meanwhile does not change what was begun, and nothing is run again.
    ran = (tmp_path / "journal").read_text()
    offer(index, "1.11.2", 130)
    assert torchbench(arguments(tmp_path, "1.10", "1.15", "--beyond", "0.1"))[0] == 1
    assert (tmp_path / "journal").read_text() == ran


def test_what_cannot_be_bisected_is_told_before_anything_is_installed(index, tmp_path, torchbench):
    for version in ("1.0", "1.1", "2.0rc1", "2.0"):
        offer(index, version, 100)

    def told(good: str, bad: str, *more: str) -> str:
        code, out, error = torchbench(arguments(tmp_path, good, bad, *more))
        assert code == 2, out
        return error

    assert "no such version of thing; near it are 1.0, 1.1" in " ".join(told("1.0", "1.5").split())
    assert "is no version of a release" in told("1.0", "main")
    assert "is not before" in told("1.10", "1.9")
    assert "not of this kind of range" in told("1.0", "1.1", "--build", "make")
    assert "are three kinds of ranges; name one" in " ".join(told("1.0", "1.1", "--dates").split())
    assert not (tmp_path / "builds" / "environments").exists() or not list((tmp_path / "builds/environments").iterdir())

    code, out, _ = torchbench(arguments(tmp_path, "1.0", "2.0", "--plan"))
    assert code == 0 and "versions: 2\n" in out
    assert "versions: 3\n" in torchbench(arguments(tmp_path, "1.0", "2.0", "--plan", "--pre"))[1]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_at_three_runs_it_goes_on_and_installs_and_measures_nothing_twice(index, tmp_path, monkeypatch):
    for number in range(20):
        offer(index, f"1.{number}", 100 if number < 13 else 120)
    monkeypatch.setenv("KILL_AT", "5,24,33")
    ends = []
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-m", "bot", "bisect", *arguments(tmp_path, "1.0", "1.19")],
            cwd=ROOT,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        (tmp_path / "driver").write_text(str(process.pid))
        ends.append((process.communicate()[0], process.returncode))

    assert [code for _, code in ends] == [-9, -9, -9, 1], ends
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["changes"][0]["versions"] == ["1.13"]
    installed = [line for out, _ in ends for line in out.splitlines() if line.startswith("installing ")]
    assert len(installed) == len(set(installed)) == len(report["builds"])
    runs = len((tmp_path / "journal").read_text().split())
    assert runs == 2 * report["pairs"] + 3  # those that killed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_commits_whose_wheels_a_ci_has_left_are_bisected_without_building(index, tmp_path, torchbench):
    repository = SmallRepository(tmp_path / "project")
    repository.line(5)
    commits = [repository.git("rev-parse", f"c{place}") for place in range(6)]
    for place, commit in enumerate(commits):
        files = {"thing.py": f"__version__ = {commit!r}\nsteps = {100 if place < 4 else 120}\n"}
        content = wheel("thing", f"1.{place}", "py3-none-any", files, ())
        if place != 3:
            index.raw[f"/ci/{commit}/wheels.zip"] = (200, "application/zip", zipped(f"thing-1.{place}", content))
    (tmp_path / "in" / "work.py").write_text(WORK.replace("BUILD_VERSION", "BUILD_COMMIT"))
    given = ["--repo", repository.folder, "--good", "c0", "--bad", "c5", "--measure", "python work.py"]
    given += ["--wheels", f"url:{index.address}/ci/{{sha}}/wheels.zip", "--subject", "thing", "--in", tmp_path / "in"]
    given += ["--work", tmp_path / "work", "--json", tmp_path / "out.json", "--config", tmp_path / "nightly.yaml"]

    code, out, error = torchbench([*map(str, given), "--beyond", "0.1"])

    assert code == 1, out + error
    report = json.loads((tmp_path / "out.json").read_text())
    assert [one["commits"] for one in report["changes"]] == [commits[3:5]]
    (missing,) = [one for one in report["builds"] if not one["ok"]]
    assert missing["commit"] == commits[3] and "HTTP 404" in missing["reason"]


def zipped(name: str, content: bytes) -> bytes:
    """An artifact of a CI with one wheel in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"dist/{name}-py3-none-any.whl", content)
    return out.getvalue()
