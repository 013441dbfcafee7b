"""The search from the first build to the verdict, on ranges that are made up."""

import numpy as np
import pytest
from bisecting import noisy, search, steps_of, verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.bisection.search import Build, Done, Probe, next_step, posterior
from bot.bisection.state import Rules, decoded, encoded, with_build, with_probes


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 40),
    where=st.floats(0, 1),
    sign=st.sampled_from([-1, 1]),
    broken=st.sets(st.integers(1, 40), max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_clear_change_of_either_sign_is_found_in_the_smallest_set_that_the_builds_separate(
    length, where, sign, broken, seed
):
    culprit = 1 + int(where * (length - 1))
    broken = {place for place in broken if place < length}
    verdict, _ = verdict_of(search(length), noisy({culprit: sign * 0.08}, seed), broken)
    first = culprit
    while first - 1 in broken:
        first -= 1
    last = culprit
    while last in broken:
        last += 1
    (suspects,) = verdict.suspects
    assert suspects.inseparable == tuple(str(place) for place in range(first, last + 1))
    assert set(suspects.inseparable) <= set(suspects.commits)
    assert verdict.kind == ("culprit" if first == last else "set")
    assert suspects.certainty == "certain"
    assert suspects.step == pytest.approx(sign * 0.08, abs=0.02)
    assert set(verdict.unbuildable) <= {str(place) for place in broken}


def test_every_stored_state_has_the_same_next_step_and_goes_on_to_the_same_verdict():
    taken = list(steps_of(search(24, weights=range(1, 25)), noisy({9: 0.03}, 5), broken={8, 12, 13}))
    assert len(taken) > 12
    for state, step in taken:
        assert next_step(decoded(encoded(state), "the store")) == step
    again = list(steps_of(search(24, weights=range(1, 25)), noisy({9: 0.03}, 5), broken={8, 12, 13}))
    assert [step for _, step in again] == [step for _, step in taken]


def test_no_build_is_asked_for_twice_and_nothing_is_measured_that_was_not_built():
    *steps, (_, done) = steps_of(search(200), noisy({71: 0.02}, 3), broken=set(range(60, 70)) | {100, 101})
    builds = [step.commit for _, step in steps if isinstance(step, Build)]
    assert len(set(builds)) == len(builds)
    assert isinstance(done, Done)


def test_where_nothing_between_the_ends_builds_the_whole_range_is_the_set():
    verdict, _ = verdict_of(search(8), noisy({3: 0.08}, 1), broken=set(range(1, 8)))
    assert verdict.kind == "set"
    assert verdict.suspects[0].inseparable == tuple("12345678")
    assert len(verdict.unbuildable) == 7


def test_a_range_of_one_commit_is_asked_only_whether_anything_changed():
    verdict, state = verdict_of(search(1), noisy({1: 0.08}, 1))
    assert verdict.kind == "culprit"
    assert verdict.suspects[0].commits == ("1",)
    assert len(state.attempts) == 2


def test_two_changes_are_told_apart():
    verdict, _ = verdict_of(search(40), noisy({11: 0.05, 30: 0.05}, 2))
    assert verdict.kind == "several culprits"
    assert [one.inseparable for one in verdict.suspects] == [("11",), ("30",)]


def test_a_change_and_its_half_undoing_are_two():
    verdict, _ = verdict_of(search(40), noisy({11: 0.08, 30: -0.05}, 2))
    assert [one.inseparable for one in verdict.suspects] == [("11",), ("30",)]
    assert [one.step > 0 for one in verdict.suspects] == [True, False]


def test_equal_ends_are_not_reproduced_and_nothing_between_them_is_built():
    verdict, state = verdict_of(search(64), noisy({}, 1))
    assert verdict.kind == "not reproduced"
    assert verdict.nothing > 0.9
    assert len(state.attempts) == 2
    assert not verdict.suspects


def test_equal_ends_of_nights_whose_machines_differed_are_the_environment():
    differs = ("the driver was 550 and is 570",)
    verdict, _ = verdict_of(search(64, environment=differs), noisy({}, 1))
    assert verdict.kind == "environment"
    assert verdict.environment == differs


@pytest.mark.parametrize("end", ["0", "30"])
def test_an_end_that_does_not_build_is_told_with_its_reason(end):
    verdict, _ = verdict_of(search(30), noisy({5: 0.08}, 1), broken={int(end)})
    assert verdict.kind == "ends not measurable"
    assert "told so" in verdict.reason


@pytest.mark.parametrize("limit", [{"most_attempts": 5}, {"most_probes": 20}])
def test_a_spent_budget_is_told_with_what_is_known_by_then(limit):
    rules = Rules(pair_sd=0.01, **limit)
    verdict, state = verdict_of(search(500, rules=rules), noisy({100: 0.05}, 4))
    assert verdict.kind == "budget spent"
    assert len(state.attempts) <= 5 or state.probes <= 23
    assert "100" in verdict.suspects[0].commits
    assert verdict.suspects[0].certainty == "open"


def test_one_wild_pair_does_not_carry_the_search_away():
    value = noisy({20: 0.04}, 6)
    pairs = iter(range(10_000))
    verdict, _ = verdict_of(search(40), lambda place: value(place) + (-3.0 if next(pairs) % 15 == 7 else 0.0))
    assert verdict.suspects[0].inseparable == ("20",)


def test_a_change_a_thousand_times_the_noise_is_found_as_well():
    verdict, _ = verdict_of(search(40), noisy({20: 10.0}, 6))
    assert verdict.suspects[0].inseparable == ("20",)
    assert verdict.suspects[0].step == pytest.approx(10, rel=0.1)


def test_commits_that_are_more_likely_are_looked_at_first():
    weights = [1.0] * 64
    weights[9] = 500.0
    asked = [
        step.commit
        for _, step in steps_of(search(64, weights=weights), noisy({10: 0.08}, 1))
        if isinstance(step, Build)
    ]
    assert set(asked[2:]) <= {"9", "10"}


def test_after_failures_the_next_attempt_keeps_away_from_them():
    asked = []
    for _, step in steps_of(search(400), noisy({390: 0.08}, 1), broken=range(150, 260)):
        if isinstance(step, Build):
            asked.append(int(step.commit))
    tried = [place for place in asked if place in range(150, 260)]
    assert len(tried) <= 6


def test_the_ends_are_measured_again_by_turns():
    visits = [step.commit for _, step in steps_of(search(64), noisy({33: 0.015}, 8)) if isinstance(step, Probe)]
    later = visits[visits.index("32") :] if "32" in visits else visits[6:]
    assert "0" in later
    assert "64" in later


def test_pairs_that_all_disagree_end_in_numbers_and_a_verdict():
    """Levels that go up and down at every commit are more changes than are looked for."""
    verdict, state = verdict_of(search(12), lambda place: 0.1 * (place % 2) + 0.2 * (place == 12))
    known = posterior(state)
    assert known is not None
    assert known.counts.sum() == pytest.approx(1)
    assert verdict.suspects


def test_what_is_known_is_a_distribution_at_every_step():
    for state, _ in steps_of(search(30), noisy({7: 0.02}, 9), broken={6}):
        known = posterior(state)
        if known is not None:
            assert known.counts.sum() == pytest.approx(1)
            at_least = known.counts[::-1].cumsum()[::-1]
            assert known.change.sum(axis=1) == pytest.approx(at_least[1:], abs=1e-6)
            assert known.by_commit.sum() == pytest.approx(known.counts @ np.arange(4), abs=1e-6)


def test_a_build_whose_measuring_was_killed_is_measured_and_not_built_again():
    for state, step in steps_of(search(16), noisy({7: 0.05}, 9)):
        if isinstance(step, Build) and step.commit not in ("0", "16"):
            assert next_step(with_build(state, step.commit, ok=True)) == Probe(step.commit, 3)
            return
    raise AssertionError("nothing was built")


def test_fewer_pairs_than_were_asked_for_are_taken():
    state = with_build(with_build(search(16), "0", ok=True), "16", ok=True)
    assert next_step(state) == Probe("16", 6)
    assert next_step(with_probes(state, "16", [0.05, 0.06])) == Probe("16", 4)


@pytest.mark.parametrize("shared_sd", [0.0, 0.001, 0.1])
def test_pairs_that_are_all_alike_are_no_change_however_much_builds_are_said_to_share(shared_sd):
    rules = Rules(pair_sd=1e-4, shared_sd=shared_sd)
    verdict, _ = verdict_of(search(30, rules=rules), lambda place: 0.0)
    assert verdict.kind == "not reproduced"


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 30),
    pair_sd=st.sampled_from([1e-6, 0.01, 3.0]),
    shared_sd=st.sampled_from([None, 0.0, 0.05]),
    levels=st.lists(st.floats(-1e100, 1e100) | st.floats(-0.1, 0.1), min_size=31, max_size=31),
    broken=st.sets(st.integers(1, 29)),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_finite_numbers_are_measured_there_is_a_verdict_in_numbers(
    length, pair_sd, shared_sd, levels, broken, seed
):
    generator = np.random.default_rng(seed)
    weights = 10.0 ** generator.uniform(-9, 9, length)
    state = search(length, rules=Rules(pair_sd=pair_sd, shared_sd=shared_sd), weights=weights)

    def value(place: int) -> float:
        return levels[place] + 0.01 * float(generator.standard_cauchy()) if abs(levels[place]) < 1 else levels[place]

    with np.errstate(divide="raise", invalid="raise", over="raise"):
        verdict, _ = verdict_of(state, value, broken - {length})
    assert 0 <= verdict.nothing <= 1 + 1e-9
    assert all(0 <= one.probability <= 1 + 1e-9 and np.isfinite(one.step) for one in verdict.suspects)


def test_what_was_measured_between_the_ends_is_not_taken_back_at_a_little_more_than_even_odds():
    """The ends had looked different, else nothing between them would have been built."""
    spread = [0.005 + 0.01 * z for z in (-1.96, -1.28, -0.84, -0.52, -0.25, 0, 0, 0.25, 0.52, 0.84, 1.28, 1.96)]
    ends = search(8)
    for commit in ("0", "8"):
        ends = with_build(ends, commit, ok=True)
    ends = with_probes(ends, "8", (spread * 4)[:40])
    more = with_probes(with_build(ends, "4", ok=True), "4", [0.0, 0.001, -0.001])
    for state in (ends, more):
        assert 0.5 < posterior(state).nothing < 0.95

    assert isinstance(next_step(ends), Done)
    assert isinstance(next_step(more), Probe)


@pytest.mark.parametrize(("level", "kind"), [(0.005, "not reproduced"), (0.008, "budget spent")])
def test_when_the_budget_is_spent_equal_ends_are_told_where_they_are_likelier_than_a_change(level, kind):
    spread = [level + 0.01 * z for z in (-1.96, -1.28, -0.84, -0.52, -0.25, 0, 0, 0.25, 0.52, 0.84, 1.28, 1.96)]
    rules = Rules(pair_sd=0.01, shared_sd=0.001, most_probes=43)
    state = search(8, rules=rules)
    for commit in ("0", "8", "4"):
        state = with_build(state, commit, ok=True)
    state = with_probes(with_probes(state, "8", (spread * 4)[:40]), "4", [0.0, 0.001, -0.001])

    verdict = next_step(state).verdict
    assert verdict.kind == kind
    assert (verdict.nothing > 0.5) == (kind == "not reproduced")
    assert verdict.nothing < state.rules.likely
    assert verdict.reason == "43 pairs were measured"
