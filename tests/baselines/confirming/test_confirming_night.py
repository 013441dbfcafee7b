"""A night on a scripted bench: who is tried, what it costs, what is kept, what waits, what is filed."""

import numpy as np
import pytest
from small_fleet import CHANNEL, ScriptedBench, calm, known_state, seen_of_logs, shifted, stepped, when

from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import ClassState

RULES = Rules()
SIZE = 0.03
NAMES = [f"test_eval[m{row:02}-cuda-eager] {CHANNEL}" for row in range(50)]
TEST = "test_eval[m03-cuda-eager]"


def pattern(*values: float) -> ScriptedBench:
    """Pairs that give these values over and over; a build against itself gives nothing."""
    return ScriptedBench(
        lambda wanted, number, runner: {CHANNEL: values[number % len(values)] if wanted.base != wanted.head else 0.0}
    )


def step_of(nights_ago: int, *rows: int, size: float = SIZE, nights: int = 60, series: int = 20) -> np.ndarray:
    return stepped(calm(series, nights), rows, nights - nights_ago, size)


def run_on(logs: np.ndarray, first: int, benches, state: ClassState | None = None, rules: Rules = RULES):
    """Consecutive nights from `first` on, one a bench, of a class that was known the night before. Returns the state
    and the outcomes."""
    state = state or known_state(seen_of_logs(logs, until=first))
    return state, [
        run_night(seen_of_logs(logs, until=first + number), state, bench, rules) for number, bench in enumerate(benches)
    ]


def test_a_change_is_confirmed_on_one_night_and_filed_on_the_next_against_the_same_good_build():
    logs = step_of(10, 3)
    bench = ScriptedBench(shifted(SIZE, 3))
    state, (first, second, third) = run_on(logs, 50, [bench] * 3)
    assert ([key.test for key in first.confirmed], first.filed) == ([TEST], [])
    assert state.series[NAMES[3]].segment == when(50), "the build that was confirmed, not the estimated onset"
    (filed,) = second.filed
    assert (filed.kind, filed.series, filed.night) == ("regression", (NAMES[3],), when(51))
    assert filed.onset.low <= when(50) <= filed.onset.high
    (interval,) = filed.intervals
    assert (interval.test, interval.channel, interval.base, interval.head) == (TEST, CHANNEL, when(48), when(51))
    assert interval.low < SIZE < interval.high and interval.effect == pytest.approx(SIZE, rel=0.1)
    assert (second.confirmed, third.tried, third.filed) == ([], [], []), "filed before the screen of that night"
    builds = {(one.base, one.head) for one, _ in bench.asked if one.base != one.head}
    assert builds == {("build48", "build50"), ("build48", "build51")}
    assert state.series[NAMES[3]].prior == pytest.approx(np.median(logs[3, :50]) + np.log1p(SIZE), abs=0.001)


def test_with_a_second_runner_it_is_filed_the_same_night_by_pairs_of_that_runner():
    bench = ScriptedBench(shifted(SIZE, 3), runners=2)
    _, (first, second) = run_on(step_of(10, 3), 50, [bench] * 2)
    assert [one.series for one in first.filed] == [(NAMES[3],)] and second.filed == []
    assert [runner for _, _, runner in bench.calls] == [0, 0, 1, 1, 0], "tried here, A/A, then asked and measured there"


def test_what_the_other_runner_or_night_does_not_show_is_not_filed():
    for runners in (1, 2):
        there = shifted(SIZE, 3)
        bench = ScriptedBench(
            lambda wanted, number, runner, there=there: there(wanted, number, 0) if runner == 0 else {CHANNEL: -0.01},
            runners=runners,
        )
        gone = pattern(-0.01)
        state, outcomes = run_on(step_of(10, 3), 50, [bench, gone])
        assert len(outcomes[0].confirmed) == 1
        assert [one.filed for one in outcomes] == [[], []]
        assert state.series[NAMES[3]].pending is None and state.series[NAMES[3]].futile >= 1


def test_every_candidate_is_judged_by_how_many_were_admitted():
    logs = step_of(10, 2, 3, 5)
    _, (outcome,) = run_on(logs, 50, [ScriptedBench(shifted(SIZE, 2, 3))])
    assert [one.decision.threshold for one in outcome.tried] == [300, 300, 300]
    assert {one.trial.key.test[10:13]: one.decision.verdict for one in outcome.tried} == {
        "m02": "confirmed",
        "m03": "confirmed",
        "m05": "futile",
    }


def test_no_more_are_admitted_than_the_rules_say_and_the_best_first():
    logs = stepped(step_of(10, 1, 2), [3, 4], 50, 0.012)
    _, (outcome,) = run_on(logs, 50, [pattern(-0.01)], rules=Rules(most_candidates=2))
    assert sorted(one.trial.key.test[10:13] for one in outcome.tried) == ["m01", "m02"]


def test_evidence_that_was_neither_enough_nor_futile_counts_for_three_nights_at_the_price_of_its_first():
    logs = stepped(step_of(10, 3), [7], 51, SIZE)
    wins_more = pattern(0.05, 0.05, 0.05, 0.0)
    state, (first, second) = run_on(logs, 50, [wins_more, pattern(0.05)])
    (tried,) = first.tried
    assert tried.decision.verdict == "undecided" and len(tried.log_ratios) == RULES.most_pairs
    again = {one.trial.key.test: one for one in second.tried}
    assert again[TEST].trial.carried == tried.log_ratios
    assert again[TEST].decision.threshold == 100, "one was admitted in the night that it began in"
    assert again["test_eval[m07-cuda-eager]"].decision.threshold == 200
    assert again[TEST].decision.verdict == "confirmed"
    assert again[TEST].decision.pairs < again["test_eval[m07-cuda-eager]"].decision.pairs
    assert state.series[NAMES[3]].carried is None

    logs = step_of(10, 3)
    _, outcomes = run_on(logs, 50, [pattern(0.05, 0.05, 0.0)] * 5)
    carried = [len(one.tried[0].trial.carried) for one in outcomes]
    assert carried[:4] == [0, 24, 48, 72] and carried[4] == 0, "and is dropped after the third"


def test_what_was_futile_rests_longer_every_time_unless_its_score_rises():
    logs = step_of(50, 3, nights=110)
    futile = pattern(-0.01)
    _, outcomes = run_on(logs, 74, [futile] * 12)
    tried = [number for number, one in enumerate(outcomes) if one.tried]
    assert tried == [0, 3, 9], "3 and 6 nights later, then 12"
    rising = stepped(stepped(calm(20, 60), [3], 40, 0.008), [3], 41, 0.06)
    _, outcomes = run_on(rising, 40, [futile] * 3)
    assert [bool(one.tried) for one in outcomes] == [True, True, False]


def test_pairs_are_saved_up_to_a_limit_and_spent_in_order_of_rank():
    state, outcomes = run_on(calm(20, 60), 50, [pattern(0.0)] * 3)
    assert state.bucket == RULES.bucket - RULES.aa_pairs, "a night of nothing costs a build against itself"
    assert [one.pairs for one in outcomes] == [RULES.aa_pairs] * 3
    assert [one.processes for one in outcomes] == [2 * RULES.aa_pairs] * 3
    poor = Rules(pairs_a_night=30, bucket=30)
    logs = stepped(step_of(10, *range(1, 10)), [12], 50, 0.3)
    state, (outcome,) = run_on(logs, 50, [pattern(0.05, 0.05, 0.05, 0.0)], rules=poor)
    assert [len(one.log_ratios) for one in outcome.tried] == [24] * poor.lanes + [0, 0]
    assert state.bucket == 30 - 24 * poor.lanes - poor.aa_pairs, "a debt that later nights pay"
    left = [one.trial.key for one in outcome.tried if not one.log_ratios]
    assert all(state.of(key).carried is None and state.of(key).resting == 0 for key in left)
    _, (outcome,) = run_on(logs, 51, [pattern(0.05)], state, poor)
    assert not any(one.log_ratios for one in outcome.tried)


def test_nothing_is_asked_in_the_first_fortnight():
    bench = ScriptedBench()
    state = ClassState()
    logs = calm(20, 20)
    for night in range(RULES.burn_in):
        outcome = run_night(seen_of_logs(logs, until=night), state, bench, RULES)
        assert (outcome.tried, outcome.filed, outcome.notes) == ([], [], [])
    assert bench.asked == [] and state.accounts.candidates == 0
    run_night(seen_of_logs(logs, until=RULES.burn_in), state, bench, RULES)
    assert state.accounts.nights == RULES.burn_in + 1 and len(bench.asked) == 1


def test_runners_that_took_turns_from_the_start_are_aligned_and_neither_is_a_note():
    logs = calm(20, 60)
    logs[:, 1::2] += np.random.default_rng(3).normal(0, 0.05, (20, 1))
    turns = {
        "runners": tuple(f"runner{night % 2}" for night in range(60)),
        "environments": tuple(f"runner{night % 2} driver0" for night in range(60)),
    }
    state = ClassState()
    bench = ScriptedBench(level=lambda test, build: 1.0)
    outcomes = [run_night(seen_of_logs(logs, until=night, **turns), state, bench, RULES) for night in range(60)]
    assert not any(one.tried or one.filed or one.notes for one in outcomes)
    assert bench.measured == [] and len(state.eras) == 2


def test_a_night_that_is_not_newer_than_the_state_is_refused():
    logs = calm(20, 60)
    state, _ = run_on(logs, 50, [pattern(0.0)])
    stored = state.model_dump_json()
    for night in (50, 49):
        with pytest.raises(ValueError, match="was concluded already: 2000-02-20"):
            run_night(seen_of_logs(logs, until=night), state, pattern(0.0), RULES)
    assert state.model_dump_json() == stored


def test_changes_are_grouped_by_sign_and_by_a_common_night_of_their_onsets():
    logs = stepped(stepped(step_of(10, 2, 3), [8], 50, -SIZE), [12], 43, 0.04)
    changes = {2: SIZE, 3: SIZE, 8: -SIZE, 12: 0.04}
    ratio = {row: shifted(size, row) for row, size in changes.items()}
    bench = ScriptedBench(lambda wanted, *others: ratio.get(int(wanted.test[11:13]), shifted(0))(wanted, *others))
    state, outcomes = run_on(logs, 50, [bench] * 2)
    filed = {tuple(sorted(one.series)): one for one in outcomes[1].filed}
    assert set(filed) == {(NAMES[2], NAMES[3]), (NAMES[8],), (NAMES[12],)}
    assert filed[NAMES[8],].kind == "improvement"
    assert len({one.id for one in filed.values()}) == 3
    assert state.accounts.filed == 3 and state.accounts.confirmed == 4


def test_a_test_is_held_against_itself_every_night_and_what_comes_of_it_is_kept():
    state, outcomes = run_on(calm(20, 60), 50, [pattern(0.0)] * 10)
    tests = set()
    for outcome in outcomes:
        ((interval, confirmed),) = outcome.intervals
        assert not confirmed and interval.base == interval.head
        assert interval.low <= 0 <= interval.high
        tests.add(interval.test)
    assert len(tests) > 3, "another one, mostly"
    assert (state.accounts.aa_tries, state.accounts.aa_covered) == (10, 10)
    assert len(state.accounts.aa_effects[CHANNEL]) == 10


@pytest.mark.parametrize("bias", [0.05, -0.05])
def test_a_build_that_seems_to_differ_from_itself_is_counted_in_either_direction(bias):
    """As a runner does that slows the second of two neighbours, and forgets the coin."""
    biased = ScriptedBench(lambda wanted, number, runner: {CHANNEL: bias + 0.001 * (number % 3)})
    state, outcomes = run_on(calm(20, 60), 50, [biased] * 3)
    assert (state.accounts.aa_tries, state.accounts.aa_confirmed, state.accounts.aa_covered) == (3, 3, 0)
    assert [one.filed for one in outcomes] == [[]] * 3
    state, _ = run_on(calm(20, 60), 50, [pattern(0.0), broken := ScriptedBench(lambda *asked: None)])
    assert (state.accounts.aa_tries, state.accounts.aa_confirmed) == (1, 0)
    assert broken.calls == [(1, RULES.aa_pairs, 0)], "what could not be measured counts as nothing"
    few = Rules(aa_pairs=8)
    _, (outcome,) = run_on(calm(20, 60), 50, [pattern(0.0)], rules=few)
    assert outcome.pairs == 8


def test_what_a_second_night_does_not_show_is_a_candidate_again_that_night_and_rests_only_if_that_is_futile():
    """Twelve pairs miss a change now and then, and holding it back finds it later and saves no pairs."""
    logs, there, gone = step_of(10, 3), ScriptedBench(shifted(SIZE, 3)), pattern(-0.01)
    shown = shifted(SIZE, 3)
    missed = ScriptedBench()
    missed.ratio = lambda wanted, number, runner: (
        {CHANNEL: -0.01} if len(missed.calls) == 1 else shown(wanted, number, runner)
    )
    _, (first, second, third) = run_on(logs, 50, [there, missed, there])
    assert [one.persistent for one in second.again] == [False]
    assert [len(one.confirmed) for one in (first, second, third)] == [1, 1, 0]
    assert [one.series for one in third.filed] == [(NAMES[3],)]
    _, outcomes = run_on(logs, 50, [there, gone, gone, gone, gone])
    assert [len(one.tried) for one in outcomes] == [1, 1, 0, 0, 0], "not held back before, but by what was futile"
