"""Whether the machine moved, or a build: on nights with few tests, missing ones, builds that are gone, and machines
that come back."""

import numpy as np
import pytest
from small_fleet import CHANNEL, ScriptedBench, calm, known_state, seen_of_logs, shifted, stepped, when

from baselines.confirming.class_wide_build import dated_with_a_build
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import ClassState, Onset, Pending, SeriesState
from baselines.confirming.tonight import Tonight
from baselines.confirming.trials import Again

RULES = Rules()
NAMES = [f"test_eval[m{row:02}-cuda-eager] {CHANNEL}" for row in range(20)]
MOST = range(12)


def machine(logs: np.ndarray, shift: dict[int, float] | None = None, *rows: int, **others) -> ScriptedBench:
    """A bench on which every build is at the level of its nights before the twentieth, but for a shift of the machine
    tonight; pairs show a step of 3 % in some rows."""
    shift = shift or {}
    levels = np.median(logs[:, :20], axis=1)

    def level(test: str, build: str) -> float:
        row = int(test[11:13])
        return float(np.exp(levels[row] + shift.get(row, 0.0)))

    return ScriptedBench(shifted(0.03, *rows), level, **others)


def nights(logs, numbers, asked, state=None, **others):
    state = state or known_state(seen_of_logs(logs, until=numbers[0], **others))
    outcomes = [run_night(seen_of_logs(logs, until=number, **others), state, asked, RULES) for number in numbers]
    return state, outcomes


def drivers(*first_nights: int, count: int = 60) -> tuple[str, ...]:
    return tuple(f"driver{sum(night >= first for first in first_nights)}" for night in range(count))


def kinds(outcomes) -> list[list[str]]:
    return [[one.kind for one in outcome.filed] for outcome in outcomes]


def test_in_a_suite_of_few_tests_a_third_of_them_is_no_reason():
    logs = stepped(calm(3, 60), [1], 50, 0.03)
    asked = machine(logs, None, 1)
    _, outcomes = nights(logs, (50, 51), asked)
    assert [one.notes for one in outcomes] == [[], []] and asked.measured == []
    (filed,) = outcomes[1].filed
    assert not filed.of_a_build and len(filed.intervals) == 1, "by pairs, as any other"


def test_channels_of_few_tests_are_few_tests():
    logs = stepped(calm(24, 60), range(12), 50, 0.03)
    asked = ScriptedBench(lambda wanted, number, runner: {})
    _, (outcome,) = nights(logs, (50,), asked, channels=12)
    assert outcome.notes == []


def test_only_the_tests_of_tonight_are_counted_as_moved():
    """A night of which two shards are missing: all that ran moved."""
    logs = stepped(calm(40, 60), range(14), 50, 0.03)
    logs[14:, 50] = np.nan
    asked = machine(logs, dict.fromkeys(range(14), 0.03))
    _, (outcome,) = nights(logs, (50,), asked)
    assert kinds([outcome]) == [["environment"]] and "100% of the series are higher" in outcome.filed[0].why


def test_tests_that_were_odd_on_their_last_night_are_no_reason_ever_after():
    logs = stepped(calm(20, 60), range(8), 50, 0.03)
    logs[:8, 51:] = np.nan
    asked = machine(logs)
    state, outcomes = nights(logs, range(50, 54), asked)
    assert len(outcomes[0].notes) == 1 and [one.notes for one in outcomes[1:]] == [[], [], []]
    assert kinds(outcomes) == [[]] * 4
    assert state.build is not None, "waits for its tests, for a while"


def test_a_build_that_slowed_most_tests_waits_for_the_next_night_on_which_they_ran():
    logs = stepped(calm(20, 60), MOST, 50, 0.03)
    logs[:12, 51] = np.nan
    state, outcomes = nights(logs, (50, 51, 52), machine(logs))
    assert kinds(outcomes) == [[], [], ["regression"]]
    (filed,) = outcomes[2].filed
    assert filed.of_a_build and set(filed.series) >= {NAMES[row] for row in MOST}
    assert filed.onset.low == filed.onset.high == when(50)
    assert state.build is None
    passing = stepped(stepped(calm(20, 60), MOST, 50, 0.03), MOST, 51, 1 / 1.03 - 1)
    state, outcomes = nights(passing, (50, 51, 52), machine(passing))
    assert kinds(outcomes) == [[], [], []] and state.build is None


def test_a_change_that_is_filed_on_the_night_of_a_build_that_slows_most_is_not_counted_twice():
    logs = stepped(stepped(calm(20, 60), [15], 49, 0.03), [*MOST, 15], 50, 0.03)
    step, both = shifted(0.03, 15), shifted(1.03**2 - 1, 15)
    asked = machine(logs)
    asked.ratio = lambda wanted, *others: (both if int(wanted.head[5:]) >= 50 else step)(wanted, *others)
    state, outcomes = nights(logs, (49, 50, 51), asked)
    assert [[one.of_a_build for one in outcome.filed] for outcome in outcomes] == [[], [False], [True]]
    before = np.median(logs[15, :49])
    assert state.series[NAMES[15]].prior - before == pytest.approx(2 * np.log1p(0.03), abs=0.008)


def test_tests_that_are_not_back_after_a_fortnight_end_the_wait():
    logs = stepped(calm(20, 80), MOST, 50, 0.03)
    logs[:12, 51:] = np.nan
    state, outcomes = nights(logs, range(50, 70), machine(logs))
    assert state.build is None and kinds(outcomes) == [[]] * 20


def test_a_machine_that_comes_back_is_known():
    logs = calm(20, 60)
    logs[:12, 40:50] += 0.03
    environments = ("driver0",) * 40 + ("driver1",) * 10 + ("driver0",) * 10
    state, outcomes = nights(logs, (40,), machine(logs, dict.fromkeys(MOST, 0.03)), environments=environments)
    assert kinds(outcomes) == [["environment"]]
    state, outcomes = nights(logs, range(41, 60), machine(logs), state, environments=environments)
    assert kinds(outcomes) == [[]] * 19 and [one.notes for one in outcomes] == [[]] * 19
    assert [one.tried for one in outcomes] == [[]] * 19


def test_two_new_environments_on_consecutive_nights_are_one_note_and_levels_go_on():
    logs = stepped(stepped(calm(20, 60), MOST, 40, 0.03), MOST, 41, 0.03)
    environments = drivers(40, 41)
    first, second = (machine(logs, dict.fromkeys(MOST, size)) for size in (np.log1p(0.03), 2 * np.log1p(0.03)))
    state, outcomes = nights(logs, (40,), first, environments=environments)
    state, more = nights(logs, range(41, 50), second, state, environments=environments)
    filed = [one for outcome in outcomes + more for one in outcome.filed]
    assert [one.kind for one in filed] == ["environment"] * 2 and len({one.id for one in filed}) == 1
    shifts = state.era_of(when(45), "driver2").shifts
    assert [shifts[NAMES[row]] for row in MOST] == pytest.approx([2 * np.log1p(0.03)] * 12, abs=0.005)
    assert all(one.tried == [] for one in more)


def test_a_harmless_new_fingerprint_after_a_real_one_leaves_levels_as_they_are_known():
    logs = stepped(calm(20, 100), MOST, 30, 0.03)
    logs[15, 35:] += 0.02  # of no build, say the pairs; its level has followed
    environments = drivers(30, 65, count=100)
    moved = machine(logs, dict.fromkeys(MOST, float(np.log1p(0.03))))
    state, outcomes = nights(logs, range(30, 65), moved, environments=environments)
    assert kinds(outcomes) == [["environment"], *[[]] * 34]
    assert {one.trial.key.test[10:13] for outcome in outcomes for one in outcome.tried} == {"m15"}
    state.series[NAMES[15]].resting = 0
    _, outcomes = nights(logs, range(65, 70), moved, state, environments=environments)
    assert len(outcomes[0].notes) == 1 and [one.tried for one in outcomes] == [[]] * 5


def test_a_bridging_build_that_is_gone_is_replaced_by_another_of_the_segment():
    logs = stepped(calm(20, 60), MOST, 50, 0.03)
    gone = ("build43", "build42")
    asked = machine(logs, dict.fromkeys(MOST, 0.03), gone=gone)
    _, (outcome,) = nights(logs, (50,), asked, environments=drivers(50))
    assert kinds([outcome]) == [["environment"]] and {build for _, build in asked.measured} == {"build41"}
    asked = machine(logs, dict.fromkeys(MOST, 0.03), gone=tuple(f"build{night}" for night in range(46)))
    _, (outcome,) = nights(logs, (50,), asked, environments=drivers(50))
    assert kinds([outcome]) == [["environment"]] and {build for _, build in asked.measured} == {"build46"}


def test_with_every_older_build_gone_a_new_fingerprint_is_noted_in_the_report_and_files_nothing():
    logs = stepped(calm(20, 60), MOST, 50, 0.03)
    asked = machine(logs, None, gone=tuple(f"build{night}" for night in range(50)))
    _, (outcome,) = nights(logs, (50,), asked, environments=drivers(50))
    assert outcome.filed == [] and "no bridging run could be made" in outcome.notes[0]


def test_a_bench_that_gives_nothing_files_nothing_and_the_next_night_asks_again():
    logs = stepped(calm(20, 60), MOST, 50, 0.03)
    environments = drivers(50)
    state, outcomes = nights(logs, (50,), ScriptedBench(lambda *asked: None), environments=environments)
    assert kinds(outcomes) == [[]]
    moved = machine(logs, dict.fromkeys(MOST, 0.03))
    _, outcomes = nights(logs, (51, 52, 53), moved, state, environments=environments)
    assert kinds(outcomes) == [["environment"], [], []]


def test_tests_that_no_bridge_reaches_begin_anew_and_the_others_go_on():
    logs = stepped(calm(20, 60), MOST, 50, 0.03)
    asked = machine(logs, dict.fromkeys(MOST, 0.03))
    whole = asked.level
    asked.level = lambda test, build: None if "m02" in test else whole(test, build)
    state, outcomes = nights(logs, range(50, 58), asked, environments=drivers(50))
    assert kinds(outcomes) == [["environment"], *[[]] * 7]
    assert state.series[NAMES[2]].segment == when(50) and state.series[NAMES[3]].segment is None
    assert all(one.tried == [] for one in outcomes)


def test_a_state_that_begins_with_a_long_history_knows_its_machines_from_it():
    """As after an update: 50 nights are stored, and none was ever looked at by these rules."""
    logs = calm(20, 60)
    machines = np.random.default_rng(3).normal(0, 0.05, (20, 1))
    logs[:, 1::2] += machines
    turns = {
        "runners": tuple(f"runner{night % 2}" for night in range(60)),
        "environments": tuple(f"runner{night % 2} driver0" for night in range(60)),
    }
    asked = machine(logs)
    state, outcomes = nights(logs, range(50, 56), asked, ClassState(), **turns)
    assert [one.notes for one in outcomes] == [[]] * 6 and asked.measured == []
    shifts = [era.shifts for era in state.eras]
    assert [shifts[1][name] - shifts[0][name] for name in NAMES] == pytest.approx(machines[:, 0], abs=0.003)
    stepped_logs = stepped(logs, [3], 56, 0.03)
    _, (outcome,) = nights(stepped_logs, (56,), machine(logs, None, 3), state, **turns)
    assert len(outcome.confirmed) == 1


def test_a_fortnight_of_which_the_last_night_failed_is_aligned_on_the_next():
    logs = calm(20, 60)
    logs[:, 1::2] += np.random.default_rng(3).normal(0, 0.05, (20, 1))
    turns = {
        "runners": tuple(f"runner{night % 2}" for night in range(60)),
        "environments": tuple(f"runner{night % 2} driver0" for night in range(60)),
    }
    asked = machine(logs)
    state, outcomes = nights(logs, [*range(12), *range(15, 40)], asked, ClassState(), **turns)
    assert [len(era.shifts) for era in state.eras] == [20, 20]
    assert not any(one.notes or one.tried for one in outcomes) and asked.measured == []


def test_of_a_long_history_with_a_new_name_every_night_no_night_is_aligned_away():
    logs = stepped(calm(20, 60), [3], 50, 0.03)
    names = tuple(f"up since {night}" for night in range(60))
    state, outcomes = nights(logs, (50, 51), machine(logs, None, 3), ClassState(), environments=names)
    assert [one.trial.key.test[10:13] for one in outcomes[0].tried] == ["m03"]
    assert kinds(outcomes) == [[], ["regression"]] and len(state.eras) == 2


def test_a_straggler_is_not_asked_about_a_build_that_is_gone():
    logs = stepped(calm(20, 60), MOST, 40, 0.03)
    state, outcomes = nights(logs, (40, 41), machine(logs))
    assert kinds(outcomes) == [[], ["regression"]]
    late = stepped(logs, [15], 50, 0.03)
    asked = machine(logs, None, 15, gone=("build39", "build40"))
    _, outcomes = nights(late, range(50, 53), asked, state)
    filed = [one for outcome in outcomes for one in outcome.filed]
    assert [one.series for one in filed] == [(NAMES[15],)] and not filed[0].of_a_build


@pytest.mark.parametrize("runner", [0, 1])
def test_whether_a_build_that_moved_most_brought_a_change_is_asked_where_the_change_was_found(runner):
    logs = stepped(calm(20, 60), MOST, 40, 0.03)
    state, _ = nights(logs, (40, 41), machine(logs))
    onset = Onset(low=when(41), high=when(43))
    found = Pending(kind="regression", base=when(38), confirmed=when(45), onset=onset, pair_sd=0.002)
    for gone, asked in (((), {runner}), (("build39",), set())):
        bench = machine(logs, None, 15, runners=2, **{"gone_there" if runner else "gone": gone})
        tonight = Tonight(seen_of_logs(logs, until=45), state, bench, RULES)
        dated_with_a_build(tonight, [(15, found, Again(None, True))], runner)
        assert {at for _, _, at in bench.calls} == asked


def test_a_change_measured_from_a_later_build_is_not_told_with_an_earlier_one_that_moved_its_test_too():
    logs = stepped(stepped(calm(20, 60), MOST, 40, 0.03), [3], 50, 0.03)
    state, outcomes = nights(logs, (40, 41), machine(logs))
    (build,) = outcomes[1].filed
    assert build.of_a_build and NAMES[3] in build.series
    asked = machine(logs)
    asked.ratio = lambda wanted, *others: shifted(0.03, *MOST, 15)(wanted, *others)  # of either build, if it is asked
    _, outcomes = nights(logs, range(42, 53), asked, state)
    (filed,) = [one for outcome in outcomes for one in outcome.filed]
    assert filed.series == (NAMES[3],) and filed.id != build.id and not filed.of_a_build
    assert filed.onset.low <= when(50) <= filed.onset.high


def test_a_level_that_is_not_known_is_stored_as_that():
    """A test whose segment began the night before a build that slows most: the effect could be added to nothing."""
    logs = stepped(calm(20, 60), range(14), 50, 0.03)
    state = known_state(seen_of_logs(logs, until=50))
    state.series[NAMES[13]] = SeriesState(segment=when(49))
    state, outcomes = nights(logs, (50, 51), machine(logs), state)
    assert NAMES[13] in outcomes[1].filed[0].series
    assert state.series[NAMES[13]].prior is None
    assert ClassState.model_validate_json(state.model_dump_json()) == state


def test_one_process_a_night_says_what_a_pair_may_spread_by_at_most():
    logs = stepped(calm(20, 60), [3], 50, 0.03)
    alone = {"variances": np.full(logs.shape, np.nan), "processes": 1}
    _, outcomes = nights(logs, (50, 51), machine(logs, None, 3), **alone)
    assert kinds(outcomes) == [[], ["regression"]]
    (tried,) = outcomes[0].tried
    assert tried.trial.pair_sd == pytest.approx(np.sqrt(2) * 0.002, rel=0.5)


def test_environments_with_a_new_name_every_night_do_not_pile_up():
    logs = calm(20, 60)
    names = tuple(f"up since {night}" for night in range(60))
    asked = machine(logs)
    state, stored = known_state(seen_of_logs(logs, until=30)), []
    for night in range(30, 60):
        cut = slice(max(0, night - 19), night + 1)
        whole = seen_of_logs(logs[:, cut], nights=tuple(map(when, range(60)))[cut], environments=names[cut])
        outcome = run_night(whole, state, asked, RULES)
        assert outcome.filed == []
        stored.append(len(state.eras))
    assert max(stored) <= 20 and state.era_of(when(59), names[59]) is not None
