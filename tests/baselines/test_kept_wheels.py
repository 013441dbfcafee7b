"""Wheels of builds in the store: each once, none lost that a build needs, none left that no build needs."""

import hashlib
import os
from datetime import UTC, datetime, timedelta

import pytest
from night_factory import FIRST_NIGHT, A, run_of
from typer.testing import CliRunner

from baselines import cli
from baselines.confirming.state import ClassState, Filed, Onset, Pending, PendingBuild, SeriesState
from baselines.confirming.stored_state import write_state
from baselines.errors import BaselineError
from baselines.kept_wheels import KeptWheel, fetch, keep, kept, kept_build, kept_builds, needed_builds, remove_wheels
from baselines.pins import set_pin
from baselines.runs import store_run
from torchbenchmark.terminal import new_app

LATER = datetime.now(UTC) + timedelta(days=2)  # than every list of these tests


class Wheelhouse:
    """Files of wheels, and which of them were asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.asked = []

    def make(self, *names):
        found = []
        for name in names:
            path = self.folder / f"{name}-1-py3-none-any.whl"
            if not path.exists():
                path.write_bytes(os.urandom(1000))
            found.append(KeptWheel(file=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
        return found

    def get(self, missing):
        self.asked += [wheel.file.partition("-")[0] for wheel in missing]
        return {wheel.file: self.folder / wheel.file for wheel in missing}


@pytest.fixture
def house(tmp_path):
    folder = tmp_path / "house"
    folder.mkdir()
    return Wheelhouse(folder)


def names(keys):
    return sorted(key.rpartition("/")[2].partition("-")[0] for key in keys)


def stored(store):
    return names(store.list("wheels/"))


def test_a_wheel_of_two_builds_is_got_and_stored_once_and_comes_back_whole(any_store, house, tmp_path):
    first, second = house.make("torch1", "triton"), house.make("torch2", "triton")
    assert names(wheel.key for wheel in keep(any_store, "1.0-a", first, house.get)) == ["torch1", "triton"]
    assert names(wheel.key for wheel in keep(any_store, "2.0-b", second, house.get)) == ["torch2"]
    assert keep(any_store, "2.0-b", second, house.get) == []
    assert house.asked == ["torch1", "triton", "torch2"]
    assert sorted(kept(any_store)) == kept_builds(any_store) == ["1.0-a", "2.0-b"]
    back = tmp_path / "back"
    back.mkdir()
    for path in fetch(any_store, kept_build(any_store, "2.0-b"), back):
        assert path.read_bytes() == (house.folder / path.name).read_bytes()
    assert names(path.name for path in back.iterdir()) == ["torch2", "triton"]
    assert kept_build(any_store, "3.0-c") is None


def test_what_no_needed_build_has_is_removed_and_nothing_else(any_store, house):
    for build, wheels in (("1-a", ("torch1", "triton")), ("2-b", ("torch2", "triton")), ("3-c", ("torch3", "cudnn"))):
        keep(any_store, build, house.make(*wheels), house.get)
    told = remove_wheels(any_store, ["2-b"], remove=False, now=LATER)
    assert (told.builds, names(told.wheels), told.bytes) == (("1-a", "3-c"), ["cudnn", "torch1", "torch3"], 3000)
    assert len(any_store.list("wheels/")) == 5 and len(kept(any_store)) == 3
    assert remove_wheels(any_store, ["2-b"], now=LATER) == told
    assert (stored(any_store), list(kept(any_store))) == (["torch2", "triton"], ["2-b"])
    assert remove_wheels(any_store, ["2-b"], now=LATER).wheels == ()


def test_a_build_that_was_kept_today_stays_although_nobody_needs_it_yet(any_store, house):
    keep(any_store, "1-a", house.make("torch1"), house.get, now=LATER - timedelta(days=1))
    keep(any_store, "2-b", house.make("torch2"), house.get, now=LATER - timedelta(days=3))
    keep(any_store, "2-b", house.make("torch2"), house.get, now=LATER)  # measured again tonight
    assert remove_wheels(any_store, [], now=LATER).builds == ()
    assert stored(any_store) == ["torch1", "torch2"]


class Killed(BaseException):
    pass


WRITES = ("create_from_file", "write_if", "delete")


def dying_after(store, writes):
    """Let the store end the process, as it were, before or after so many writes. Returns how to bring it to life."""
    alive = {name: getattr(store, name) for name in WRITES}
    left = [writes]

    def dies(name):
        def write(*arguments):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return alive[name](*arguments)

        return write

    for name in WRITES:
        setattr(store, name, dies(name))

    def revive():
        for name in WRITES:
            setattr(store, name, alive[name])

    return revive


def require_whole(store):
    """Every list that says that it is whole is."""
    for build in kept(store).values():
        assert all(store.size(wheel.key) is not None for wheel in build.wheels)


@pytest.mark.parametrize("writes", range(5))
def test_keeping_that_was_killed_between_two_steps_leaves_no_list_without_its_wheels_and_goes_on(
    any_store, house, writes
):
    keep(any_store, "1-a", house.make("torch1", "triton"), house.get)
    wheels = house.make("torch2", "triton", "cudnn")
    revive = dying_after(any_store, writes)
    try:
        keep(any_store, "2-b", wheels, house.get)
    except Killed:
        assert "2-b" not in kept(any_store)
    else:
        assert writes == 4
    revive()
    require_whole(any_store)
    assert remove_wheels(any_store, ["1-a"], now=datetime.now(UTC)).wheels == (), "it may still be coming"
    keep(any_store, "2-b", wheels, house.get)
    assert sorted(kept(any_store)) == ["1-a", "2-b"]
    require_whole(any_store)


@pytest.mark.parametrize("writes", range(4))
def test_removing_that_was_killed_between_two_steps_takes_nothing_that_is_needed_and_goes_on(any_store, house, writes):
    keep(any_store, "1-a", house.make("torch1", "triton"), house.get)
    keep(any_store, "2-b", house.make("torch2", "triton", "cudnn"), house.get)
    revive = dying_after(any_store, writes)
    try:
        remove_wheels(any_store, ["1-a"], now=LATER)
    except Killed:
        pass
    else:
        assert writes == 3
    revive()
    require_whole(any_store)
    assert {"torch1", "triton"} <= set(stored(any_store)) and "1-a" in kept(any_store)
    remove_wheels(any_store, ["1-a"], now=LATER)
    assert stored(any_store) == ["torch1", "triton"]


def test_a_claim_that_was_given_up_long_ago_goes_with_what_it_had_stored(any_store, house):
    def get_and_die(missing):
        any_store.create_from_file(missing[0].key, house.get(missing)[missing[0].file])
        raise Killed

    with pytest.raises(Killed):
        keep(any_store, "1-a", house.make("torch1"), get_and_die)
    assert stored(any_store) == ["torch1"] and kept(any_store) == {}
    remove_wheels(any_store, [], now=LATER)
    assert stored(any_store) == [] and kept_builds(any_store) == []


def test_a_build_that_is_kept_while_wheels_are_removed_loses_none(any_store, house):
    """The other writer claims its wheels when the list of theirs was removed already, just before they are."""
    keep(any_store, "1-a", house.make("torch1", "triton"), house.get)
    wheels, delete = house.make("torch2", "triton"), any_store.delete

    def delete_while_another_keeps(key):
        delete(key)
        if key.startswith("kept/"):
            keep(any_store, "2-b", wheels, house.get, now=LATER)

    any_store.delete = delete_while_another_keeps
    removed = remove_wheels(any_store, [], now=LATER)
    assert names(removed.wheels) == ["torch1"]
    assert stored(any_store) == ["torch2", "triton"] and list(kept(any_store)) == ["2-b"]


def test_a_file_that_is_another_by_now_is_not_kept_and_a_damaged_one_not_given(any_store, house, tmp_path):
    (wheel,) = house.make("torch1")
    (house.folder / wheel.file).write_bytes(b"other")
    with pytest.raises(BaselineError, match=r"is not the wheel torch1-1-py3-none-any\.whl of SHA-256"):
        keep(any_store, "1-a", [wheel], house.get)
    assert kept(any_store) == {} and stored(any_store) == []
    any_store.create(wheel.key, b"damaged")
    keep(any_store, "1-a", [wheel], house.get)
    with pytest.raises(BaselineError, match=f"{wheel.sha256}.*is damaged"):
        fetch(any_store, kept_build(any_store, "1-a"), tmp_path)


def test_a_list_that_cannot_be_read_keeps_every_wheel(any_store, house):
    keep(any_store, "1-a", house.make("torch1"), house.get)
    any_store.create("kept/2-b.json", b"{")
    with pytest.raises(BaselineError, match=r"kept/2-b\.json: .*; remove it, if"):
        remove_wheels(any_store, [], now=LATER)
    assert stored(any_store) == ["torch1"]


def test_builds_of_pins_and_of_the_newest_nights_of_each_class_are_needed(any_store):
    runs = {day: store_run(any_store, run_of(day, {A: 1.0})).rpartition("/")[0] for day in (0, 1, 2, 3)}
    store_run(any_store, run_of(1, {A: 1.0}, machine_class="cpu-8t"))
    set_pin(any_store, "release", runs[0])
    builds = [f"build{day:04}" for day in range(6)]
    assert needed_builds(any_store, builds, 1) == {"build0000", "build0001", "build0003"}
    assert needed_builds(any_store, builds, 2) == {"build0000", "build0001", "build0002", "build0003"}
    assert needed_builds(any_store, ["build00", "build0003-x"], 9) == set()
    any_store.create(f"{runs[3].rpartition('/')[0]}/2026-05-01-build0005-r1/1-of-1.jsonl.gz", b"damaged")
    assert "build0005" in needed_builds(any_store, builds, 1), "what cannot be read is no reason to remove"


def at(day):
    return FIRST_NIGHT + timedelta(days=day)


def test_builds_of_segments_and_of_what_waits_are_needed_however_old(any_store):
    for day in range(60):
        store_run(any_store, run_of(day, {A: 1.0}))
    builds = [f"build{day:04}" for day in range(60)]
    onset = Onset(low=at(12), high=at(14))
    waiting = Pending(kind="regression", base=at(11), confirmed=at(14), onset=onset, pair_sd=0.01)
    series = {
        f"{A} cpu_time": SeriesState(segment=at(5)),
        "other cpu_time": SeriesState(segment=at(5), pending=waiting),
        "third cpu_time": SeriesState(resting=3),
    }
    write_state(any_store, "smoke", "cpu-4t", ClassState(series=series), None)
    assert needed_builds(any_store, builds, 1) == {"build0005", "build0011", "build0014", "build0059"}
    others = {at(30)}
    assert needed_builds(any_store, builds, 1, lambda *which: others) >= {"build0030", "build0005"}


@pytest.mark.parametrize("waits", [False, True])
def test_the_builds_that_a_build_which_moved_most_tests_is_told_by_are_needed_for_a_while(any_store, waits):
    for day in range(60):
        store_run(any_store, run_of(day, {A: 1.0}))
    builds = [f"build{day:04}" for day in range(60)]
    told = {day: Onset(low=at(day - 1), high=at(day - 1)) for day in (20, 45)}
    filed = [
        Filed(id=str(day), kind="regression", night=at(day), onset=onset, of_a_build=True)
        for day, onset in told.items()
    ]
    build = PendingBuild(night=at(50), kind="regression", effects={}) if waits else None
    write_state(any_store, "smoke", "cpu-4t", ClassState(filed=filed, build=build), None)
    expected = {"build0043", "build0044", "build0059"} | ({"build0049", "build0050"} if waits else set())
    assert needed_builds(any_store, builds, 1) == expected


def test_a_state_that_cannot_be_read_makes_no_build_seem_unneeded(any_store):
    store_run(any_store, run_of(0, {A: 1.0}))
    any_store.create("confirming/smoke/cpu-4t.json", b"{")
    with pytest.raises(BaselineError, match=r"confirming/smoke/cpu-4t\.json"):
        needed_builds(any_store, ["build0000"])


def gc(*arguments):
    app = new_app("test")
    cli.register(app)
    return CliRunner().invoke(app, ["baseline", "gc", *arguments])


def test_the_command_removes_wheels_that_nobody_needs_only_when_told(any_store, house):
    today = (datetime.now(UTC) - FIRST_NIGHT).days
    long_ago = datetime.now(UTC) - timedelta(days=40)
    for day in (today - 30, today - 5, today):
        store_run(any_store, run_of(day, {A: 1.0}))
        keep(any_store, f"build{day:04}", house.make(f"torch{day}", "triton"), house.get, now=long_ago)
    options = ("--store", any_store.location, "--keep-nights", "2")
    counted = gc(*options)
    assert counted.exit_code == 0, counted.output
    assert "1 wheel of 1 build to remove" in counted.output and "add --remove" in counted.output
    assert len(kept(any_store)) == 3
    removed = gc(*options, "--remove")
    assert removed.exit_code == 0 and "1 wheel of 1 build removed" in removed.output
    assert stored(any_store) == sorted([f"torch{today - 5}", f"torch{today}", "triton"])
    assert "wheel" not in gc(*options).output
