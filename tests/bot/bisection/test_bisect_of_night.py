"""The bisections of a night: what is bisected, for how long, what a failure does, and what the night tells of it."""

import itertools
import json
from functools import partial

import pytest
from alert_of_commits import KEY, alert_of, keep_alert, made_up, run_of_commit, store_of, stored_alert
from night_factory import A, B, night_of, run_of
from small_repository import SmallRepository

from baselines.policy import load_policy
from baselines.runs import store_run
from baselines.store import open_store
from bot import nightly
from bot.bisect_settings import BisectSettings
from bot.conclusion import conclude
from bot.config import NightlyConfig, load_config
from bot.culprits import of_night
from bot.culprits.of_night import bisect_tonight
from bot.errors import BotError
from bot.github.outbox import Outbox

OTHER = "00000000000000bb"


class Night:
    """A night's configuration, and the instrument that is handed out."""

    def __init__(self, folder, repository) -> None:
        self.repository = repository
        self.config = NightlyConfig(
            store=str(folder / "store"),
            work=folder / "work",
            outbox=folder / "outbox",
            bisect=BisectSettings(repo=repository.folder, build="make"),
        )
        self.made = made_up(repository, "c0", "c8", "c5")
        self.asked = []

    def instrument(self, config, chosen, asked, commits, folder, leases):
        self.asked.append(asked)
        self.built_from = commits.address("c0")
        return self.made

    def bisect(self, store, *alerts):
        return bisect_tonight(self.config, store, night_of(1, {A: 1.0}), alerts, self.instrument)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> SmallRepository:
    """Nobody writes into it."""
    found = SmallRepository(tmp_path_factory.mktemp("night") / "project")
    found.line(8)
    return found


@pytest.fixture
def night(tmp_path, repository, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    return Night(tmp_path, repository)


@pytest.fixture
def store(tmp_path, night):
    return store_of(tmp_path / "store", night.repository, "c0", "c8")


def test_an_open_alert_without_a_verdict_is_bisected_once(night, store):
    (ended,) = night.bisect(store, stored_alert(store))

    assert (ended.alert, ended.verdict) == (KEY, "culprit")
    assert "c5 @everyone" in ended.told
    assert stored_alert(store).verdict.changes[0].commits[0].commit == night.repository.git("rev-parse", "c5")
    assert night.bisect(store, stored_alert(store)) == []
    assert list((night.config.work / "bisect").iterdir()) == []


def test_builds_are_of_the_repository_that_reverts_are_made_in_whatever_folder_of_it_is_named(night, store):
    below = night.repository.folder / "below"
    below.mkdir(exist_ok=True)
    night.config = night.config.model_copy(update={"bisect": BisectSettings(repo=below, build="make")})

    night.bisect(store, stored_alert(store))

    assert night.built_from == f"git:{night.repository.folder.resolve()}@c0"


@pytest.mark.parametrize("fields", [{"kind": "improvement"}, {"closed": "2026-03-04T00:00:00Z"}], ids=str)
def test_what_is_closed_or_announced_is_left_alone(night, store, fields):
    assert night.bisect(store, alert_of(**fields)) == []


def test_what_a_night_has_no_time_for_goes_on_in_the_next_as_it_was_asked(night, store, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(of_night.time, "monotonic", lambda: 60.0 * 12 * next(clock))

    (first,) = night.bisect(store, stored_alert(store))

    assert first.verdict == "" and first.told == "120 minutes of bisecting are over; it goes on in the next night"
    done = list(night.made.done)
    assert len(done) > 3
    later = stored_alert(store).model_copy(update={"tests": (A, B, "joined"), "intervals": ()})
    monkeypatch.setattr(of_night.time, "monotonic", lambda: 0.0)

    (second,) = night.bisect(store, later)

    assert second.verdict == "culprit"
    assert night.asked[0] == night.asked[1]
    assert len([one for one in night.made.done if one.startswith("build")]) == len(
        {one for one in night.made.done if one.startswith("build")}
    )
    assert night.made.done[: len(done)] == done


def test_what_was_begun_comes_first_and_what_cannot_be_bisected_stops_no_other(night, store, monkeypatch):
    keep_alert(store, alert_of(key=OTHER, opened="2026-03-09T00:00:00Z", good_until=None, intervals=()))
    alerts = [alert_of(key=OTHER, opened="2026-03-09T00:00:00Z", good_until=None, intervals=()), stored_alert(store)]

    first, second = night.bisect(store, *alerts)

    assert (first.alert, second.alert) == (OTHER, KEY)
    assert first.told.startswith(f"not bisected: alert {OTHER}: no night before it was good for") and not first.verdict
    assert second.verdict == "culprit"


@pytest.mark.parametrize(
    ("problem", "told"),
    [(BotError("the disk is full"), "not bisected: the disk is full"), (KeyError("x"), "not bisected: KeyError: 'x'")],
)
def test_whatever_fails_is_told_and_breaks_no_night(night, store, problem, told):
    def fail(*_):
        raise problem

    night.made.build = fail

    assert [one.told for one in night.bisect(store, stored_alert(store))] == [told]


def test_a_night_files_first_and_then_what_its_bisection_has_found(night, tmp_path, capsys):
    store, policy = open_store(night.config.store), load_policy("default")
    night.config.work.mkdir()
    commits = {7: night.repository.git("rev-parse", "c8")}
    seen = []

    def instrument(*given):
        seen.append([path.read_text() for path in night.config.outbox.glob("*.md")])
        return night.instrument(*given)

    for day in range(8):
        commit = commits.get(day, night.made.line[0])
        run = run_of_commit(day, commit, {A: 1.5 if day in commits else 1.0, B: 1.0})
        store_run(store, run)
        bisect = partial(bisect_tonight, night.config, store, instrument_of=instrument)
        code = conclude(night.config, store, policy, run, Outbox(night.config.outbox), bisect=bisect)

    assert code == 1
    assert [len(issues) for issues in seen] == [1] and "The culprit is" not in seen[0][0]
    (issue,) = night.config.outbox.glob("*.md")
    assert "\n**The culprit is** `" in issue.read_text() and "`c5 @everyone '<script>'`" in issue.read_text()
    summary = json.loads((night.config.work / "nightly.json").read_text())
    assert [one["verdict"] for one in summary["bisections"]] == ["culprit"]
    assert [one["effect"] for one in summary["issues"]] == ["created"]
    said = capsys.readouterr().out
    assert "culprit: " in said.rpartition("nightly smoke")[2]
    assert said.rstrip().splitlines()[-1].startswith("verdict: regression")


def test_a_night_of_long_ago_leaves_its_bisections_to_tonight(night, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(nightly, "_bisect", lambda *_: asked.append("asked"))
    config = night.config.model_copy(update={"confirm": False})
    config.work.mkdir()
    given = (config, open_store(config.store), load_policy("default"), run_of(0, {A: 1.0}), tmp_path / "tonight", 0.0)

    assert nightly._finish(*given) == 0
    assert asked == []
    assert nightly._store_and_conclude(*given) == 0
    assert asked == ["asked"]


def test_the_repository_of_a_configuration_is_relative_to_it_and_no_repository_means_no_bisection(tmp_path):
    (tmp_path / "nightly.yaml").write_text("bisect: {repo: ../project}\n")
    assert load_config(tmp_path / "nightly.yaml").bisect.repo == tmp_path.parent / "project"
    assert NightlyConfig().bisect is None
    (tmp_path / "nightly.yaml").write_text("bisect: {most_minutes: 1}\n")
    with pytest.raises(BotError, match=r"bisect\.repo"):
        load_config(tmp_path / "nightly.yaml")
