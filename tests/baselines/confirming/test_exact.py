"""Status and count changes: three fresh processes of either build, which agree or do not."""

import math

import pytest
from small_fleet import ScriptedBench, calm, known_state, seen_of_logs, when

from baselines.confirming.bench import Ended
from baselines.confirming.exact import ExactChange
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import ClassState
from torchbenchmark.records import Status

TEST, OTHER = (f"test_eval[m{row:02}-cuda-eager]" for row in (3, 4))
BASES = ((when(49), "build49"), (when(48), "build48"))
FAILING, FIXED = (ExactChange(TEST, kind, BASES) for kind in ("newly failing", "fixed"))
LAUNCHES = ExactChange(TEST, "count change", BASES, "launches")
OK, CRASH, OOM = Ended(Status.OK), Ended(Status.CRASH, "killed by signal 11"), Ended(Status.OOM)


def counted(*values):
    return [Ended(Status.OK, values={"launches": value}) for value in values]


def bench_of(tonight, before=(OK,) * 3, gone=(), head="build50"):
    return ScriptedBench(ended=lambda test, build, number: (tonight if build == head else before)[number], gone=gone)


def a_night(bench, *changes, night=50, state=None, rules=None, builds=None, without=()):
    logs = calm(20, 70)
    for test in without:
        logs[int(test.partition("[m")[2][:2]), night] = math.nan
    others = {} if builds is None else {"builds": builds}
    seen = seen_of_logs(logs, until=night, **others)
    state = state or known_state(seen)
    outcome = run_night(seen, state, bench, rules or Rules(), exact=changes)
    return outcome, state


@pytest.mark.parametrize(
    ("change", "tonight", "before", "verdict"),
    [
        (FAILING, (CRASH,) * 3, (OK,) * 3, "confirmed"),
        (FAILING, (CRASH, OOM, CRASH), (OK,) * 3, "confirmed"),
        (FAILING, (CRASH, CRASH, OK), (OK,) * 3, "flaky"),
        (FAILING, (OK,) * 3, (OK,) * 3, "flaky"),
        (FAILING, (CRASH,) * 3, (OK, OK, CRASH), "flaky"),
        (FAILING, (CRASH,) * 3, (CRASH,) * 3, "not the build"),
        (FIXED, (OK,) * 3, (CRASH,) * 3, "confirmed"),
        (FIXED, (OK, CRASH, OK), (CRASH,) * 3, "flaky"),
        (FIXED, (OK,) * 3, (OK,) * 3, "not the build"),
        (LAUNCHES, counted(12, 12, 12), counted(10, 10, 10), "confirmed"),
        (LAUNCHES, counted(12, 12, 11), counted(10, 10, 10), "flaky"),
        (LAUNCHES, counted(12, 12, 12), counted(10, 12, 10), "flaky"),
        (LAUNCHES, counted(12, 12, 12), counted(12, 12, 12), "not the build"),
        (LAUNCHES, [*counted(12, 12), CRASH], counted(10, 10, 10), "flaky"),
        (LAUNCHES, counted(0, 0, 0), counted(10, 10, 10), "confirmed"),
        (LAUNCHES, counted(12, 12, 12), [*counted(10, 10), CRASH], "flaky"),
    ],
)
def test_all_processes_of_each_build_agree_or_it_is_flaky(change, tonight, before, verdict):
    outcome, state = a_night(bench_of(tonight, before), change)
    (one,) = outcome.exact
    assert (one.verdict, one.settled) == (verdict, verdict == "confirmed")
    counts = state.accounts
    assert (counts.exact_asked, counts.exact_confirmed, counts.exact_flaky) == (
        1,
        verdict == "confirmed",
        verdict == "flaky",
    )
    assert state.outcome.exact == (one,)


def test_the_build_from_before_is_asked_only_where_tonight_agrees_and_tests_share_processes():
    bench = bench_of((CRASH, OK, CRASH))
    outcome, _ = a_night(bench, FAILING)
    assert bench.measured == [(TEST, "build50")] and outcome.exact_processes == 3
    bench = bench_of([Ended(Status.OK, values={"launches": 3.0, "flops": 9.0})] * 3, counted(1, 1, 1))
    outcome, _ = a_night(bench, LAUNCHES, ExactChange(TEST, "count change", BASES, "flops"))
    assert bench.measured == [(TEST, "build50"), (TEST, "build49")]
    assert outcome.exact_processes == 6 and outcome.processes == outcome.exact_processes + 2 * outcome.pairs
    assert [(one.channel, one.verdict) for one in outcome.exact] == [
        ("flops", "without base"),
        ("launches", "confirmed"),
    ]


def test_each_change_is_told_in_one_sentence():
    (one,) = a_night(bench_of((CRASH,) * 3), FAILING)[0].exact
    assert one.sentence == (
        f"newly failing: {TEST}: confirmed: tonight's build gives 3 x crash, the build of 2000-02-19 00:00 3 x ok"
    )
    (one,) = a_night(bench_of(counted(12, 11, 12)), LAUNCHES)[0].exact
    assert one.sentence == f"count change: {TEST} launches: flaky, and not filed: tonight's build gives 12, 11, 12"
    (one,) = a_night(bench_of((OOM,) * 3, (OOM,) * 3), FAILING)[0].exact
    assert one.sentence.endswith("gives 3 x oom, the build of 2000-02-19 00:00 3 x oom tonight too")


def test_the_newest_build_from_before_that_can_be_had_is_asked():
    bench = bench_of((CRASH,) * 3, gone=("build49",))
    (one,) = a_night(bench, FAILING)[0].exact
    assert (one.base, one.verdict) == (when(48), "confirmed")


def test_a_failure_without_a_build_from_before_stands_if_all_of_tonights_processes_fail():
    gone = ("build49", "build48")
    (one,) = a_night(bench_of((CRASH,) * 3, gone=gone), FAILING)[0].exact
    assert (one.verdict, one.settled) == ("without base", True)
    assert one.sentence.endswith("gives 3 x crash; no build from before can be had to hold it against")
    (one,) = a_night(bench_of((CRASH, OK, CRASH), gone=gone), FAILING)[0].exact
    assert (one.verdict, one.settled) == ("flaky", False)
    (one,) = a_night(bench_of(counted(12, 12, 12), gone=gone), LAUNCHES)[0].exact
    assert (one.verdict, one.settled) == ("without base", False), "a count is filed only if it is confirmed"


@pytest.mark.parametrize(
    ("change", "tonight", "before", "settled"),
    [
        (FAILING, (CRASH,) * 3, (Ended(Status.UNSUPPORTED),) * 3, True),
        (FIXED, (OK,) * 3, (Ended(Status.SKIPPED),) * 3, False),
        (LAUNCHES, counted(12, 12, 12), (CRASH,) * 3, False),
        (LAUNCHES, counted(12, 12, 12), (OK,) * 3, False),
    ],
)
def test_a_build_from_before_that_shows_nothing_is_none_to_hold_it_against(change, tonight, before, settled):
    outcome, state = a_night(bench_of(tonight, before), change)
    (one,) = outcome.exact
    assert (one.verdict, one.settled, one.base, one.before) == ("without base", settled, None, ())
    assert state.flaky == {}, "it is asked again when a build from before can be had"


def test_the_build_that_was_well_last_night_is_not_to_blame_tonight():
    builds = (*(f"build{night}" for night in range(49)), "same", "same", *(f"build{night}" for night in range(51, 70)))
    change = ExactChange(TEST, "newly failing", ((when(49), "same"), (when(48), "build48")))
    bench = bench_of((CRASH,) * 3, head="same")
    (one,) = a_night(bench, change, builds=builds)[0].exact
    assert (one.verdict, one.settled) == ("not the build", False) and bench.measured == [(TEST, "same")]
    assert one.sentence.endswith("gives 3 x crash, and the build from before is the same one")


def test_of_very_many_changes_failures_are_asked_first_and_the_rest_stands_as_the_night_found_it():
    changes = [LAUNCHES, ExactChange(OTHER, "newly failing", BASES)]
    bench = bench_of((CRASH,) * 3)
    found = {one.test: one for one in a_night(bench, *changes, rules=Rules(exact_tests=1))[0].exact}
    assert found[OTHER].verdict == "confirmed" and found[TEST].verdict == "not asked"
    assert {test for test, _ in bench.measured} == {OTHER}
    (first, second) = a_night(bench, FAILING, changes[1], rules=Rules(exact_tests=1))[0].exact
    assert (first.verdict, second.verdict, second.settled) == ("confirmed", "not asked", True), "no failure is lost"


def test_a_failure_that_is_not_settled_is_asked_on_its_next_nights_and_then_forgotten():
    state = ClassState()
    for night in (50, 51):
        outcome, state = a_night(bench_of((CRASH, OK, CRASH), head=f"build{night}"), FAILING, night=night, state=state)
        assert [one.settled for one in outcome.exact] == [False] and state.failing[TEST].since == when(50)
    outcome, state = a_night(bench_of((CRASH,) * 3, head="build52"), FAILING, night=52, state=state)
    assert outcome.exact[0].settled and state.failing == {}
    _, state = a_night(bench_of((CRASH, OK, CRASH), head="build53"), FAILING, night=53, state=state)
    _, state = a_night(bench_of(()), night=69, state=state)
    assert state.failing == {}


def test_a_failure_that_is_not_settled_waits_on_while_the_test_does_not_end_well():
    """Nobody would ask it again: a night that fails after one that failed is no news."""
    flaky, state, rules = (CRASH, OK, CRASH), ClassState(), Rules(failing_nights=2)
    _, state = a_night(bench_of(flaky), FAILING, night=50, state=state, rules=rules)
    _, state = a_night(bench_of((CRASH,) * 3, head="build51"), FAILING, night=51, state=state, rules=rules)
    for night in (64, 65, 66):  # it was in none of these: a shard was missing, or it was left out for a while
        _, state = a_night(bench_of(()), night=night, state=state, without=[TEST], rules=rules)
        assert state.failing[TEST].since == when(50)
    bench = bench_of((CRASH,) * 3, head="build67")
    outcome, state = a_night(bench, FAILING, night=67, state=state, without=[TEST], rules=rules)
    assert outcome.exact[0].settled and state.failing == {}, "found failing a second time"


def test_where_two_nights_are_wanted_the_second_one_settles_it():
    state, rules = ClassState(), Rules(failing_nights=2)
    found = []
    for night in (50, 51, 52):
        bench = bench_of((CRASH,) * 3, head=f"build{night}")
        outcome, state = a_night(bench, FAILING, night=night, state=state, rules=rules)
        found.append(outcome.exact[0].settled)
    assert found[:2] == [False, True]


def test_a_flaky_count_rests_for_a_fortnight():
    state, asked = ClassState(), []
    for night in range(50, 66):
        bench = bench_of(counted(12, 11, 12), head=f"build{night}")
        outcome, state = a_night(bench, LAUNCHES, night=night, state=state)
        asked.append(outcome.exact[0].verdict)
        assert not outcome.exact[0].settled
    assert asked == ["flaky", *["not asked"] * 13, "flaky", "not asked"]


def test_a_count_that_stays_where_it_was_confirmed_is_asked_once_and_told_once():
    """The nights of an open alert are no baseline, so against that the count has changed in each of them."""
    state, told = ClassState(), []
    for night, count in ((50, 12.0), (51, 12.0), (52, 13.0), (53, 13.0), (54, None), (55, 13.0)):
        change = ExactChange(TEST, "count change", BASES, "launches", count)
        bench = bench_of(counted(*[count] * 3), counted(10, 10, 10), head=f"build{night}")
        outcome, state = a_night(bench, *([change] if count else []), night=night, state=state)
        told.append(len(outcome.exact))
        assert (TEST in {test for test, _ in bench.measured}) == bool(outcome.exact)
    assert told == [1, 0, 1, 0, 0, 1]
