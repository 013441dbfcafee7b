"""Whether a change is gone: what pairs of the build from before it and tonight's say, and when nobody can say."""

import math

import numpy as np
import pytest
from small_fleet import CHANNEL, ScriptedBench, when

from baselines.confirming.closing import FEWEST_PAIRS, Question, answer, ask_whether_gone
from baselines.confirming.rules import Rules
from baselines.confirming.state import Closing, Gone

RULES = Rules()
TEST = "test_eval[m03-cuda-eager]"
LIMIT = 0.5 * math.log1p(0.05)


def question(test=TEST, base="build40", effect=0.05) -> Question:
    return Question(test, CHANNEL, base, when(40), effect)


def giving(*values: float | None, **others) -> ScriptedBench:
    """Pairs that give these values over and over; None is a pair that fails."""

    def ratio(wanted, number, runner):
        value = values[number % len(values)]
        return None if value is None else {CHANNEL: value}

    return ScriptedBench(ratio, **others)


def test_six_pairs_below_half_of_the_change_say_that_it_is_gone_and_six_above_that_it_is_not():
    below, above = [0.001] * 9, [0.05] * 9
    for pairs, told in ((FEWEST_PAIRS - 1, "continue"), (FEWEST_PAIRS, None), (9, None)):
        assert answer(below[:pairs], LIMIT, 24) == (told or "gone")
        assert answer(above[:pairs], LIMIT, 24) == (told or "there")


def test_what_lies_about_the_limit_is_undecided_once_all_pairs_are_spent():
    about = [LIMIT + 0.001 * (-1) ** number for number in range(30)]
    assert answer(about[:23], LIMIT, 24) == "continue"
    assert answer(about[:24], LIMIT, 24) == answer(about, LIMIT, 24) == "undecided"


def test_the_first_pair_that_decides_counts_and_later_ones_change_nothing():
    assert answer([0.0] * 6 + [0.09] * 18, LIMIT, 24) == "gone"


def test_a_change_that_is_there_is_called_gone_less_than_once_in_twenty():
    """At the limit itself, where it is hardest: half of the change is left, neither more nor less."""
    rng = np.random.default_rng(3)
    told = [answer(LIMIT + rng.normal(0, 0.01, 24), LIMIT, 24) for _ in range(2000)]
    assert 0.01 < told.count("gone") / 2000 < 0.06 and 0.01 < told.count("there") / 2000 < 0.06


def test_pairs_are_measured_until_they_decide_and_shared_by_channels_of_a_test():
    bench = giving(0.001)
    both = [question(), Question(TEST, CHANNEL, "build40", when(40), 0.2), question("test_eval[m04-cuda-eager]")]
    found, spent = ask_whether_gone(both, "build60", bench, RULES)
    assert [one.answer for one in found] == ["gone"] * 3 and spent == 2 * FEWEST_PAIRS
    assert found[0].pairs == FEWEST_PAIRS and found[0].effect == pytest.approx(0.001, abs=1e-4)
    assert found[0].limit == pytest.approx(math.expm1(LIMIT))


def test_a_change_of_less_than_twice_the_margin_is_gone_below_the_margin():
    assert question(effect=0.008).limit(RULES) == RULES.margin
    (found,), _ = ask_whether_gone([question(effect=0.008)], "build60", giving(0.0045), RULES)
    assert found.answer == "gone"


def test_a_base_that_is_gone_or_whose_pairs_fail_is_not_measured():
    (found,), spent = ask_whether_gone([question()], "build60", giving(0.0, gone=("build40",)), RULES)
    assert (found.answer, found.pairs, spent) == ("not measured", 0, 0)
    (found,), spent = ask_whether_gone([question()], "build60", giving(None), RULES)
    assert (found.answer, spent) == ("not measured", 0)
    (found,), _ = ask_whether_gone([question()], "build60", giving(*[None] * 3, LIMIT + 0.01, LIMIT - 0.01), RULES)
    assert found.answer == "undecided"


def test_the_build_from_before_itself_needs_no_pairs():
    (found,), spent = ask_whether_gone([question(base="build60")], "build60", giving(0.05), RULES)
    assert (found.answer, found.pairs, spent) == ("gone", 0, 0)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["gone", "there", "undecided"], "there"),
        (["gone", "undecided", "not measured"], "undecided"),
        (["gone", "not measured"], "gone"),
        (["not measured"], "not measured"),
        ([], "not measured"),
    ],
)
def test_an_alert_is_there_while_one_of_its_tests_is(answers, expected):
    asked = tuple(Gone(test=TEST, channel=CHANNEL, base=when(4), answer=one) for one in answers)
    assert Closing(alert="key", asked=asked).answer == expected
