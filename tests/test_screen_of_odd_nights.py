"""Nights as they really come, screened through `detect`: missing, doubled, late, of old files, of edge values."""

import json
import math

import numpy as np
import pytest
from night_factory import UNITS, A, B, equal_weights, night_of

from baselines.policy import load_policy
from baselines.report import Report
from baselines.series import NightSummary
from regression_detector import detect
from torchbenchmark.records import Status

POLICY = load_policy("default")


def values(count, seed=1, sd=0.003, step_at=None, size=0.03):
    logs = np.random.default_rng(seed).normal(0, sd, count)
    if step_at is not None:
        logs[step_at:] += math.log1p(size)
    return np.exp(logs)


def nights_of(seconds, days=None, **fields):
    days = range(len(seconds)) if days is None else days
    return [
        night_of(day, {A: {"cpu_time": float(one)}}, run=f"r{index:04}", **fields)
        for index, (day, one) in enumerate(zip(days, seconds, strict=True))
    ]


def screened(nights, policy=POLICY, **options):
    report = detect(nights[-1], nights[:-1], policy, weights=equal_weights, **options)
    assert Report.model_validate_json(report.to_json()) == report
    return report.screen


@pytest.mark.parametrize(
    "days",
    [
        [3 * night for night in range(60)],
        [night + 200 * (night >= 30) for night in range(60)],
        [night // 2 for night in range(60)],
    ],
    ids=["two of three nights missing", "half a year missing", "two runs a night"],
)
def test_only_the_order_of_the_nights_counts(days):
    seconds = values(60, step_at=57)
    (suspect,) = screened(nights_of(seconds, days)).suspects
    (plain,) = screened(nights_of(seconds)).suspects
    assert (suspect.kind, suspect.score, suspect.effect) == ("regression", plain.score, plain.effect)


def test_nights_in_which_the_test_failed_or_was_not_planned_are_left_out():
    seconds = values(40, step_at=38)
    odd = [{A: Status.CRASH, B: 1.0}, {A: None, B: 1.0}, {B: 1.0}]
    made: list[NightSummary] = []
    for index, one in enumerate(seconds):
        if index % 4 == 3:
            made.append(night_of(len(made), odd[index % 3]))
        made.append(night_of(len(made), {A: {"cpu_time": float(one)}, B: 1.0}))
    assert len(made) == 50
    score = next(one for one in screened(made).scores if one.test == A)
    assert score == screened(nights_of(seconds)).scores[0].model_copy(update={"shift_reported": None})


def test_a_clock_that_went_back_orders_the_nights_and_stops_nothing():
    days = [*range(30), *range(10, 31)]
    screen = screened(nights_of(values(51), days))
    assert screen.series == 1 and screen.suspects == () and screen.scores[0].level_nights == 30


def test_the_order_in_which_the_history_is_given_does_not_matter():
    nights = nights_of(values(50, step_at=47))
    mixed = [nights[index] for index in np.random.default_rng(0).permutation(49)]
    assert screened([*mixed, nights[-1]]) == screened(nights)


def test_a_unit_that_changed_is_no_step():
    seconds = nights_of(values(40))
    milliseconds = [
        night_of(40 + day, {A: {"cpu_time": 1000.0 * float(one)}}, units={**UNITS, "cpu_time": "ms"})
        for day, one in enumerate(values(20, seed=2))
    ]
    for count in (1, 3, 20):
        screen = screened([*seconds, *milliseconds[:count]])
        assert screen.suspects == () and all(one.level_nights < 20 for one in screen.scores)


def without_new_fields(night: NightSummary) -> NightSummary:
    """As the history of before the screen holds it."""
    content = json.loads(night.model_dump_json(by_alias=True))
    del content["runner"]
    for test in content["tests"].values():
        del test["throttled"]
    return NightSummary.model_validate(content)


def test_histories_of_before_there_was_a_screen_are_screened_as_those_of_today():
    nights = nights_of(values(50, step_at=47))
    old = [*map(without_new_fields, nights[:-5]), *nights[-5:]]
    assert old[0].runner == "" and not old[0].tests[A].throttled
    assert screened(old).suspects == screened(nights).suspects != ()


def test_the_knob_of_the_policy_says_how_sure_a_report_is():
    step = values(70, sd=0.01, seed=5, step_at=55, size=0.012)
    reported = {
        knob: [
            night
            for night in range(56, 70)
            if any(
                one.reported
                for one in screened(nights_of(step[: night + 1]), POLICY.model_copy(update={"screen": knob})).suspects
            )
        ]
        for knob in ("strict", "default", "sensitive")
    }
    assert reported["strict"] == [] and len(reported["sensitive"]) == 1
    assert screened(nights_of(step), POLICY.model_copy(update={"screen": "strict"})).knob == "strict"


@pytest.mark.parametrize("last", [1, 2, 3, 4, 8, 60])
def test_young_and_constant_series_are_screened_and_say_nothing(last):
    screen = screened(nights_of(np.ones(last + 1)))
    assert screen.suspects == () and screen.series == 1
    assert all(one.score <= 0 and one.effect == 0 and one.scale > 0 for one in screen.scores)


@pytest.mark.parametrize("scale", [1e-310, 1e-9, 1e16])
def test_what_a_series_is_measured_in_does_not_matter_to_its_suspects(scale):
    seconds = values(60, step_at=57)
    (suspect,) = screened(nights_of(scale * seconds)).suspects
    assert suspect.score == pytest.approx(screened(nights_of(seconds)).suspects[0].score, rel=1e-3)


def test_a_night_far_off_is_a_suspect_that_night_and_no_report_and_gone_the_next():
    seconds = values(60)
    seconds[57] *= 10
    told = [screened(nights_of(seconds[: night + 1])) for night in (56, 57, 58, 59)]
    assert [len(one.suspects) for one in told] == [0, 1, 0, 0]
    assert not told[1].suspects[0].reported and told[1].suspects[0].severe


def test_a_drift_is_told_before_it_is_four_percent():
    logs = np.random.default_rng(3).normal(0, 0.004, 80)
    logs[60:] += 0.005 * np.arange(1, 21)
    nights = nights_of(np.exp(logs))
    first = next(night for night in range(60, 80) if screened(nights[: night + 1]).suspects)
    assert 0.005 * (first - 59) < 0.04
    told = [screened(nights[: night + 1]).suspects for night in range(first, 68)]
    assert all(one[0].kind == "regression" for one in told if one)


def test_a_level_shift_is_reported_in_one_night_and_its_onset_lies_in_its_interval():
    nights = nights_of(values(70, step_at=55))
    reported = [
        suspect for night in range(54, 70) for suspect in screened(nights[: night + 1]).suspects if suspect.reported
    ]
    (only,) = reported
    assert only.onset_low <= nights[55].started <= only.onset_high


def test_an_end_of_a_regression_is_called_an_improvement_by_the_night_that_reports_it():
    seconds = values(80, step_at=55, size=0.05)
    seconds[65:] /= 1.05
    nights = nights_of(seconds)
    kinds = [
        suspect.kind
        for night in range(54, 80)
        for suspect in screened(nights[: night + 1]).suspects
        if suspect.reported
    ]
    assert kinds == ["regression", "improvement"]


def test_a_first_night_and_a_night_without_a_test_that_ended_ok_have_defined_screens():
    (first,) = nights_of([1.0])
    assert detect(first, [], POLICY, weights=equal_weights).screen is None
    failed = night_of(9, {A: Status.CRASH})
    screen = screened([*nights_of(values(9)), failed])
    assert screen.series == 0 and screen.scores == ()
    assert [one.kind for one in screen.suspects] == ["status change"] and screen.suspects[0].score is None
