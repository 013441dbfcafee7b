"""What a night files as slower is profiled once, within a budget, and told below the effect; no failure stops it."""

import dataclasses
import math
from datetime import timedelta

import pytest
from made_profiles import HOST, profiles
from night_factory import FIRST_NIGHT, A, run_of
from scripted_bench import OTHERS, Scripted, values

from baselines.history import read_nights
from baselines.policy import load_policy
from baselines.runs import store_run
from baselines.series import chronological
from baselines.store import open_store
from bot import attributing
from bot.attributing import Profiled, attribute_alerts, profile_on_machine
from bot.conclusion import conclude
from bot.config import NightlyConfig
from bot.confirming.confirmation import confirm_night
from bot.errors import BotError
from bot.github.alert import Episode
from bot.github.alert_store import read_alerts
from bot.github.outbox import Outbox
from bot.inside import AttributeSettings
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.profiles.difference import attribute

POLICY = load_policy("default")
CLASS = "cpu-4t"
EVIL = "mine::@everyone|`x`<b>"


class Machine:
    """Profiles in which one operator takes twice as long; killed or failing if that is said."""

    def __init__(self) -> None:
        self.asked = []
        self.problem: BaseException | None = None

    def __call__(self, wanted) -> Profiled:
        self.asked.append(wanted)
        if self.problem is not None:
            raise self.problem
        base, head = ({**HOST, EVIL: (2, took)} for took in (200, 400))
        return Profiled("good", "slow", attribute([profiles((base,), (head,))]))


@pytest.fixture
def night(tmp_path):
    """Concludes the night of a day in which these tests are slower."""
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", outbox=tmp_path / "outbox")
    config.work.mkdir()
    store = open_store(config.store)
    machine = Machine()

    def conclude_night(day, slow=(), settings=None):
        times = {
            test: values(1.2 if test in slow else 1.0, day) if test in (A, *slow) else [1.0, 1.001, 0.999]
            for test in (A, *OTHERS)
        }
        run = run_of(day, {test: {"cpu_time": processes} for test, processes in times.items()})
        store_run(store, run)
        bench = Scripted({test: math.log(1.2) for test in slow})

        def confirm(tonight, report, canary):
            return confirm_night(store, tonight, report, POLICY, lambda nights: bench, canary)

        def attributed(tonight, report, alerts, show):
            return attribute_alerts(settings or AttributeSettings(), store, tonight, report, alerts, show, machine)

        conclude(config, store, POLICY, run, Outbox(config.outbox), confirm=confirm, attribute=attributed)
        return [path.read_text() for path in sorted(config.outbox.glob("*.md"))]

    conclude_night.machine = machine
    conclude_night.store = store
    conclude_night.alerts = lambda: read_alerts(store, "smoke", CLASS)
    return conclude_night


def two_slow_nights(night, slow=(A,), **options):
    for day in range(3):
        night(day)
    assert night(3, slow, **options) == [], "filed by the second night"
    return night(4, slow, **options)


def test_what_is_filed_is_profiled_once_and_told_below_the_effect_as_text_that_does_nothing(night):
    (issue,) = two_slow_nights(night)
    (wanted,) = night.machine.asked
    assert wanted.tests == (A,) and wanted.base < wanted.head
    at = [issue.index(text) for text in ("| slower by |", "Inside, both builds", "What this night says of them")]
    assert at == sorted(at)
    assert "`good` against `slow`" in issue and "% of its time" in issue and "| CPU |" in issue
    outside = "".join(part for place, part in enumerate(issue.split("`")) if place % 2 == 0)
    assert "@everyone" not in outside and "<b>" not in outside
    (again,) = night(5, (A,))
    assert len(night.machine.asked) == 1 and "Inside, both builds" in again
    assert len(night.store.list("attributions/")) == 1


def test_a_night_killed_while_it_profiles_profiles_when_it_is_started_again(night):
    night.machine.problem = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        two_slow_nights(night)
    night.machine.problem = None
    (issue,) = night(4, (A,))
    assert len(night.machine.asked) == 2 and "Inside, both builds" in issue


@pytest.mark.parametrize(
    ("problem", "told"),
    [(BenchmarkError("no room | for `it`"), "no room ¦ for 'it'"), (ValueError("odd"), "ValueError('odd')")],
)
def test_a_profile_that_fails_is_a_sentence_and_the_issue_is_filed_and_not_tried_again(night, problem, told):
    night.machine.problem = problem
    (issue,) = two_slow_nights(night)
    assert f"What got slower inside was not profiled: `{told}`" in issue and "confirmed twice" in issue
    night(5, (A,))
    assert len(night.machine.asked) == 1


def test_no_more_tests_than_the_budget_are_profiled_and_none_with_none(night):
    slow = (A, OTHERS[0])
    issues = two_slow_nights(night, slow, settings=AttributeSettings(tests=1))
    assert sum(len(wanted.tests) for wanted in night.machine.asked) == 1
    assert "Inside, both builds" in "".join(issues)


def test_an_alert_that_the_budget_does_not_reach_says_so(night, monkeypatch):
    asked_for = attributing.wanted_of

    def with_a_larger_one(report, alerts):
        found = asked_for(report, alerts)
        return [dataclasses.replace(one, alert=one.alert.model_copy(update={"key": "larger"})) for one in found] + found

    monkeypatch.setattr(attributing, "wanted_of", with_a_larger_one)
    (issue,) = two_slow_nights(night, settings=AttributeSettings(tests=1))
    assert [wanted.alert.key for wanted in night.machine.asked] == ["larger"]
    assert "not profiled: `the budget of the night, 1 test, was spent on others`" in issue


def test_with_a_budget_of_none_nothing_is_profiled_or_said(night):
    (issue,) = two_slow_nights(night, settings=AttributeSettings(tests=0))
    assert night.machine.asked == [] and "rofiled" not in issue.partition("What this night says")[0]


def test_a_relapse_is_another_change_of_which_nothing_is_known_inside(night):
    two_slow_nights(night)
    (alert,) = night.alerts()
    reopened = alert.model_copy(update={"earlier": (Episode(since=FIRST_NIGHT, until=FIRST_NIGHT),)})
    assert alert.inside is not None and reopened.inside is None


def test_builds_that_are_not_to_be_had_are_told(night, tmp_path):
    two_slow_nights(night)
    (wanted,) = night.machine.asked
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work")
    tonight = chronological(read_nights(night.store, "smoke", CLASS, 1, before=FIRST_NIGHT + timedelta(days=9)))[-1]
    with pytest.raises(BotError, match=r"2026-03-03 .* is not to be had: /venv/bin/python: .* has no pin"):
        profile_on_machine(config, night.store, tonight, wanted)
    never = dataclasses.replace(wanted, base=FIRST_NIGHT - timedelta(days=500))
    with pytest.raises(BotError, match="is not to be had: it is not among the nights"):
        profile_on_machine(config, night.store, tonight, never)
