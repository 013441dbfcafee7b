"""The screen of a night as `detect` tells it: which suspects, in which order, and why."""

import json

import numpy as np
import pytest
from night_factory import A, B, C, night_of, run_of

from baselines.policy import load_policy
from baselines.report import Report
from baselines.series import NightSummary, summarise
from baselines.suspects import LEAST_SCORE
from regression_detector import detect
from torchbenchmark.paired.noise_table import ChannelNoise, NoiseTable

POLICY = load_policy("default")
LEVELS = {A: 0.02, B: 0.05, C: 0.004}


def nights(count, change=lambda day, test: 1.0, sd=0.003, seed=1, **fields):
    """`count` nights of three tests and two channels; `change` multiplies the time of a test."""
    generator = np.random.default_rng(seed)
    made = []
    for day in range(count):
        tests = {}
        for test, level in LEVELS.items():
            seconds = [level * change(day, test) * float(np.exp(generator.normal(0, sd))) for _ in range(3)]
            tests[test] = {"cpu_time": seconds, "throughput": [1 / one for one in seconds], "operators": [70.0] * 3}
        made.append(night_of(day, tests, **fields))
    return made


def screen_of(history, **options):
    return detect(history[-1], history[:-1], POLICY, **options).screen


def step_of(test, at, factor):
    return lambda day, one: factor if one == test and day >= at else 1.0


def test_a_step_far_below_the_limit_is_a_suspect_with_its_numbers_in_one_sentence():
    report = detect((history := nights(40, step_of(A, 38, 1.02)))[-1], history[:-1], POLICY)
    assert report.verdict == "clean"
    (suspect,) = report.screen.suspects
    assert (suspect.kind, suspect.test, suspect.channel) == ("regression", A, "cpu_time")
    assert suspect.effect == pytest.approx(0.02, abs=0.006) and not suspect.severe
    assert "cpu_time is +" in suspect.why and "against the level of 30 nights before" in suspect.why
    assert "for 2 nights, since 2026-04-08" in suspect.why and "likelier with a change" in suspect.why


def test_an_improvement_is_one_and_nothing_is_said_of_the_rest():
    screen = screen_of(nights(40, step_of(B, 37, 0.95)))
    assert [(one.kind, one.test) for one in screen.suspects] == [("improvement", B)]
    assert screen.series == 3 and {one.test for one in screen.scores} == {A, B, C}
    assert screen_of(nights(40)).suspects == ()


def test_every_score_is_kept_in_the_json_and_reads_back():
    history = nights(40, step_of(A, 20, 1.1))
    report = detect(history[-1], history[:-1], POLICY)
    scores = json.loads(report.to_json())["screen"]["scores"]
    assert len(scores) == 3 and all(one["scale"] > 0 for one in scores)
    (of_a,) = [one for one in scores if one["test"] == A]
    assert of_a["shift_score"] > 2.4 and of_a["shift_reported"].startswith("2026-03-2")
    assert Report.model_validate_json(report.to_json()) == report


def test_a_report_of_before_there_was_a_screen_still_reads():
    history = nights(10)
    content = json.loads(detect(history[-1], history[:-1], POLICY).to_json())
    del content["screen"], content["policy"]["screen"]
    assert Report.model_validate(content).screen is None


def test_exact_changes_come_first_and_tests_with_an_open_alert_last():
    history = nights(40, step_of(A, 38, 1.03))
    tonight = history[-1]
    channels = dict(tonight.tests[C].channels)
    count = channels["operators"]
    pooled = count.pooled.model_copy(update={"median": 71.0})
    channels["operators"] = count.model_copy(update={"median": (71.0,) * 3, "pooled": pooled})
    times = channels["cpu_time"]
    channels["cpu_time"] = times.model_copy(
        update={"p20": tuple(1.5 * one for one in times.p20), "pooled": times.pooled.model_copy(update={"p20": 0.006})}
    )
    tests = {**tonight.tests, C: tonight.tests[C].model_copy(update={"channels": channels})}
    changed = tonight.model_copy(update={"tests": tests})
    opened = history[-2].started
    new, known = (detect(changed, history[:-1], POLICY, open_alerts=alerts).screen for alerts in ({}, {C: opened}))
    assert [(one.kind, one.test) for one in new.suspects] == [
        ("count change", C),
        ("regression", C),
        ("regression", A),
    ]
    assert new.suspects[0].score is None and "operators is 71 and was 70" in new.suspects[0].why
    assert [(one.kind, one.test) for one in known.suspects] == [
        ("regression", A),
        ("count change", C),
        ("regression", C),
    ]
    assert known.suspects[2].alert == opened and known.suspects[2].severe


def test_what_is_reported_tonight_comes_before_what_only_stands_out():
    both = nights(60, lambda day, test: 1.02 if test == A and day >= 57 else 1.5 if test == B and day >= 59 else 1.0)
    for count in range(58, 61):
        suspects = screen_of(both[:count]).suspects
        reported = [one.reported for one in suspects]
        assert reported == sorted(reported, reverse=True)
        if count == 60 and any(reported):
            assert suspects[0].test == A and suspects[-1].test == B
            return
    pytest.fail("the step of A was not reported in the night in which B jumped")


def test_nights_of_an_alert_of_low_coverage_or_throttled_are_no_level():
    slow = nights(40, lambda day, test: 1.2 if test == A and 20 <= day < 39 else 1.0)
    (known,) = [one for one in screen_of(slow).scores if one.test == A]
    (masked,) = [one for one in screen_of(slow, open_alerts={A: slow[20].started}).scores if one.test == A]
    assert known.level_nights != masked.level_nights and masked.level_nights <= 20
    assert abs(masked.effect) < 0.02

    def throttled(one: NightSummary) -> NightSummary:
        tests = {test: summary.model_copy(update={"throttled": True}) for test, summary in one.tests.items()}
        return one.model_copy(update={"tests": tests})

    held_back = [*slow[:20], *map(throttled, slow[20:39]), slow[39]]
    assert all(abs(one.effect) < 0.02 for one in screen_of(held_back).scores)


def test_a_change_of_workload_or_environment_begins_the_series_anew():
    before, after = nights(30), nights(34, seed=2, fingerprint="env2")[30:]
    screen = screen_of([*before, *after])
    assert all(one.level_nights <= 4 for one in screen.scores)
    assert screen.environment == () and len(screen.scores) == 3
    first = screen_of([*before, after[0]])
    assert first.scores == () and "the environment differs" in first.environment[0]


def test_an_aa_table_is_the_least_that_a_night_is_believed_to_spread_by():
    history = nights(40, step_of(A, 38, 1.02))
    assert [one.test for one in screen_of(history).suspects] == [A]
    table = NoiseTable(
        machine_class="cpu-4t", device="cpu", made="2026-11-28T00:00:00Z", build="b", environment="e", harness="h",
        rounds=10, processes=1, series=(),
        channels=(ChannelNoise(channel="cpu_time", tests=3, pair_sd=0.05, degrees=30.0, margin=0.1),),
    )  # fmt: skip
    assert screen_of(history, noise=table).suspects == ()


def test_hosts_that_take_turns_hide_no_step():
    generator = np.random.default_rng(5)
    made = []
    for day in range(60):
        factor = (1.02 if day % 2 else 1.0) * (1.012 if day >= 58 else 1.0)
        tests = {
            test: {"cpu_time": [level * factor * float(np.exp(generator.normal(0, 0.002))) for _ in range(3)]}
            for test, level in LEVELS.items()
        }
        made.append(night_of(day, tests, host=f"host{day % 2}"))
    screen = screen_of(made)
    assert {one.test for one in screen.suspects} == set(LEVELS)
    assert all(one.effect == pytest.approx(0.012, abs=0.005) for one in screen.suspects)


def test_a_test_that_starts_tonight_and_one_whose_time_is_zero_are_no_suspects():
    history = nights(10)
    tonight = night_of(10, {A: {"cpu_time": [0.0] * 3}, "test_eval[new-cpu-eager]": {"cpu_time": [0.1] * 3}})
    screen = detect(tonight, history, POLICY).screen
    assert screen.suspects == () and screen.scores == ()


@pytest.mark.parametrize(
    ("before", "tonight", "told"), [(5e-324, 1e17, "+99999999900.00%"), (1e17, 5e-324, "-100.00%")]
)
def test_a_change_out_of_all_proportion_is_told_and_stops_nothing(before, tonight, told):
    history = [night_of(day, {A: {"cpu_time": [before] * 2}}) for day in range(20)]
    report = detect(night_of(20, {A: {"cpu_time": [tonight] * 2}}), history, POLICY)
    (suspect,) = report.screen.suspects
    assert told in suspect.why and suspect.severe
    assert Report.model_validate_json(report.to_json()) == report


def test_the_limit_of_a_suspect_is_a_hundred_to_one():
    assert np.exp(LEAST_SCORE) == pytest.approx(100)
    for suspect in screen_of(nights(40, step_of(A, 38, 1.03))).suspects:
        assert suspect.score >= LEAST_SCORE


def test_the_host_of_a_run_is_kept_with_its_night():
    assert summarise(run_of(1, {A: 0.1}, host="runner7")).runner == "runner7"
