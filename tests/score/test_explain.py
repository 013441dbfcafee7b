"""What moved a score, and what a total means in time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from score.explain import contributions, time_change_percent, time_sentence, top_movers
from score.taxonomy import Domain
from score.v1 import score_v1

REFERENCE = {f"test_eval[m{number}-cpu-eager]": 1.0 for number in range(15)}


def domain_of(model: str) -> Domain:
    return Domain("CV", "X")


def explained(results: dict[str, float]):
    scored = score_v1(REFERENCE, results, domain_of)
    return scored, contributions(scored.tests)


@given(st.lists(st.floats(min_value=0.1, max_value=10), min_size=15, max_size=15))
def test_the_contributions_sum_to_the_logarithm_of_the_total(times: list[float]) -> None:
    scored, ranked = explained(dict(zip(REFERENCE, times, strict=True)))
    assert math.fsum(moved.contribution for moved in ranked) == pytest.approx(math.log(scored.total / 1000), abs=1e-12)


@given(st.lists(st.floats(min_value=0.1, max_value=10), min_size=15, max_size=15))
def test_tests_are_ranked_by_how_far_they_moved_the_total_either_way(times: list[float]) -> None:
    _, ranked = explained(dict(zip(REFERENCE, times, strict=True)))
    moves = [abs(moved.contribution) for moved in ranked]
    assert moves == sorted(moves, reverse=True)
    assert {moved.test for moved in ranked} == set(REFERENCE)


def test_the_points_are_what_the_total_moves_by_when_one_test_alone_changes() -> None:
    slow = "test_eval[m3-cpu-eager]"
    scored, ranked = explained(REFERENCE | {slow: 2.0})
    first = ranked[0]
    assert first.test == slow
    assert first.points == pytest.approx(scored.total - 1000, rel=1e-9)
    assert (first.ratio, first.weight) == pytest.approx((0.5, 1 / 15))
    assert first.contribution == pytest.approx(-math.log(2) / 15)


def test_at_most_ten_movers_are_shown_and_none_that_did_not_move() -> None:
    _, ranked = explained(dict.fromkeys(REFERENCE, 2.0))
    assert len(top_movers(ranked)) == 10
    _, ranked = explained(REFERENCE | {"test_eval[m3-cpu-eager]": 0.5})
    assert [moved.test for moved in top_movers(ranked)] == ["test_eval[m3-cpu-eager]"]


def test_a_total_of_900_means_a_ninth_more_time_and_not_a_tenth() -> None:
    assert time_change_percent(900) == pytest.approx(100 / 9)
    assert "11.1 % more time" in time_sentence(900)


def test_a_total_above_1000_means_less_time() -> None:
    assert "9.1 % less time" in time_sentence(1100)


def test_a_total_of_1000_means_the_same_time() -> None:
    assert "the same time" in time_sentence(1000)
    assert "more" not in time_sentence(999.9)
