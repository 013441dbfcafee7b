"""The summary on the page of a workflow run."""

from night_factory import FIRST_NIGHT, A, B, C, equal_weights, night_of

from baselines.confirming.rates import rates_of
from baselines.confirming.state import Accounts, Filed, Interval, Measured, NightOutcome, Onset
from baselines.noisy import NoisyTest
from baselines.policy import load_policy
from bot.pages.job_summary import render_summary
from regression_detector import detect

GOOD = {A: 1.0, B: 1.0, C: 1.0}


def report_of(tests, nights=7):
    history = [night_of(day, GOOD) for day in range(nights)]
    return detect(night_of(7, {**GOOD, **tests}), history, load_policy("default"), weights=equal_weights)


def test_score_and_total_say_what_they_are():
    lines = render_summary(report_of({A: 1.5}), 912.34, "v1.1", []).splitlines()
    assert "- total 873.6: `cpu_time` against the nights before, which are 1000 (+14.5% time), over 3 tests" in lines
    (score,) = [line for line in lines if "score" in line]
    assert score == (
        "- score 912.3: the published Score V1, wall latency against `v1.1`, which is 1000; no verdict hangs on it"
    )


def test_a_first_night_has_neither():
    text = render_summary(report_of({}, nights=0), None, "", [])
    assert "score" not in text and "total" not in text


def test_what_people_called_noise_is_listed_before_the_table():
    until = FIRST_NIGHT.replace(day=20)
    noisy = {A: NoisyTest(since=FIRST_NIGHT, until=until, width=0.2)}
    lines = render_summary(report_of({B: 1.5}).model_copy(update={"noisy": noisy}), None, "", []).splitlines()
    listed = lines.index(f"- called noise until 2026-03-20: `{A}` within 20.0%")
    assert lines[listed + 1 : listed + 3] == ["", "| test | state | change | reason |"]


def test_the_rates_of_a_class_that_is_confirmed_stand_in_it():
    rates = rates_of(Accounts(nights=60, screened=600, candidates=12, confirmed=2, filed=1, aa_tries=46, aa_covered=44))
    outcome = NightOutcome(night=FIRST_NIGHT, rates=rates, margins={"cpu_time": 0.004})
    report = report_of({A: 1.5}).model_copy(update={"confirmation": outcome})
    lines = render_summary(report, None, "", []).splitlines()
    assert "- margin of `cpu_time`: 0.40%, as builds compared with themselves differ" in lines
    assert any(line.startswith("- in 30 nights, by the 60 nights so far: 300 series screened") for line in lines)
    assert any("46 times: 0 would have been confirmed" in line for line in lines)


def test_what_was_measured_again_is_told_with_its_numbers():
    report = report_of({A: 1.5})
    when = report.tonight.started
    onset = Onset(low=when, high=when)
    tried = [
        Measured(
            test=test, channel="cpu_time", kind="regression", verdict=verdict, base=when, onset=onset, pairs=pairs,
            effect=0.5, e_value=200.0, threshold=100.0,
        )
        for test, verdict, pairs in ((A, "confirmed", 9), (B, "futile", 2))
    ]  # fmt: skip
    interval = Interval(test=C, channel="cpu_time", base=when, head=when, effect=0.2, low=0.19, high=0.21)
    filed = Filed(id="1", kind="regression", night=when, onset=onset, intervals=(interval,))
    outcome = NightOutcome(night=when, tried=tuple(tried), filed=(filed,))
    lines = render_summary(report.model_copy(update={"confirmation": outcome}), None, "", []).splitlines()
    assert lines[-5:-2] == [
        f"- confirmed slower by 9 pairs: `{A} cpu_time` +50.0%",
        "- measured again and not confirmed: 1 of 2",
        f"- there again: `{C} cpu_time` +20.0% [+19.0%, +21.0%]",
    ]
    outcome = NightOutcome(night=when, not_measured="a | `machine`")
    text = render_summary(report.model_copy(update={"confirmation": outcome}), None, "", [])
    assert "- not measured again: `a ¦ 'machine'`\n" in text
