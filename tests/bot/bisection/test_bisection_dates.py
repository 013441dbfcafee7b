"""Ranges of dates: days without a wheel, the commits behind a nightly, and what is narrowed further."""

import hashlib
import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import pytest
from package_index import PackageIndex, keep_pip_offline, serve, tiny_torch, wheel

from baselines.kept_wheels import KeptWheel, keep
from baselines.store import open_store
from baselines.stored_builds import store_build
from bot.bisection.account import Found, follow_up_sentence
from bot.bisection.date_range import DateRange
from bot.bisection.document import Asked, Desk, Document, Made, Visit
from bot.bisection.driving import Bisecting, View
from bot.bisection.kept_nights import KeptNights
from bot.bisection.nightly_branch import NightlyBranch
from bot.bisection.provided import Provided
from bot.bisection.report import content, markdown
from bot.bisection.verdict import Suspects, Verdict
from bot.errors import BotError
from torchbenchmark.builds import download, simple_index
from torchbenchmark.builds.pinned import PinnedBuild, PinnedWheel
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.source_commit import source_commit


@pytest.fixture
def index(monkeypatch, tmp_path):
    keep_pip_offline(monkeypatch, tmp_path)
    monkeypatch.setattr(simple_index, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(download, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    with serve() as served:
        yield served


def offer(index: PackageIndex, *days: str) -> str:
    """Wheels of days of 2026, and their address without a date."""
    for day in days:
        version = f"2.14.0.dev2026{day}"
        content = wheel("torch", version, "py3-none-any", tiny_torch(version), ())
        index.raw[f"/w/torch-{version}-py3-none-any.whl"] = (200, "application/octet-stream", content)
    return f"url:{index.address}/w/torch-2.14.0.dev{{yyyymmdd}}-py3-none-any.whl"


class Project:
    """A repository with a main branch and the branch `nightly`, of which each night is a commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.mains = [self._commit(f"c{number}") for number in range(8)]
        self.git("checkout", "--quiet", "--orphan", "nightly")

    def night(self, day: str, main: int, digits: int = 40) -> str:
        return self._commit(f"2026-{day[:2]}-{day[2:]} nightly release ({self.mains[main][:digits]})")

    def _commit(self, message: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str) -> str:
        named = {
            f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **named, "GIT_CONFIG_GLOBAL": os.devnull},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "project")


def settled(wheels: str, good: str, bad: str, **more: object) -> DateRange:
    found = DateRange(wheels, f"2026-{good}", f"2026-{bad}", BuildSettings(), "torch", **more)
    found.settle(None)
    return found


def test_days_without_a_wheel_are_left_out_and_said(index):
    wheels = offer(index, "0105", "0107", "0110")
    index.raw["/w/torch-2.14.0.dev20260108-py3-none-any.whl"] = (403, "text/html", b"")
    told: list[str] = []

    found = settled(wheels, "01-05", "01-10", tell=told.append)

    assert found.line == ["2026-01-05", "2026-01-07", "2026-01-10"]
    assert told == ["3 of 6 days have no wheel, 2026-01-06 among them"]
    assert found.address("2026-01-07") == f"{wheels}@2026-01-07"
    assert found.follow_up(("2026-01-07",)) is None
    with pytest.raises(BotError, match=r"--bad 2026-01-09: .*404.*in the range are 2026-01-05 to 2026-01-07"):
        settled(wheels, "01-05", "01-09")

    # What was begun goes on with the days that it had; a wheel that is gone by now is a build that fails.
    del index.raw["/w/torch-2.14.0.dev20260107-py3-none-any.whl"]
    again = DateRange(wheels, "2026-01-05", "2026-01-10", BuildSettings(), "torch")
    again.settle(found.line)
    assert again.line == found.line
    assert "HTTP 404" in again.prepare("2026-01-07") and again.prepare("2026-01-05") == ""


def test_an_index_of_nightlies_says_which_days_it_has(index):
    for day in ("05", "06", "08"):
        index.add("torch", f"2.14.0.dev202601{day}")
    assert settled(f"nightly:{index.address}", "01-05", "01-08").line == ["2026-01-05", "2026-01-06", "2026-01-08"]


def test_the_commits_of_the_main_branch_stand_in_the_messages_of_the_nightly_branch(index, project):
    wheels = offer(index, "0105", "0106", "0107", "0108", "0109")
    project.git("commit", "--quiet", "--allow-empty", "-m", "not a night (0123456)")
    nights = [project.night(day, main) for day, main in (("0105", 0), ("0106", 0), ("0107", 2), ("0108", 6))]
    project.night("0109", 7, digits=9)
    measuring = ("--tests", "resnet18", "--suite", "it's mine")
    told: list[str] = []

    found = settled(
        wheels, "01-05", "01-09", branch=NightlyBranch(project.folder), measuring=measuring, tell=told.append
    )

    assert found.line == ["2026-01-05", "2026-01-07", "2026-01-08", "2026-01-09"]  # the 6th is the 5th
    assert "made of the same commit as the day before" in told[-1]
    assert found.subjects["2026-01-09"] == f"main {project.mains[7][:12]}"
    assert found.facts("2026-01-08").subject == f"2026-01-08 nightly release ({project.mains[6]})"
    assert nights[2] != project.mains[6]
    narrowed = found.follow_up(("2026-01-08",))
    assert narrowed is not None
    assert (narrowed.good, narrowed.bad, narrowed.commits) == (project.mains[2], project.mains[6], 4)
    assert narrowed.command == (
        f"torchbench bisect --repo {project.folder} --good {project.mains[2]} --bad {project.mains[6]} "
        "--tests resnet18 --suite 'it'\"'\"'s mine'"
    )
    assert found.follow_up(("2026-01-08", "2026-01-09")).bad == project.mains[7]

    one = Suspects(("2026-01-08",), ("2026-01-08",), 0.999, "certain", 0.1)
    document = Document(
        asked=Asked(good=found.good, bad=found.bad, tests=("resnet18",), noun="date"),
        search={"commits": found.line, "rules": {"pair_sd": 0.01}},
    )
    report = Found(document, Verdict("culprit", (one,)), found.subjects, follow_ups=(narrowed,))
    text = markdown(report)
    assert f"`2026-01-08` brought 4 commits of the main branch, `{project.mains[2][:12]}` (good) to" in text
    assert f"```sh\n{narrowed.command}\n```" in text
    assert content(report)["follow_ups"][0]["good"] == project.mains[2]
    assert narrowed.command in follow_up_sentence(narrowed)


def test_ends_that_are_made_of_one_commit_are_no_range(index, project):
    wheels = offer(index, "0105", "0106", "0107")
    for day in ("0105", "0106", "0107"):
        project.night(day, 3)
    with pytest.raises(BotError, match="made of one commit of the main branch"):
        settled(wheels, "01-05", "01-07", branch=NightlyBranch(project.folder))


def test_a_clone_without_the_branch_is_told(tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "other")], check=True)
    with pytest.raises(BotError, match="has no branch nightly"):
        NightlyBranch(tmp_path / "other")


def test_what_names_no_range_of_dates_is_told():
    wheels = "url:https://host/torch-{yyyymmdd}.whl"
    for good, bad, address, reason in (
        ("2026-1-5", "2026-01-06", wheels, "is no date, such as"),
        ("2026-01-06", "2026-01-06", wheels, "is not before"),
        ("2016-01-06", "2026-01-06", wheels, "over 1500 days"),
        ("2026-01-05", "2026-01-06", "url:https://host/torch-{sha}.whl", r"has \{sha\}"),
        ("2026-01-05", "2026-01-06", f"{wheels}@2026-01-05", "without a date"),
    ):
        with pytest.raises(BotError, match=reason):
            DateRange(address, good, bad, BuildSettings(), "torch")


class SameCommit:
    """Builds of which two neighbours say that they are made of one commit."""

    measured: list[str]

    def __init__(self) -> None:
        self.measured = []

    def build(self, commit: str) -> Made:
        return Made(commit=commit, ok=True, source="a" * 40 if int(commit) in (4, 5) else commit * 40)

    def measure(self, good: str, visit: Visit, keep: object) -> Visit:
        self.measured.append(visit.commit)
        value = 0.1 if int(visit.commit) >= 6 else 0.0
        return visit.model_copy(update={"values": tuple(value + 0.001 * (n % 2) for n in range(visit.n))})


def test_of_two_builds_of_one_commit_one_is_measured(tmp_path):
    instrument = SameCommit()
    line = [str(place) for place in range(9)]

    ended = Bisecting(Asked(good="0", bad="8"), line, Desk(open_store(str(tmp_path)), "k"), instrument, View()).run()

    assert not {"4", "5"} <= set(instrument.measured)
    (one,) = ended.verdict.suspects
    assert one.inseparable[-1] == "6"
    assert {one.reason for one in ended.document.search.attempts if not one.ok} <= {
        f"it is made of the same commit as {same}, {'a' * 12}" for same in "45"
    }
    built = {one.commit for one in ended.document.made}
    assert {"4", "5"} <= built  # or this test says nothing


def test_a_wheel_tells_the_commit_that_it_was_made_of(tmp_path):
    told = tmp_path / "torch-1.0-py3-none-any.whl"
    told.write_bytes(wheel("torch", "1.0", "py3-none-any", tiny_torch("1.0"), ()))
    assert source_commit(told) == "c" * 40
    silent = tmp_path / "thing-1.0-py3-none-any.whl"
    silent.write_bytes(wheel("thing", "1.0", "py3-none-any", {"thing/version.py": "git_version: str = None\n"}, ()))
    assert source_commit(silent) == ""
    silent.write_bytes(b"no archive")
    assert source_commit(silent) == ""


@pytest.mark.parametrize("form", ["url", "nightly"])
def test_a_date_whose_wheel_is_removed_is_built_from_those_that_the_store_has_kept(index, tmp_path, form):
    version = "2.14.0.dev20260106"
    wheels = offer(index, "0105", "0107")
    for day in ("05", "07"):
        index.add("torch", f"2.14.0.dev202601{day}")
    content = wheel("torch", version, "py3-none-any", tiny_torch(version), ())
    file = tmp_path / f"torch-{version}-py3-none-any.whl"
    file.write_bytes(content)
    store = open_store(str(tmp_path / "store"))
    ours = KeptWheel(file=file.name, sha256=hashlib.sha256(content).hexdigest())
    other = KeptWheel(file="numpy-9-py3-none-any.whl", sha256=hashlib.sha256(b"other").hexdigest())
    (tmp_path / other.file).write_bytes(b"other")
    keep(store, "2.14.0-a", [ours, other], lambda missing: {one.file: tmp_path / one.file for one in missing})
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    pinned = PinnedWheel(name="torch", version=version, file=file.name, sha256=ours.sha256)
    pin = PinnedBuild(index=index.address, date=date(2026, 1, 6), python=python, wheels=(pinned,))
    store_build(store, "2.14.0-a", pin)
    address = wheels if form == "url" else f"nightly:{index.address}"
    found = DateRange(address, "2026-01-05", "2026-01-07", BuildSettings(), "torch")

    found.settle(None)
    assert found.line == ["2026-01-05", "2026-01-07"]
    found.kept = KeptNights(store)
    found.settle(None)
    assert found.line == ["2026-01-05", "2026-01-06", "2026-01-07"]

    with ExitStack() as leases:
        plain = BuildSettings(index=index.address, requirements=())
        found.settings = plain
        made = Provided(found, plain, "torch", leases, plain=True).made("2026-01-06")
    assert made.ok, made
    assert made.source == "c" * 40
    assert [path.name for path in (tmp_path / "builds" / "work").iterdir()] == []
