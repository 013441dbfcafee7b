"""`torchbench bisect` on repositories that the tests make: found, through kills, and what is told where it is not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from small_repository import BUILD, MEASURE, SmallRepository

from baselines.store import open_store
from bot import bisect
from torchbenchmark.terminal import new_app, run_app

ROOT = Path(__file__).resolve().parents[3]
BROKEN = (4, 9, 10, 22)
CULPRIT = 17


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def journal(tmp_path, monkeypatch) -> Path:
    """Where builds and runs write that they were made."""
    path = tmp_path / "journal"
    path.touch()
    monkeypatch.setenv("JOURNAL", str(path))
    monkeypatch.setenv("DRIVER", str(tmp_path / "driver"))
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    return path


@pytest.fixture
def repository(tmp_path) -> SmallRepository:
    return SmallRepository(tmp_path / "project")


@pytest.fixture
def torchbench(capsys, tmp_path, journal) -> Callable[..., Ended]:
    app = new_app("torchbench")
    app.callback()(lambda: None)
    bisect.register(app)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run_app(app, ["bisect", "--work", str(tmp_path / "work"), *map(str, arguments)])
        return Ended(ended.value.code, *capsys.readouterr())

    return run


def in_a_process(*arguments: object, driver: Path) -> Ended:
    """The command in a process of its own, whose id lies in a file as long as it runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "bisect", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    driver.write_text(str(process.pid))
    out, error = process.communicate()
    return Ended(process.returncode, out, error)


def lines_of(journal: Path, what: str) -> list[str]:
    return [line.split()[1] for line in journal.read_text().splitlines() if line.startswith(f"{what} ")]


@pytest.mark.long
def test_a_slower_commit_is_found_through_two_kills_and_nothing_is_done_twice(
    repository, journal, tmp_path, monkeypatch
):
    repository.line(11, broken=BROKEN)
    repository.merge("m", {"b1": 10_000, "b2": 10_000})
    repository.line(30, {CULPRIT: 1.15}, BROKEN, first=12)
    (repository.folder / "work.py").write_text("something of mine")  # a dirty checkout
    (repository.folder / "new").write_text("and this")
    before = repository.fingerprint()
    monkeypatch.setenv("KILL_AT", "9,31")
    store = tmp_path / "store"
    arguments = ("--repo", repository.folder, "--good", "c0", "--bad", "main", "--build", BUILD, "--measure", MEASURE)
    arguments += ("--work", tmp_path / "work", "--store", store, "--closing", 6)
    reports = {name: tmp_path / f"report.{name}" for name in ("json", "markdown")}
    arguments += ("--json", reports["json"], "--markdown", reports["markdown"])

    ends = [in_a_process(*arguments, driver=tmp_path / "driver") for _ in range(3)]

    assert [one.returncode for one in ends] == [-9, -9, 1], ends
    assert "going on: 2 builds and 0 pairs are there from before" in ends[1].stdout
    report = json.loads(reports["json"].read_text())
    culprit = repository.git("rev-parse", f"c{CULPRIT}")
    assert report["verdict"] == "culprit"
    assert [one["commits"] for one in report["changes"]] == [[culprit]]
    assert report["changes"][0]["change"] == pytest.approx(0.15, abs=0.02)
    built = lines_of(journal, "build")
    assert len(built) == len(set(built))
    (document,) = (tmp_path / "store" / "bisections").iterdir()
    content = json.loads(document.read_text())
    visits = content["visits"] + [visit for one in content["closing"] for visit in one["visits"]]
    stored = [run for visit in visits for run in visit["runs"]]
    assert len(lines_of(journal, "run")) == len(stored) + 2  # those that killed
    parent, revert = report["changes"][0]["closing"]
    assert parent["base"] == repository.git("rev-parse", f"c{CULPRIT - 1}")
    assert parent["interval"][0] < 0.15 < parent["interval"][1]
    assert "it does not revert cleanly: CONFLICT (content): Merge conflict in work.py" in revert["reason"]
    assert repository.fingerprint() == before
    assert "Ada" in reports["markdown"].read_text()
    assert f"`c{CULPRIT} @everyone '<script>'`" in reports["markdown"].read_text()
    assert "work.py |" in reports["markdown"].read_text()
    assert f"culprit: {culprit[:12]}" in ends[2].stdout

    again = in_a_process(*arguments, driver=tmp_path / "driver")

    assert again.returncode == 1
    assert len(lines_of(journal, "run")) == len(stored) + 2


@pytest.mark.long
def test_a_culprit_that_is_a_merge_is_looked_for_in_its_branch(repository, torchbench, tmp_path):
    """The branch has left the main line before the good end."""
    repository.line(3)
    repository.merge("m", {"b1": 10_000, "b2": 11_500, "b3": 11_500}, onto="c4")
    repository.line(8, {5: 1.15}, first=5)
    out = tmp_path / "out.json"

    ended = torchbench(
        "--repo", repository.folder, "--good", "c4", "--bad", "c8", "--build", BUILD, "--measure", MEASURE,
        "--json", out,
    )  # fmt: skip

    assert ended.returncode == 1, ended.stderr
    report = json.loads(out.read_text())
    assert report["changes"][0]["commits"] == [repository.git("rev-parse", "m")]
    assert [one["changes"][0]["commits"] for one in report["branches"]] == [[repository.git("rev-parse", "b2")]]
    assert "it is a merge; in its branch: culprit" in ended.stdout


@pytest.mark.long
def test_of_a_speed_less_is_worse(repository, torchbench, tmp_path):
    repository.line(8, {5: 0.8})
    out = tmp_path / "out.json"

    torchbench(
        "--repo", repository.folder, "--good", "c0", "--bad", "c8", "--measure", MEASURE, "--higher-is-better",
        "--json", out,
    )  # fmt: skip

    report = json.loads(out.read_text())
    assert report["changes"][0]["commits"] == [repository.git("rev-parse", "c5")]
    assert report["changes"][0]["change"] == pytest.approx(-0.2, abs=0.03)
    assert "] (worse); probability" in report["sentence"]


@pytest.mark.long
def test_a_range_without_a_change_is_not_reproduced(repository, torchbench, tmp_path):
    repository.line(6)
    out = tmp_path / "out.json"

    ended = torchbench("--repo", repository.folder, "--good", "c0", "--bad", "c6", "--measure", MEASURE, "--json", out)

    assert ended.returncode == 0
    assert "not reproduced: the ends show no" in ended.stdout
    assert len(json.loads(out.read_text())["builds"]) == 2


def test_a_plan_measures_nothing(repository, torchbench, journal):
    repository.line(8)

    ended = torchbench(
        "--repo", repository.folder, "--good", "c0", "--bad", "c8", "--measure", MEASURE, "--plan",
        "--build-seconds", 60, "--pair-seconds", 1,
    )  # fmt: skip

    assert ended.returncode == 0
    assert "commits: 8" in ended.stdout
    assert "builds: about 5" in ended.stdout
    assert "once a culprit is found: 24 pairs more, and a build of the bad end without it" in ended.stdout
    assert "time: about 7 min" in ended.stdout
    assert journal.read_text() == ""


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("c0", "nowhere", "--bad nowhere: "),
        ("--output=x", "c2", "names no commit"),
        ("c2", "c0", "is not an ancestor of --bad c0"),
        ("c1", "c1", "are one commit"),
        ("b1", "m", "first parents"),
    ],
)
def test_ends_that_make_no_range_are_told(repository, torchbench, good, bad, told):
    repository.line(2)
    repository.merge("m", {"b1": 10_000})

    ended = torchbench("--repo", repository.folder, f"--good={good}", f"--bad={bad}", "--measure", MEASURE)

    assert ended.returncode == 2
    assert told in ended.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("true", "printed nothing"),
        ("echo nan", "printed nan"),
        ("echo 0", "finite numbers above 0"),
        ("echo hello", "'hello', which is no number"),
        ("echo why >&2; exit 3", "the measuring command failed (exit 3): why"),
    ],
)
def test_a_command_that_gives_no_number_is_told(repository, torchbench, command, told):
    repository.line(2)

    ended = torchbench("--repo", repository.folder, "--good", "c0", "--bad", "c2", "--measure", command)

    assert ended.returncode == 2
    assert "the good end" in ended.stderr
    assert told in ended.stderr.replace("\n", " ")


def test_a_bad_end_that_does_not_build_is_no_range(repository, torchbench, tmp_path):
    repository.line(2, broken=(2,))
    (tmp_path / "x").mkdir()

    ended = torchbench(
        "--repo", repository.folder, "--good", "c0", "--bad", "c2", "--build", BUILD, "--measure", MEASURE,
        "--markdown", tmp_path / "x" / "out.md",
    )  # fmt: skip

    assert ended.returncode == 2
    assert "ends not measurable: the bad end has no build" in ended.stdout
    assert "SyntaxError" in ended.stdout
    (log,) = (tmp_path / "work").glob("*/logs/*.log")
    assert "def broken(:" in log.read_text()


def test_checkouts_never_lie_in_the_repository(repository, torchbench):
    repository.line(1)

    ended = torchbench(
        "--repo", repository.folder, "--good", "c0", "--bad", "c1", "--measure", MEASURE, "--work",
        repository.folder / "work",
    )  # fmt: skip

    assert ended.returncode == 2
    assert "lies in the repository" in ended.stderr.replace("\n", " ")


def test_another_writer_is_told_of(repository, torchbench, tmp_path):
    repository.line(2)
    store = tmp_path / "store"
    meddling = f"for one in {store}/bisections/*.json; do echo >> $one; done; echo 1"

    ended = torchbench(
        "--repo", repository.folder, "--good", "c0", "--bad", "c2", "--measure", meddling, "--store", store
    )

    assert ended.returncode == 2
    assert "another process has written this bisection meanwhile" in ended.stderr.replace("\n", " ")
    assert len(open_store(str(store)).list("bisections/")) == 1


def test_a_bisection_of_another_machine_is_not_gone_on_with(repository, torchbench, tmp_path):
    repository.line(2, broken=(2,))
    arguments = ("--repo", repository.folder, "--good", "c0", "--bad", "c2", "--build", BUILD, "--measure", MEASURE)
    arguments += ("--store", tmp_path / "store")
    torchbench(*arguments)
    (stored,) = (tmp_path / "store" / "bisections").iterdir()
    content = json.loads(stored.read_text())
    stored.write_text(json.dumps({**content, "machine": "PDP-11"}))

    ended = torchbench(*arguments)

    assert ended.returncode == 2
    assert "was begun on a machine with PDP-11" in ended.stderr.replace("\n", " ")


def test_a_test_that_is_not_there_is_told_before_anything_is_built(repository, torchbench, tmp_path):
    repository.line(2)

    ended = torchbench("--repo", repository.folder, "--good", "c0", "--bad", "c2", "--tests", "no_model")

    assert ended.returncode == 2
    assert "no_model" in ended.stderr
    assert "building" not in ended.stdout


def test_only_one_of_measure_and_tests_is_taken(torchbench):
    assert "either --measure CMD or --tests TEST" in torchbench("--repo", os.curdir).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--channel", "operators"), "--channel: is of --tests"),
        (("--suite", "smoke", "--threads", "2"), "--suite, --threads: is of --tests"),
        (("--tests", "works"), "--measure and --tests: are two ways of measuring"),
        (("--releases", "thing"), "--repo, --releases and --dates: are three kinds of ranges"),
    ],
    ids=str,
)
def test_options_that_do_not_go_together_are_told_before_anything_is_built(repository, torchbench, arguments, told):
    repository.line(2)

    ended = torchbench("--repo", repository.folder, "--good", "c0", "--bad", "c2", "--measure", MEASURE, *arguments)

    assert ended.returncode == 2 and told in " ".join(ended.stderr.split())
    assert "building" not in ended.stdout


def test_whoever_interrupts_it_is_told_that_the_same_command_goes_on(repository, torchbench, monkeypatch):
    repository.line(2)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bisect, "_instrument", interrupted)

    ended = torchbench("--repo", repository.folder, "--good", "c0", "--bad", "c2", "--measure", MEASURE)

    assert ended.returncode == 130 and "the same command goes on from here" in ended.stdout
