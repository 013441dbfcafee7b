"""`torchbench bisect --from-signal`: by what an alert is bisected, what it is told, and where that cannot be."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from alert_of_commits import (
    HERE,
    KEY,
    alert_of,
    at,
    interval,
    keep_alert,
    made_up,
    store_night,
    store_of,
    stored_alert,
)
from night_factory import A, B
from small_repository import SmallRepository

from baselines.store import open_store
from bot import bisect
from bot.bisection.document import End
from bot.culprits import tests_of_suite
from bot.culprits.signal_range import range_of
from bot.errors import BotError
from bot.github.alert import AlertNight, Episode
from torchbenchmark.terminal import new_app, run_app


class Ended(NamedTuple):
    code: int
    out: str
    error: str


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> SmallRepository:
    """Nothing here changes what its tags c0 ... c8 are."""
    found = SmallRepository(tmp_path_factory.mktemp("signal") / "project")
    found.line(8)
    return found


@pytest.fixture
def torchbench(capsys, tmp_path, monkeypatch) -> Callable[..., Ended]:
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    app = new_app("torchbench")
    app.callback()(lambda: None)
    bisect.register(app)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run_app(app, ["bisect", "--work", str(tmp_path / "work"), *map(str, arguments)])
        return Ended(ended.value.code, *(" ".join(text.split()) for text in capsys.readouterr()))

    return run


@pytest.fixture
def instrument(monkeypatch, repository):
    """What the command measures with, once a test has said what its commits measure; and what it was asked."""
    asked = []

    def use(culprit: str | None = None, step: float = 0.12):
        made = made_up(repository, "c0", "c8", culprit, step)

        def take(chosen, *rest):
            asked.append(chosen)
            return made

        monkeypatch.setattr(bisect, "_instrument", take)
        return made

    use.asked = asked
    return use


def from_signal(repository: SmallRepository, store: Path, name: str = KEY) -> tuple[object, ...]:
    return ("--repo", repository.folder, "--from-signal", name, "--store", store)


def test_the_ends_the_tests_and_how_they_are_measured_come_from_the_alert_and_the_verdict_goes_to_it(
    repository, torchbench, instrument, tmp_path
):
    store = store_of(tmp_path / "store", repository, "c0", "c8")
    made = instrument("c5")

    ended = torchbench(*from_signal(repository, tmp_path / "store"), "--json", tmp_path / "out.json")

    assert ended.code == 1, ended.error
    (asked,) = instrument.asked
    assert (asked.good, asked.bad) == (made.line[0], made.line[-1])
    assert (asked.tests, asked.channel, asked.subject) == ((A,), "cpu_time", "torch")
    assert (asked.suite, asked.device, asked.threads, asked.budget_s) == ("smoke", "cpu", 4, 1.0)
    assert asked.beyond == pytest.approx(0.06)
    culprit = repository.git("rev-parse", "c5")
    assert json.loads((tmp_path / "out.json").read_text())["changes"][0]["commits"] == [culprit]
    alert = stored_alert(store)
    assert (alert.verdict.verdict, alert.revision) == ("culprit", 1)
    (change,) = alert.verdict.changes
    assert [(one.commit, one.subject) for one in change.commits] == [(culprit, "c5 @everyone `<script>`")]
    assert re.match(r"\+1[1-4](\.\d)? % \[.*\] \(worse\)$", change.told) and change.probability > 0.95
    assert f"written to alert {KEY}" in ended.out


def test_the_wheels_that_a_command_measures_are_of_the_alerts_subject(repository, torchbench, instrument, tmp_path):
    store_of(tmp_path / "store", repository, "c0", "c8")
    instrument("c5")
    config = tmp_path / "nightly.yaml"
    config.write_text("subject: timm\n")
    wheels = "url:https://ci.example.org/{sha}/torch-1.0-py3-none-any.whl"
    how = ("--measure", "python work.py", "--wheels", wheels, "--config", config)

    ended = torchbench(*from_signal(repository, tmp_path / "store"), *how)

    assert ended.code == 1, ended.error
    (asked,) = instrument.asked
    assert (asked.subject, asked.measure) == ("torch", "python work.py")


def test_an_alert_is_bisected_twice_only_where_that_is_asked(repository, torchbench, instrument, tmp_path):
    store_of(tmp_path / "store", repository, "c0", "c8")
    made = instrument("c5")
    arguments = from_signal(repository, tmp_path / "store")
    torchbench(*arguments)
    first = len(made.done)

    known = torchbench(*arguments)

    assert known.code == 1 and len(made.done) == first
    assert "was bisected on" in known.out and "culprit: " in known.out and "c5 @everyone" in known.out
    measure = made.measure
    made.measure = interrupted
    assert torchbench(*arguments, "--again").code == 2
    made.measure = measure
    assert torchbench(*arguments, "--again").code == 1
    assert made.done.count(f"build {made.line[0]}") == 2  # also an `--again` that was ended goes on


def interrupted(*_) -> None:
    raise BotError("the disk is full")


def test_two_builds_of_one_commit_are_no_range_and_what_differs_is_told(repository, torchbench, tmp_path):
    store_of(tmp_path / "store", repository, "c3", "c3", kernel="6.9")

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 2
    assert "are of one commit" in ended.error
    assert "beside it differ: environment kernel: nothing became 6.9" in ended.error


def test_a_relapse_has_no_verdict_yet(repository, torchbench, instrument, tmp_path):
    store = store_of(tmp_path / "store", repository, "c0", "c8")
    instrument("c5")
    torchbench(*from_signal(repository, tmp_path / "store"))
    alert = stored_alert(store)

    relapsed = alert.model_copy(update={"earlier": (Episode(since=at(1), until=at(2)),)})

    assert alert.verdict is not None and relapsed.verdict is None


def test_equal_ends_in_another_environment_are_told_with_what_differs(repository, torchbench, instrument, tmp_path):
    store = store_of(tmp_path / "store", repository, "c0", "c8", kernel="6.9", measuring_code="other")
    instrument()

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 0, ended.error
    assert "environment, not a commit: the ends show" in ended.out
    assert "environment kernel: nothing became 6.9; environment measuring_code: nothing became other" in ended.out
    verdict = stored_alert(store).verdict
    assert verdict.verdict == "environment"
    assert verdict.environment == (
        "environment kernel: nothing became 6.9",
        "environment measuring_code: nothing became other",
    )


def test_equal_ends_where_nothing_else_differs_are_not_reproduced(repository, torchbench, instrument, tmp_path):
    store = store_of(tmp_path / "store", repository, "c0", "c8")
    instrument()

    assert torchbench(*from_signal(repository, tmp_path / "store")).code == 0

    assert stored_alert(store).verdict.verdict == "not reproduced"


def test_what_a_person_names_goes_before_what_the_alert_says(repository, torchbench, instrument, tmp_path):
    store_of(tmp_path / "store", repository, "c0", "c8")
    instrument("c5")

    ended = torchbench(
        *from_signal(repository, tmp_path / "store", "signal-1"), "--good", "c2", "--tests", B, "--beyond", "0.02",
        "--threads", "2", "--most-builds", "20",
    )  # fmt: skip

    assert ended.code == 1, ended.error
    (asked,) = instrument.asked
    assert asked.good == repository.git("rev-parse", "c2")
    assert (asked.tests, asked.beyond, asked.threads, asked.most_builds) == ((B,), 0.02, 2, 20)


@pytest.mark.parametrize("name", ["ffff", "ffffffffffffffff", "signal-2", "", "00", "`x` @y"])
def test_an_id_that_is_unknown_is_told_with_those_that_there_are(repository, torchbench, tmp_path, name):
    store_of(tmp_path / "store", repository, "c0", "c8")

    ended = torchbench(*from_signal(repository, tmp_path / "store", name))

    assert ended.code == 2
    assert f"no alert '{name}'; there are: {KEY} (regression, 2 of smoke on {HERE}, since 2026-03-02)" in ended.error


def test_an_id_of_several_is_told(repository, torchbench, tmp_path):
    store = store_of(tmp_path / "store", repository, "c0", "c8")
    keep_alert(store, alert_of(key="00000000000000ab"))

    ended = torchbench(*from_signal(repository, tmp_path / "store", "signal-1"))

    assert ended.code == 2
    assert "may be any of" in ended.error and KEY in ended.error and "00000000000000ab" in ended.error


def test_a_repository_of_something_else_is_told(repository, torchbench, tmp_path):
    store_of(tmp_path / "store", repository, "c0", "c8")
    other = SmallRepository(tmp_path / "other")
    other.commit("x", 1)

    ended = torchbench(*from_signal(other, tmp_path / "store"))

    assert ended.code == 2
    assert f"has none of {repository.git('rev-parse', 'c0')}" in ended.error
    assert "is it the repository of torch, and fetched" in ended.error


def test_a_machine_of_another_class_is_told(repository, torchbench, tmp_path, monkeypatch):
    monkeypatch.setattr(tests_of_suite, "choose", lambda *_: None)
    store_of(tmp_path / "store", repository, "c0", "c8", machine_class="cpu-another-t4")

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 2
    assert f"this machine is of class {HERE}, and the alert of class cpu-another-t4" in ended.error


@pytest.mark.parametrize("kind", ["count", "environment"])
def test_what_keeps_no_night_before_it_is_told(repository, torchbench, tmp_path, kind):
    store = open_store(str(tmp_path / "store"))
    store_night(store, 0, None)
    keep_alert(store, alert_of(kind=kind))

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 2
    assert f"tells of {kind}, and keeps no night before it" in ended.error


def test_a_night_that_the_store_has_no_more_is_told(repository, torchbench, tmp_path):
    store = open_store(str(tmp_path / "store"))
    store_night(store, 1, repository.git("rev-parse", "c8"))
    keep_alert(store, alert_of())

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 2
    assert "has no night of 2026-03-01 02:00 UTC of smoke on" in ended.error


def test_the_commit_may_stand_in_the_version_a_tag_or_the_message_of_a_nightly(
    repository, torchbench, instrument, tmp_path
):
    instrument("c5")
    repository.git("tag", "v0.9", "c0")
    main = repository.git("rev-parse", "c8")
    repository.git("checkout", "--quiet", "--orphan", "nightly")
    repository.git("commit", "--quiet", "--allow-empty", "-m", f"2026-03-02 nightly release ({main})")
    nightly = repository.git("rev-parse", "HEAD")
    store = open_store(str(tmp_path / "store"))
    store_night(store, 0, None, version="0.9+cpu")
    store_night(store, 1, nightly)
    keep_alert(store, alert_of())

    assert torchbench(*from_signal(repository, tmp_path / "store")).code == 1

    (asked,) = instrument.asked
    assert (asked.good, asked.bad) == (repository.git("rev-parse", "c0"), main)


def test_tests_that_fail_are_bisected_by_their_status(repository, torchbench, instrument, tmp_path):
    store = open_store(str(tmp_path / "store"))
    for day, name in enumerate(("c0", "c8")):
        store_night(store, day, repository.git("rev-parse", name))
    found = (AlertNight(run="r0001", started=at(1), build="build0001", findings={A: "crash: SIGSEGV"}),)
    keep_alert(store, alert_of(kind="failure", tests=(A,), nights=found, intervals=(), effects={}))
    made = instrument("c5")
    place = made.line.index(repository.git("rev-parse", "c5"))

    def runs(good, visit, keep):
        crashes = made.line.index(visit.commit) >= place
        ends = tuple(End(outcome="crash" if crashes else "ok", seconds=1.0) for _ in range(visit.n))
        return visit.model_copy(update={"ends": ends})

    made.measure = runs

    ended = torchbench(*from_signal(repository, tmp_path / "store"))

    assert ended.code == 1, ended.error
    (asked,) = instrument.asked
    assert (asked.compared, asked.tests, asked.channel, asked.beyond) == ("status", (A,), "", None)
    (change,) = stored_alert(store).verdict.changes
    assert "ok" in change.told and "crash" in change.told


def test_the_range_is_good_and_bad_for_every_test_and_of_the_channel_of_most(tmp_path):
    store = open_store(str(tmp_path / "store"))
    for day in range(5):
        store_night(store, day, None)
    shown = (
        interval(A, 0.2, base=1, head=3),
        interval(B, 0.1, base=0, head=2),
        interval(B, 0.3, channel="cpu_memory"),
        interval("other", 0.3, channel="latency"),
    )

    found = range_of(store, alert_of(intervals=shown, tests=(A, B, "other")))

    assert (found.tests, found.channel, found.effect) == ((A, B), "cpu_time", 0.1)
    assert (found.good.started, found.bad.started) == (at(0), at(3))


def test_an_alert_of_the_limits_alone_has_the_last_good_night_and_the_first_that_found_it(tmp_path):
    store = open_store(str(tmp_path / "store"))
    for day in range(2):
        store_night(store, day, None)

    found = range_of(store, alert_of(intervals=(), effects={}, tests=(A,)))

    assert (found.tests, found.channel, found.beyond) == ((A,), "cpu_time", None)
    assert (found.good.started, found.bad.started) == (at(0), at(1))


def test_a_config_names_the_store_and_what_is_needed_is_told(repository, torchbench, instrument, tmp_path):
    instrument("c5")
    store_of(tmp_path / "store", repository, "c0", "c8")
    (tmp_path / "nightly.yaml").write_text("store: store\n")

    asked = ("--repo", repository.folder, "--from-signal", KEY)
    assert torchbench(*asked, "--config", tmp_path / "nightly.yaml").code == 1
    assert "name the --store that has it" in torchbench(*asked).error
    assert "--repo PATH" in torchbench("--from-signal", KEY).error
