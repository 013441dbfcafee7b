r"""Histories with merges.

a - b - c - m - d - n - e        first parents
     \     /       /
      x - y - - - z
       \ /
        w (a branch of the branch: x - w, merged into y)
"""

import pytest
from bisecting import RULES, verdict_of

from bot.bisection.merges import branches_of, first_parent_line
from bot.bisection.state import new_search
from bot.errors import BotError

HISTORY = {
    "a": (),
    "b": ("a",),
    "c": ("b",),
    "x": ("b",),
    "w": ("x",),
    "y": ("x", "w"),
    "m": ("c", "y"),
    "d": ("m",),
    "z": ("y",),
    "n": ("d", "z"),
    "e": ("n",),
}


def test_the_line_is_that_of_the_first_parents():
    assert first_parent_line(HISTORY, "a", "e") == ["a", "b", "c", "m", "d", "n", "e"]
    assert first_parent_line(HISTORY, "e", "e") == ["e"]


def test_a_good_end_on_a_branch_is_refused():
    with pytest.raises(BotError, match="x is not among the first parents of e; name a good end that is"):
        first_parent_line(HISTORY, "x", "e")


def test_a_history_that_is_too_short_is_told():
    shallow = {name: parents for name, parents in HISTORY.items() if name != "b"}
    with pytest.raises(BotError, match="the history ends before b; fetch more of it"):
        first_parent_line(shallow, "a", "e")


def test_a_branch_begins_where_it_left_what_was_there_before_the_merge():
    assert branches_of(HISTORY, "m") == [["b", "x", "y"]]
    assert branches_of(HISTORY, "n") == [["y", "z"]]
    assert branches_of(HISTORY, "y") == [["x", "w"]]


def test_a_commit_that_is_no_merge_has_no_branches():
    assert branches_of(HISTORY, "d") == []


def test_a_merge_of_what_was_there_already_brings_nothing():
    assert branches_of({**HISTORY, "o": ("e", "c")}, "o") == []


def test_an_unrelated_history_is_a_line_to_its_own_beginning():
    history = {**HISTORY, "p": (), "q": ("p",), "o": ("e", "q")}
    assert branches_of(history, "o") == [["p", "q"]]


def test_a_change_that_came_in_by_a_merge_is_found_in_its_branch():
    slow = {"y", "m", "d", "z", "n", "e"}  # y made it

    def culprit_of(line: list[str]) -> str:
        state = new_search([str(place) for place in range(len(line))], RULES, what="exact")
        verdict, _ = verdict_of(state, lambda place: float(line[place] in slow))
        (one,) = verdict.suspects[0].commits
        return line[int(one)]

    assert culprit_of(first_parent_line(HISTORY, "a", "e")) == "m"
    (branch,) = branches_of(HISTORY, "m")
    assert culprit_of(branch) == "y"
