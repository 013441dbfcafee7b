"""The state of a bisection: what it takes, what it refuses, and that a stored one is the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.bisection.search import Build, next_step
from bot.bisection.state import Rules, SearchState, decoded, encoded, new_search, with_build, with_probes
from bot.errors import BotError

RULES = Rules(pair_sd=0.01)


def searched(length: int = 4) -> SearchState:
    return new_search([f"c{place}" for place in range(length + 1)], RULES)


def with_ends() -> SearchState:
    return with_build(with_build(searched(), "c0", ok=True), "c4", ok=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e200])
def test_a_pair_that_is_no_finite_number_is_refused_by_its_number(value):
    with pytest.raises(BotError, match=r"c4: pair 2 of 3 gave .*, which is no finite number"):
        with_probes(with_ends(), "c4", [0.1, value, 0.2])


def test_a_visit_that_measured_nothing_is_refused():
    with pytest.raises(BotError, match=r"c4: nothing was measured; where nothing can be"):
        with_probes(with_ends(), "c4", [])


def test_what_was_not_built_cannot_have_been_measured():
    with pytest.raises(BotError, match="c2 was measured, but not built"):
        with_probes(with_ends(), "c2", [0.1])


def test_a_commit_is_tried_once():
    state = with_ends()
    with pytest.raises(BotError, match="c4 was tried before, and was built"):
        with_build(state, "c4", ok=True)
    failed = with_build(state, "c2", ok=False, reason="no compiler")
    with pytest.raises(BotError, match="c2 was tried before, and does not build"):
        with_build(failed, "c2", ok=True)


def test_a_build_that_cannot_be_measured_is_taken_back_before_it_was_and_not_after():
    state = with_build(with_ends(), "c2", ok=True)
    assert not with_build(state, "c2", ok=False, reason="crashes at import").built[2]
    measured = with_probes(state, "c2", [0.1])
    with pytest.raises(BotError, match="c2 was measured already"):
        with_build(measured, "c2", ok=False)


def test_a_commit_outside_of_the_range_is_refused():
    with pytest.raises(BotError, match=r"x9 is not in the range c0 \.\. c4"):
        with_build(searched(), "x9", ok=True)


@pytest.mark.parametrize(
    ("commits", "options", "told"),
    [
        (["a"], {}, "commits"),
        (["a", "b", "a"], {}, "a is in the range twice"),
        (["a", "b", "c"], {"weights": [1.0]}, "there are 1 for 2 commits"),
        (["a", "b"], {"weights": [0.0]}, "weights"),
        (["a", "b"], {"weights": [float("nan")]}, "weights"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(commits, options, told):
    with pytest.raises(BotError, match=told):
        new_search(commits, RULES, **options)


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=8))
def test_numbers_come_back_from_the_store_to_the_last_digit(values):
    state = with_probes(with_ends(), "c4", values)
    again = decoded(encoded(state), "the store")
    assert again == state
    assert again.measured == {4: tuple(values)}


def broken(**changed: object) -> bytes:
    state = json.loads(encoded(with_probes(with_ends(), "c4", [0.1])))
    return json.dumps({**state, **changed}).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "store/key"),
        (broken(schema=2), "schema"),
        (broken(extra=1), "extra"),
        (broken(attempts=[{"commit": "c0", "ok": True}]), "c4 was measured and not built"),
        (broken(attempts=[{"commit": "zz", "ok": True}]), "zz is not in the range"),
        (broken(attempts=[{"commit": "c4", "ok": True}] * 2), "c4 was tried before"),
        (broken(batches=[{"commit": "c4", "values": [None]}]), "values"),
    ],
)
def test_a_stored_state_that_cannot_be_gone_on_with_is_refused_by_place_and_key(content, told):
    with pytest.raises(BotError, match=r"store/key: .*mend it, or remove it") as refused:
        decoded(content, "store/key")
    assert told in str(refused.value)


def test_a_newly_made_search_builds_its_ends_first():
    state = searched()
    assert next_step(state) == Build("c0")
    assert next_step(with_build(state, "c0", ok=True)) == Build("c4")
