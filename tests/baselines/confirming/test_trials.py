"""Pairs against chance: what is measured, when it ends, what it costs, and what is asked again."""

import pytest
from small_fleet import CHANNEL, ScriptedBench

from baselines.confirming.rules import Rules
from baselines.confirming.seen import SeriesKey
from baselines.confirming.trials import Trial, ask_again, intervals, try_all
from torchbenchmark.statistics.sign_e_process import confirming_threshold
from torchbenchmark.statistics.signed_rank import signed_rank_interval

WIN, LOSS = 0.05, -0.05
RULES = Rules()


def trial(test: str, *, base: str = "good", channel: str = CHANNEL, candidates: int = 1, **others) -> Trial:
    fixed = {"kind": "regression", "head": "tonight", "pair_sd": 0.01}
    return Trial(SeriesKey(test, channel), base=base, candidates=candidates, **(fixed | others))


def always(value: float) -> ScriptedBench:
    return ScriptedBench(lambda wanted, number, runner: {CHANNEL: value})


def by_test(**values) -> ScriptedBench:
    """Of each test a list: one value a pair, over and over."""
    return ScriptedBench(
        lambda wanted, number, runner: {CHANNEL: values[wanted.test][number % len(values[wanted.test])]}
    )


@pytest.mark.parametrize(("candidates", "pairs"), [(1, 9), (50, 15)])
def test_straight_wins_confirm_and_the_more_were_admitted_the_more_it_takes(candidates, pairs):
    ((tried,), spent) = try_all([trial("a", candidates=candidates)], always(WIN), RULES, 300)
    assert tried.decision.verdict == "confirmed"
    assert tried.decision.threshold == confirming_threshold(candidates)
    assert (tried.decision.pairs, len(tried.log_ratios), spent) == (pairs, pairs, pairs)
    assert tried.effect == pytest.approx(WIN)


def test_two_straight_losses_are_futile_and_a_draw_ends_with_the_last_pair():
    bench = by_test(lost=[LOSS], drawn=[WIN, WIN, WIN, LOSS])
    tried, spent = try_all([trial("lost"), trial("drawn")], bench, RULES, 300)
    assert [(one.decision.verdict, len(one.log_ratios)) for one in tried] == [("futile", 2), ("undecided", 24)]
    assert spent == 26


def test_an_improvement_is_a_regression_in_the_mirror():
    tried, _ = try_all([trial("a", kind="improvement"), trial("b")], always(LOSS), RULES, 300)
    assert [one.decision.verdict for one in tried] == ["confirmed", "futile"]


def test_evidence_that_is_carried_counts():
    alone = try_all([trial("a", candidates=20)], always(WIN), RULES, 300)[1]
    carried = try_all([trial("a", candidates=20, carried=(WIN,) * 5)], always(WIN), RULES, 300)[1]
    assert carried == alone - 5


def test_once_the_budget_is_spent_no_other_is_begun_and_none_that_was_is_broken_off():
    trials = [trial(f"t{number}") for number in range(20)]
    bench = always(LOSS)
    tried, spent = try_all(trials, bench, RULES, 10)
    assert [one.trial.key.test for one in tried] == [f"t{number}" for number in range(20)]
    assert spent == 2 * RULES.lanes > 10
    assert [one.decision.verdict for one in tried] == ["futile"] * RULES.lanes + ["continue"] * (20 - RULES.lanes)
    assert [len(one.log_ratios) for one in tried] == [2] * RULES.lanes + [0] * (20 - RULES.lanes)
    assert bench.calls == [(RULES.lanes, RULES.most_pairs, 0)]
    assert try_all(trials, bench, RULES, 0.5)[1] == 0, "half a pair is none"


def test_channels_of_one_test_and_base_share_their_pairs_until_the_last_is_decided():
    bench = ScriptedBench(lambda wanted, number, runner: {CHANNEL: LOSS, "gpu_time": WIN})
    trials = [trial("a"), trial("b"), trial("a", channel="gpu_time"), trial("a", channel="gpu_time", base="older")]
    tried, spent = try_all(trials, bench, RULES, 300)
    verdicts = {(one.trial.key.test, one.trial.key.channel, one.trial.base): one.decision for one in tried}
    assert verdicts["a", CHANNEL, "good"].verdict == "futile" and verdicts["a", CHANNEL, "good"].pairs == 2
    assert verdicts["a", "gpu_time", "good"].verdict == verdicts["a", "gpu_time", "older"].verdict == "confirmed"
    assert [(one.test, one.base, pairs) for one, pairs in bench.asked] == [
        ("a", "good", 9),
        ("b", "good", 2),
        ("a", "older", 9),
    ]
    assert spent == 20


def test_a_change_that_is_there_again_is_shown_with_an_interval_of_pairs_that_decided_nothing():
    values = [0.030, 0.034, 0.026, 0.031, 0.035, 0.027, 0.029, 0.033, 0.028, 0.032, 0.036, 0.025]
    bench = by_test(a=values, b=[LOSS], c=values)
    changes = [trial("a", candidates=50, carried=(LOSS,) * 9), trial("b"), trial("c")]
    (first, second, third), spent = ask_again(changes, bench, RULES, 1)
    assert (first.persistent, second.persistent, third.persistent) == (True, False, True)
    shown = signed_rank_interval(values, RULES.level)
    assert (first.effect, first.low, first.high) == (shown.estimate, shown.low, shown.high)
    assert [one.trial for one in (first, second, third)] == changes
    assert bench.calls == [(3, RULES.persistent_pairs, 1), (2, RULES.interval_pairs, 1)]
    there, lost = bench.asked[0][1], bench.asked[1][1]
    assert (there, lost) == (6, 6), "E of 20, alone and without what was carried; E below 1 / 20"
    assert spent == 6 + 6 + 6 + 2 * RULES.interval_pairs


def test_changes_without_any_left_ask_for_nothing():
    bench = always(LOSS)
    assert ask_again([], bench, RULES, 0) == ([], 0)
    assert ask_again([trial("a")], bench, RULES, 0)[1] == 6
    assert intervals([], bench, RULES) == [] and try_all([], bench, RULES, 300) == ([], 0)
    assert len(bench.calls) == 1


def test_too_few_pairs_that_end_well_make_no_interval_and_cost_what_they_are():
    bench = ScriptedBench(lambda wanted, number, runner: {CHANNEL: WIN} if number < 5 else None)
    ((again, spent),) = intervals([trial("a")], bench, RULES)
    assert (again.persistent, spent) == (False, 5)


def test_two_channels_of_a_test_that_are_asked_again_share_their_pairs_and_pay_once():
    bench = ScriptedBench(
        lambda wanted, number, runner: {CHANNEL: WIN + 0.001 * number, "other": WIN if number % 3 else LOSS}
    )
    both, spent = ask_again([trial("a"), trial("a", channel="other")], bench, RULES, 0)
    assert [again.persistent for again in both] == [True, False]
    asked = [(one.test, pairs) for one, pairs in bench.asked]
    assert asked == [("a", RULES.persistent_pairs), ("a", RULES.interval_pairs)], "no machine is asked twice at once"
    assert spent == RULES.persistent_pairs + RULES.interval_pairs
    (first, of_first), (second, of_second) = intervals([trial("a"), trial("a", channel="other")], bench, RULES)
    assert (of_first, of_second) == (RULES.interval_pairs, 0) and first.low > 0 and second.low < first.low
