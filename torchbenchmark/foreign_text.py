"""Text that a model or a machine wrote, made fit to be stored and shown: cleaned once, where it enters."""

import unicodedata

LONGEST_LINE = 600  # characters of a reason
LONGEST_CODE = 300  # of a code span


def printable(text: object) -> str:
    """The text without control characters but newlines and tabs, surrogates, and marks that reverse or hide."""
    return "".join(
        character for character in str(text) if character in "\n\t" or unicodedata.category(character)[0] != "C"
    )


def one_line(text: object) -> str:
    """The text on one line of bounded length."""
    return _cut(printable(" ".join(str(text).split())), LONGEST_LINE)


def inline_code(text: object) -> str:
    """A Markdown code span of one line, in which nothing is a mention, a link, HTML or the end of a table's cell."""
    plain = one_line(text).replace("`", "'").replace("|", "¦")
    return f"`{_cut(plain, LONGEST_CODE) or ' '}`"


def _cut(text: str, longest: int) -> str:
    """What was cut off is seen to be."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
