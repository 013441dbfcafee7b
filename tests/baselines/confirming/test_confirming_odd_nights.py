"""Nights as real machines have them: what fails, what is gone, what comes back, what was never there."""

from datetime import timedelta

import numpy as np
import pytest
from small_fleet import CHANNEL, ScriptedBench, calm, known_state, seen_of_logs, shifted, stepped, when

from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.shares import LARGEST_LOG, log_of, share_of
from baselines.confirming.state import ClassState, SeriesState
from baselines.confirming.tonight import Named

RULES = Rules()
NAME = f"test_eval[m03-cuda-eager] {CHANNEL}"
STEP = stepped(calm(20, 90), [3], 50, 0.03)


def bench(**others) -> ScriptedBench:
    return ScriptedBench(shifted(0.03, 3), **others)


def broken() -> ScriptedBench:
    return ScriptedBench(lambda wanted, number, runner: None)


def night(logs, number, asked, state=None, window=150, rules=RULES, **others):
    """The state after a night, and its outcome."""
    whole = seen_of_logs(logs, until=number, **others)
    state = state or known_state(whole)
    begin = max(0, number + 1 - window)
    if begin:
        cut = {name: getattr(whole, name)[begin:] for name in ("nights", "builds", "environments", "runners")}
        cut |= {"variances": whole.variances[:, begin:]}
        whole = seen_of_logs(whole.logs[:, begin:], **cut)
    return state, run_night(whole, state, asked, rules)


def confirmed_on(logs=STEP, number=50) -> ClassState:
    state, outcome = night(logs, number, bench())
    assert [f"{key.test} {key.channel}" for key in outcome.confirmed] == [NAME]
    return state


# --- what cannot be measured ------------------------------------------------------------------------------------------


def test_pairs_that_fail_on_the_second_night_are_no_answer_and_the_change_waits_on():
    state = confirmed_on()
    _, outcome = night(STEP, 51, broken(), state)
    assert outcome.filed == [] and state.series[NAME].pending is not None
    _, outcome = night(STEP, 52, bench(), state)
    assert [one.series for one in outcome.filed] == [(NAME,)]


def test_a_second_runner_that_fails_leaves_the_question_to_the_next_night():
    there = shifted(0.03, 3)
    dead = ScriptedBench(lambda wanted, number, runner: there(wanted, number, 0) if runner == 0 else None, runners=2)
    state, outcome = night(STEP, 50, dead)
    assert outcome.filed == [] and state.series[NAME].pending is not None
    _, outcome = night(STEP, 51, dead, state)
    assert [one.series for one in outcome.filed] == [(NAME,)]


def test_a_second_runner_that_cannot_have_a_build_leaves_the_question_to_the_next_night():
    lacking = ScriptedBench(shifted(0.03, 3), runners=2, gone_there=[f"build{number}" for number in range(50)])
    state, outcome = night(STEP, 50, lacking)
    assert outcome.filed == [] and state.series[NAME].pending is not None
    assert {runner for _, _, runner in lacking.calls} == {0}
    _, outcome = night(STEP, 51, lacking, state)
    assert [one.series for one in outcome.filed] == [(NAME,)]


def test_the_first_runner_is_asked_the_same_whether_there_is_another_or_not():
    for rules in (Rules(), Rules(at_once=frozenset({"regression"}))):
        asked = []
        for runners in (1, 2):
            one = bench()
            one.runners = runners
            _, outcome = night(STEP, 50, one, rules=rules)
            assert len(outcome.filed) == (runners == 2 or rules.at_once != frozenset())
            asked.append([call for call in one.calls if call[2] == 0])
            assert one.calls[: len(asked[-1])] == asked[-1], "and before the other"
        assert asked[0] == asked[1]


def test_pairs_that_fail_after_the_change_was_there_again_leave_it_waiting_for_its_interval():
    there, given = shifted(0.03, 3), []

    def dies(wanted, number, runner):
        given.append(number)
        return there(wanted, number, runner) if len(given) <= 8 else None

    state = confirmed_on()
    _, outcome = night(STEP, 51, ScriptedBench(dies), state)
    assert outcome.filed == [] and state.series[NAME].pending is not None


@pytest.mark.parametrize("pair", [{"other": 0.03}, {CHANNEL: np.nan}, {CHANNEL: -np.inf}, {}])
def test_a_channel_without_numbers_in_its_pairs_is_no_evidence_and_rests(pair):
    asked = ScriptedBench(lambda wanted, number, runner: pair)
    state, outcome = night(STEP, 50, asked)
    ((tried),) = outcome.tried
    assert (tried.log_ratios, tried.decision.verdict, outcome.confirmed) == ((), "continue", [])
    assert state.series[NAME].resting > 0
    assert night(STEP, 51, asked, state)[1].tried == []


def test_one_that_cannot_be_measured_rests_and_takes_nothing_from_the_others():
    logs = stepped(STEP, [5], 50, 0.05)
    there = shifted(0.03, 3)
    asked = ScriptedBench(lambda wanted, *others: None if "m05" in wanted.test else there(wanted, *others))
    state, outcome = night(logs, 50, asked)
    assert [key.test[10:13] for key in outcome.confirmed] == ["m03"]
    assert state.series[NAME.replace("m03", "m05")].resting > 0
    assert all("m05" not in one.trial.key.test for one in night(logs, 51, bench(), state)[1].tried)


def test_what_is_named_before_its_score_can_be_known_rests_and_its_state_can_be_read_again():
    logs = calm(20, 90)
    seen = seen_of_logs(logs, until=2)
    named = Named(seen.series[3], 0.3, when(1))
    state = ClassState()
    outcome = run_night(seen, state, ScriptedBench(shifted(0.0, 3)), RULES, [named])
    ((tried),) = outcome.tried
    assert tried.decision.verdict == "futile"
    assert state.series[NAME].resting > 0 and state.series[NAME].score == 0.0
    again = ClassState.model_validate_json(state.model_dump_json(by_alias=True))
    assert again == state
    asked = bench()
    run_night(seen_of_logs(logs, until=3), again, asked, RULES, [Named(seen.series[3], 0.3, when(2))])
    assert asked.asked == [], "it rests, by the score that could not be known either"


@pytest.mark.parametrize("number", [np.inf, -np.inf, 1e308])
def test_a_state_with_evidence_beyond_any_number_is_stored_and_read_again(number):
    state = ClassState(series={NAME: SeriesState(score=number)}, bucket=number)
    assert ClassState.model_validate_json(state.model_dump_json(by_alias=True)) == state


def test_a_night_on_which_nothing_can_be_measured_makes_nobody_rest():
    state, outcome = night(STEP, 50, broken())
    assert len(outcome.tried) == 1 and (outcome.pairs, outcome.confirmed) == (0, [])
    _, outcome = night(STEP, 51, bench(), state)
    assert len(outcome.confirmed) == 1


def test_a_build_that_is_gone_is_replaced_by_an_older_one_that_was_good_too():
    asked = bench(gone=("build47", "build48", "build49"))
    state, outcome = night(STEP, 50, asked)
    assert len(outcome.confirmed) == 1
    assert state.series[NAME].pending.base == when(46)
    asked.gone = (*asked.gone, "build46", "build45")  # the next morning these two are gone as well
    _, outcome = night(STEP, 51, asked, state)
    ((interval,),) = [one.intervals for one in outcome.filed]
    assert interval.base == when(44) and ("build44", "build51") in {(one.base, one.head) for one, _ in asked.asked}


def test_the_build_that_the_segment_begins_with_is_what_is_left_when_a_month_of_builds_is_gone():
    logs = stepped(calm(20, 90), [3], 70, 0.03)
    state = known_state(seen_of_logs(logs, until=70))
    state.series[NAME] = SeriesState(segment=when(5))
    asked = bench(gone=tuple(f"build{number}" for number in range(70) if number != 5))
    state, outcome = night(logs, 70, asked, state)
    assert len(outcome.confirmed) == 1 and state.series[NAME].pending.base == when(5)


def test_of_builds_that_are_all_gone_nothing_is_tried_and_nothing_waits():
    gone = tuple(f"build{number}" for number in range(50))
    state, outcome = night(STEP, 50, bench(gone=gone))
    assert outcome.tried == [] and outcome.filed == []
    state = confirmed_on()
    night(STEP, 51, bench(gone=gone), state)
    assert state.series[NAME].pending is None, "or it would be a candidate nevermore"


def test_a_build_that_is_measured_on_several_nights_is_not_held_against_itself():
    builds = tuple(f"build{number // 3}" for number in range(90))
    logs = stepped(calm(20, 90, 0.0), [3], 50, 0.03)
    state, outcome = night(logs, 50, bench(), builds=builds)  # 48, 49 and 50 are one build: it cannot be the build
    assert outcome.tried == []
    state, outcome = night(logs, 51, bench(), state, builds=builds)
    assert [(one.trial.base, one.trial.head) for one in outcome.tried] == [("build16", "build17")]


# --- what is not there ------------------------------------------------------------------------------------------------


def test_what_vanishes_while_it_waits_is_asked_when_it_is_back():
    logs = STEP.copy()
    logs[3, 51:55] = np.nan
    state = confirmed_on()
    for number in range(51, 55):
        assert night(logs, number, bench(), state)[1].filed == []
    _, outcome = night(logs, 55, bench(), state)
    assert [one.series for one in outcome.filed] == [(NAME,)]


@pytest.mark.parametrize("window", [150, 30])
def test_what_vanishes_for_weeks_waits_for_nothing_and_is_a_candidate_when_it_is_back(window):
    logs = STEP.copy()
    logs[3, 51:81] = np.nan
    state = confirmed_on()
    for number in range(51, 81):
        night(logs, number, bench(), state, window)
    assert state.series[NAME].pending is None
    filed = [one for number in range(81, 86) for one in night(logs, number, bench(), state, window)[1].filed]
    if window == 150:
        assert [one.series for one in filed] == [(NAME,)]
        assert filed[0].onset.low <= when(50) <= filed[0].onset.high
    else:
        assert filed == [], "nothing is known of it any more"


def test_a_test_that_is_removed_while_it_waits_is_forgotten():
    state = confirmed_on()
    rest = STEP[:3]
    for number in range(51, 70):
        _, outcome = night(rest, number, bench(), state)
        assert outcome.filed == []
    assert state.series[NAME].pending is None


def test_a_base_whose_night_was_taken_out_of_the_history_is_replaced_by_the_night_before():
    state = confirmed_on()
    base = state.series[NAME].pending.base
    nights = [number for number in range(52) if when(number) != base]
    cut = {"nights": tuple(map(when, nights)), "builds": tuple(f"build{number}" for number in nights)}
    _, outcome = night(STEP[:, nights], 50, bench(), state, **cut)
    ((interval,),) = [one.intervals for one in outcome.filed]
    assert interval.base == base - timedelta(days=1)


def test_a_segment_whose_night_was_taken_out_of_the_history_begins_tonight():
    state = known_state(seen_of_logs(STEP, until=50))
    state.series[NAME] = SeriesState(segment=when(49) + timedelta(hours=1), prior=float(STEP[3, 49]), weight=4.0)
    _, outcome = night(STEP, 50, bench(), state)
    assert outcome.tried == []
    assert len(night(STEP, 51, bench(), state)[1].tried) <= 1


def test_a_series_that_appears_is_left_alone_until_it_has_a_level():
    logs = calm(20, 90)
    logs[3, :70] = np.nan
    logs[3, 72:] += np.log1p(0.5)
    state, tried = None, []
    for number in range(68, 90):
        state, outcome = night(logs, number, ScriptedBench(), state)
        tried += [number for one in outcome.tried if "m03" in one.trial.key.test]
    assert min(tried) >= 73, "a level has three nights at least"


def test_values_that_are_missing_or_infinite_for_weeks_harm_nobody():
    logs = stepped(STEP, [5], 50, 0.05)
    logs[5, 20:49], logs[6, :], logs[7, 50:], logs[8, 50] = np.nan, np.nan, -np.inf, np.inf
    state, outcome = night(logs, 50, ScriptedBench(shifted(0.03, 3, 5)))
    assert {key.test[10:13] for key in outcome.confirmed} == {"m03", "m05"}
    pending = state.series[NAME.replace("m03", "m05")].pending
    assert pending.base <= when(49) and pending.onset.low <= when(50) <= pending.onset.high


def test_a_class_without_series_has_quiet_nights():
    _, outcome = night(np.zeros((0, 60)), 50, broken())
    assert (outcome.tried, outcome.filed, outcome.processes) == ([], [], 0)


# --- numbers at the edge ----------------------------------------------------------------------------------------------


def test_series_without_any_spread_are_confirmed_like_others():
    logs = stepped(np.zeros((20, 60)), [3], 50, 0.03)
    state, outcome = night(logs, 50, bench(), variances=np.zeros((20, 60)))
    assert len(outcome.confirmed) == 1
    _, outcome = night(logs, 51, bench(), state, variances=np.zeros((20, 60)))
    assert len(outcome.filed) == 1


def test_a_factor_of_a_thousand_is_a_change_like_others():
    logs = stepped(calm(20, 60), [3], 50, 999.0)
    asked = ScriptedBench(shifted(999.0, 3))
    state, _ = night(logs, 50, asked)
    _, outcome = night(logs, 51, asked, state)
    ((interval,),) = [one.intervals for one in outcome.filed]
    assert interval.low < 999 < interval.high
    assert night(logs, 52, asked, state)[1].tried == []


def test_channels_of_one_test_with_different_good_builds_are_one_alert_where_their_onsets_meet():
    logs = stepped(calm(20, 60, 0.0005), [6], 50, 0.03)
    logs[7] += np.random.default_rng(4).normal(0, 0.02, 60)
    logs[7, 50:] += 0.06  # a noisy channel: it is dated to several nights
    logs[7, 49] += 0.03
    both = ScriptedBench(
        lambda wanted, number, runner: (
            {CHANNEL: 0.03 + 0.001 * (number % 3), "channel1": 0.06 + 0.004 * (number % 3)}
            if wanted.base != wanted.head
            else {CHANNEL: 0.0, "channel1": 0.0}
        )
    )
    state, outcome = night(logs, 52, both, channels=2)
    assert [key.channel for key in outcome.confirmed] == [CHANNEL, "channel1"]
    assert len({one.trial.base for one in outcome.tried}) == 2
    _, outcome = night(logs, 53, both, state, channels=2)
    (filed,) = outcome.filed
    assert {one.split()[1] for one in filed.series} == {CHANNEL, "channel1"} and len(filed.intervals) == 2


def test_two_steps_of_a_series_within_three_nights_are_told_with_what_they_come_to():
    logs = stepped(stepped(calm(20, 70), [3], 50, 0.03), [3], 52, 0.03)
    one, two = shifted(0.03, 3), shifted(1.03**2 - 1, 3)

    def ratio(wanted, number, runner):
        base, head = (int(build.removeprefix("build")) for build in (wanted.base, wanted.head))
        steps = sum(base < step <= head for step in (50, 52))
        return (shifted(0), one, two)[steps](wanted, number, runner)

    state, filed = None, []
    for number in range(50, 60):
        state, outcome = night(logs, number, ScriptedBench(ratio), state)
        filed += outcome.filed
    shown = [interval for alert in filed for interval in alert.intervals]
    assert [alert.kind for alert in filed] == ["regression"] * len(shown)
    assert np.prod([1 + interval.effect for interval in shown]) == pytest.approx(1.03**2, rel=0.01)
    assert len(shown) == 2


@pytest.mark.parametrize("told", [5e-324, 1e18])
def test_values_that_no_build_has_break_neither_the_night_nor_the_state_of_the_next_one(told):
    """All series are higher, and the good build says that they took no time at all, or longer than the world."""
    logs = stepped(calm(), range(20), 35, 0.05)
    state, filed = known_state(seen_of_logs(logs, until=35)), []
    bench = ScriptedBench(level=lambda test, build: told, ratio=lambda wanted, number, runner: {CHANNEL: 785.0})
    for night in range(35, 40):
        filed += run_night(seen_of_logs(logs, until=night), state, bench, Rules(share_off_their_level=1.0)).filed
        state = ClassState.model_validate_json(state.model_dump_json())
    assert filed and all(abs(effect) < 1e22 for one in filed for effect in one.effects().values())


def test_shares_and_logarithms_have_an_end_either_way():
    assert log_of(-1.0) == -LARGEST_LOG and log_of(1e300) == LARGEST_LOG and log_of(0.5) == pytest.approx(0.4054651)
    assert share_of(785.0) == share_of(LARGEST_LOG) and share_of(-785.0) > -1.1 and share_of(0.01) == np.expm1(0.01)
