"""What the bot hides at the beginning of its own comments, to find and to judge them by later.

Only there: further down a comment may show text of others, which could have the form of a mark.
"""

import re
from collections.abc import Mapping

_MARK = re.compile(r"\s*<!-- torchbench-([a-z-]{1,40}): ?([^\n]{0,300}?) ?-->")


def mark(name: str, value: str) -> str:
    return f"<!-- torchbench-{name}: {value} -->"


def marks_in(body: str | None) -> Mapping[str, str]:
    """The marks with which a comment begins, by their names; of one that stands twice the first."""
    marks: dict[str, str] = {}
    text = body or ""
    at = 0
    while found := _MARK.match(text, at):
        marks.setdefault(found[1], found[2])
        at = found.end()
    return marks
