"""What the bench of the detection does by itself: the flat rule, a moving change point counted once, its page."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent / "detection"))
from flat_rule import flat_rule
from kept import Kept
from margins import slack_of, slack_of_ahead
from markdown_page import BEGIN, END, replace_section
from rivals import reported_once


def test_the_flat_rule_reports_an_excursion_once_and_a_return_beyond_the_threshold_anew():
    values = np.full(30, 100.0)
    values[10:] = 110.0
    assert flat_rule(values, 0.07) == [(10, 10)]
    values[20:] = 100.0
    assert flat_rule(values, 0.07) == [(10, 10), (20, 20)]
    assert flat_rule(values, 0.12) == []


def test_a_change_point_that_moves_by_a_few_nights_is_reported_when_first_seen():
    points = [(50, 56), (52, 57), (80, 86), (55, 90), (56, 91)]
    assert reported_once(points, near=5) == [(50, 56), (80, 86), (56, 91)]


def test_a_section_is_replaced_and_the_rest_of_the_page_and_the_other_sections_stay(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    for title, text in (("Second", "two"), ("First", "one"), ("Second", "2")):
        replace_section(page, title, text, ["First", "Second"])
    assert page.read_text() == f"before\n{BEGIN}\n### First\n\none\n\n### Second\n\n2\n\n{END}\nafter\n"


def test_a_page_without_the_markers_gets_them(tmp_path):
    page = tmp_path / "new.md"
    replace_section(page, "First", "one", ["First"])
    assert page.read_text() == f"{BEGIN}\n### First\n\none\n\n{END}\n"


def test_a_slack_is_a_margin_in_standard_deviations_and_of_a_difference_its_lower_end():
    draws = np.arange(-1.0, 1.001, 0.01)
    spread = draws.std(ddof=1)
    assert slack_of(0.3, draws) == pytest.approx(0.3 / spread)
    assert slack_of_ahead(draws + 2.0) == pytest.approx((2.0 - 0.95) / spread)
    assert slack_of_ahead(draws) < 0 < slack_of(0.3, draws)
    assert slack_of(0.3, np.ones(5)) == math.inf and slack_of(-0.3, np.ones(5)) == -math.inf


def test_an_answer_is_kept_until_an_array_or_a_number_differs():
    asked = []

    def scaled(values, by):
        asked.append(by)
        return by * values

    kept, values = Kept(scaled), np.arange(3.0)
    assert [kept(values.copy(), by).tolist() for by in (2.0, 2.0, 3.0)] == [[0, 2, 4], [0, 2, 4], [0, 3, 6]]
    assert kept(values + 1, 2.0).tolist() == [2, 4, 6] and asked == [2.0, 3.0, 2.0]
    assert not kept(values, 2.0).flags.writeable
