"""Text of others is cleaned once, where it enters."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark.foreign_text import LONGEST_CODE, LONGEST_LINE, inline_code, one_line, printable

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
def test_whatever_comes_in_a_line_comes_out_that_can_be_written_and_read(text):
    line = one_line(text)
    assert len(line) <= LONGEST_LINE
    assert json.loads(json.dumps(line).encode()) == line
    line.encode()  # no surrogate
    assert not any(unicodedata.category(character)[0] == "C" for character in line)


def test_ordinary_text_stays_as_it_is():
    assert one_line("größer als 5 µs — ok") == "größer als 5 µs — ok"


def test_lines_of_a_detail_stay_lines_and_escapes_go():
    assert printable("a\n\tb \x1b[31mred\x1b[0m \u202e") == "a\n\tb [31mred[0m "


def test_a_long_reason_is_cut_with_a_sign_of_it():
    assert one_line("x" * 5000) == "x" * (LONGEST_LINE - 1) + "…"


def test_a_long_code_span_is_cut_with_a_sign_of_it():
    assert inline_code("x" * LONGEST_CODE) == f"`{'x' * LONGEST_CODE}`"
    assert inline_code("x" * 5000) == f"`{'x' * (LONGEST_CODE - 1)}…`"
