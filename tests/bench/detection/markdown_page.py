"""Tables in Markdown, and the place in a page that this bench writes: between two markers, a section a part."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

BEGIN, END = "<!-- begin: make bench-detection -->", "<!-- end: make bench-detection -->"
HEADING = "### "


def table(rows: Iterable[Sequence[str]]) -> str:
    """The first row is the heading."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def replace_section(page: Path, title: str, text: str, order: Sequence[str]) -> None:
    """Of the titles in that order; other sections stay, and a page without markers gets them."""
    old = page.read_text() if page.exists() else ""
    if BEGIN not in old:
        old = f"{old.rstrip()}\n\n{BEGIN}\n{END}\n".lstrip()
    before, rest = old.split(BEGIN, 1)
    block, after = rest.split(END, 1)
    sections = dict(part.split("\n", 1) for part in re.split(rf"^{HEADING}", block, flags=re.MULTILINE)[1:])
    sections[title] = f"\n{text.strip()}\n\n"

    def place(section: tuple[str, str]) -> int:
        return order.index(section[0]) if section[0] in order else len(order)

    body = "".join(f"{HEADING}{name}\n{content}" for name, content in sorted(sections.items(), key=place))
    page.write_text(f"{before}{BEGIN}\n{body}{END}{after}")


def with_interval(value: float, interval: tuple[float, float], digits: int = 2, sign: str = "") -> str:
    low, high = interval
    return f"{value:{sign}.{digits}f} [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"


def pooled_rate(rate: Sequence[float] | None, digits: int = 2) -> str:
    """As the fleet's judge gives it: value, low, high; of one seed the value alone; nothing where there is none."""
    if not rate:
        return ""
    value, *interval = rate
    return with_interval(value, (interval[0], interval[1]), digits) if interval else f"{value:.{digits}f}"


def verdict(reached: bool) -> str:
    return "reached" if reached else "**missed**"
