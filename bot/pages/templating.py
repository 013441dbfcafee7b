"""The templates of the pages, and a word of a command as a shell takes it."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from torchbenchmark.foreign_text import inline_code
from torchbenchmark.quantity import quantity


def shell_word(word: str) -> str:
    return word if re.fullmatch(r"[A-Za-z0-9_./:=+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


@cache
def templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("bot.pages", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: what others wrote goes through `code`
    )
    environment.filters |= {"code": inline_code, "percent": _percent, "quantity": quantity}
    return environment


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"
