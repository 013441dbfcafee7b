"""Texts of a form, in configurations: what does not have it is told in words, and not by a pattern."""

import re
from collections.abc import Callable

from torchbenchmark.validation import found


def of_form(pattern: str, words: str) -> Callable[[str], str]:
    """A validator for pydantic's `AfterValidator`: the text, if all of it matches."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"expected {words}, found {found(text)}")
        return text

    return check
