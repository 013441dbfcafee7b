"""An interpreter for the build of an earlier night: where it still is, or installed again, or why there is none."""

import shutil
from datetime import date
from pathlib import Path

import pytest
from package_index import keep_pip_offline, serve

from baselines.kept_wheels import kept
from baselines.store import open_store
from baselines.stored_builds import stored_build
from bot.config import NightlyConfig
from bot.confirming import builds_of_nights
from bot.confirming.builds_of_nights import BuildsOfNights
from bot.keeping import keep_build
from torchbenchmark.builds import simple_index
from torchbenchmark.builds.installation import install
from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.records import Build

TODAY = date(2026, 11, 28)
VERSIONS = [f"2.14.0.dev202611{day}+cu130" for day in (25, 26, 27)]


@pytest.fixture
def index(monkeypatch, tmp_path_factory):
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    monkeypatch.setattr(simple_index, "PAUSES_S", (0.0, 0.0))
    with serve() as served:
        served.add("triton", "3.9.0")
        yield served


class Nights:
    """Nights of one machine that install their build into one folder, as the nightly does."""

    def __init__(self, index, folder: Path) -> None:
        self.index = index
        self.build = NightlyBuild(index=index.address, extra_index=index.address)
        self.config = NightlyConfig(build=self.build, work=folder / "work")
        self.store = open_store(str(folder / "store"))
        self.measured: list[Build] = []

    def night(self, version: str, *, keep_wheels: bool = True) -> Build:
        self.index.add("torch", version, requires=("numpy", "triton"))
        python = install(resolve(self.build, today=TODAY), self.config.work / "build")
        self.measured.append(inspect_interpreter(python).build)
        keep_build(self.config.model_copy(update={"keep_wheels": keep_wheels}), self.store, self.measured[-1])
        return self.measured[-1]

    def builds(self) -> BuildsOfNights:
        return BuildsOfNights(self.store, self.config.work / "builds", "torch", self.measured)


@pytest.fixture
def nights(index, quick, tmp_path) -> Nights:
    return Nights(index, tmp_path)


def test_a_build_is_taken_where_it_is_then_from_its_index_and_then_from_the_store(nights, index, capfd):
    first, second = (nights.night(version) for version in VERSIONS[:2])
    assert sorted(kept(nights.store)) == sorted([first.id, second.id])
    assert len(nights.store.list("wheels/")) == 4, "numpy and triton once, torch twice"
    work = nights.config.work

    builds = nights.builds()
    assert builds.interpreter(second.id) == work / "build" / "bin" / "python"

    # Newer versions of what torch needs do not make it another build.
    index.add("triton", "3.9.1")
    index.add("numpy", "2.4.7")
    again = builds.interpreter(first.id)
    assert again == work / "builds" / first.id / "bin" / "python"
    holds = inspect_interpreter(again)
    assert (holds.build.id, holds.lock) == (first.id, {"numpy": "2.4.6"})
    asked = len(index.asked)
    assert nights.builds().interpreter(first.id) == again and len(index.asked) == asked, "it is there"

    shutil.rmtree(work / "builds")
    index.packages.clear()
    capfd.readouterr()
    assert nights.builds().interpreter(first.id) == again
    assert inspect_interpreter(again).build.id == first.id
    assert not list((work / "builds").glob(".wheels-*"))


def test_without_its_wheels_there_is_no_build_and_every_way_is_told(nights, index):
    first = nights.night(VERSIONS[0], keep_wheels=False)
    nights.night(VERSIONS[1], keep_wheels=False)
    assert kept(nights.store) == {} and stored_build(nights.store, first.id) is not None
    index.packages.clear()
    builds = nights.builds()
    assert builds.interpreter(first.id) is None
    why = builds.why_not(first.id)
    assert f"holds build {nights.measured[1].id}" in why
    assert "pip could not install the build" in why
    assert f"has not kept the wheels of build {first.id}" in why
    asked = len(index.asked)
    assert builds.interpreter(first.id) is None and len(index.asked) == asked, "it is not tried again tonight"
    assert "has no pin of build 2.0-unknown" in builds.why_not("2.0-unknown")


def test_what_was_used_longest_ago_makes_room_and_what_was_given_out_stays(nights, monkeypatch):
    monkeypatch.setattr(builds_of_nights, "MOST_INSTALLED", 2)
    first, second, third = (nights.night(version, keep_wheels=False) for version in VERSIONS)
    (nights.config.work / "build").rename(nights.config.work / "moved")
    folder = nights.config.work / "builds"
    builds = nights.builds()
    assert builds.interpreter(first.id) and builds.interpreter(second.id)
    assert sorted(path.name for path in folder.iterdir()) == sorted([first.id, second.id])
    builds = nights.builds()
    assert builds.interpreter(first.id) and builds.interpreter(third.id)
    assert sorted(path.name for path in folder.iterdir()) == sorted([first.id, third.id])


def test_a_build_that_lies_there_no_more_is_not_kept_and_the_night_goes_on(nights, capfd):
    first = nights.night(VERSIONS[0], keep_wheels=False)
    nights.night(VERSIONS[1], keep_wheels=False)
    keep_build(nights.config, nights.store, first)
    assert f"build {first.id} is not kept: " in capfd.readouterr().out.replace("\n", " ")
    assert kept(nights.store) == {}


def test_a_wheel_that_the_index_has_exchanged_is_not_kept(nights, index, capfd):
    first = nights.night(VERSIONS[0], keep_wheels=False)
    index.packages["torch"].clear()
    index.add("torch", VERSIONS[0], requires=("numpy",))
    keep_build(nights.config, nights.store, first)
    told = " ".join(capfd.readouterr().out.split())
    assert f"build {first.id} is not kept: " in told and "any more, which was installed" in told
    assert kept(nights.store) == {} and nights.store.list("wheels/") == []
