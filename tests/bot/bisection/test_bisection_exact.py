"""Counts and failing tests: k runs that agree, and commits whose runs do not."""

import math

from bisecting import search, steps_of, verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.bisection.search import Build, Probe


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 200), where=st.floats(0, 1))
def test_a_crash_is_found_in_as_few_builds_as_halving_takes(length, where):
    culprit = 1 + int(where * (length - 1))
    verdict, state = verdict_of(search(length, what="exact"), lambda place: float(place >= culprit))
    assert verdict.kind == "culprit"
    assert verdict.suspects[0].commits == (str(culprit),)
    assert verdict.suspects[0].probability == 1
    assert len(state.attempts) - 2 <= math.ceil(math.log2(length)) + 1
    assert all(len(values) == 3 for values in state.measured.values())


def test_counts_that_grow_in_five_places_are_five_culprits():
    places = (3, 30, 31, 60, 99)
    verdict, _ = verdict_of(search(100, what="exact"), lambda place: 100.0 + sum(place >= one for one in places))
    assert verdict.kind == "several culprits"
    assert [one.commits for one in verdict.suspects] == [(str(place),) for place in places]
    assert {one.step for one in verdict.suspects} == {1.0}


def test_equal_counts_are_not_reproduced():
    verdict, state = verdict_of(search(100, what="exact"), lambda place: 100.0)
    assert verdict.kind == "not reproduced"
    assert state.probes == 6


def test_a_flaky_commit_is_told_and_kept_out_of_the_search():
    runs = iter([0.0, 1.0] * 1000)
    verdict, _ = verdict_of(search(16, what="exact"), lambda place: next(runs) if place == 8 else float(place >= 8))
    assert verdict.flaky == ("8",)
    assert verdict.kind == "set"
    assert verdict.suspects[0].inseparable == ("8", "9")


def test_a_flaky_end_ends_the_search():
    runs = iter([0.0, 1.0] * 1000)
    verdict, _ = verdict_of(search(16, what="exact"), lambda place: next(runs) if place == 16 else 0.0)
    assert verdict.kind == "ends not measurable"
    assert "flaky" in verdict.reason


def test_commits_that_do_not_build_are_left_to_the_set():
    verdict, _ = verdict_of(search(16, what="exact"), lambda place: float(place >= 8), broken={6, 7, 8})
    assert verdict.suspects[0].inseparable == ("6", "7", "8", "9")


def test_runs_that_were_cut_short_are_completed():
    taken = list(steps_of(search(4, what="exact"), lambda place: float(place >= 2)))
    assert next(step for _, step in taken if isinstance(step, Probe)) == Probe("0", 3)
    assert sum(isinstance(step, Build) for _, step in taken) == 4
