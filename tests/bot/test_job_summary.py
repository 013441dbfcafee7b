"""The summary on the page of a workflow run."""

from night_factory import A, B, C, equal_weights, night_of

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
