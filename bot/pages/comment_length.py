"""How long a comment may be, and one that is longer made to fit."""

import re

LONGEST_COMMENT = 60_000  # characters; GitHub takes 65,536
CUT = "*The rest is too long for a comment.*"
_ROOM = 2_000  # for the notice, and for what has to be closed before it
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_FOLD = re.compile(r"<(/?)details>")


def fitting(text: str) -> str:
    """The text, or its beginning with a notice: cut between lines, with the block of code and the folds closed that it
    would end in."""
    if len(text) <= LONGEST_COMMENT:
        return text
    kept = text[: LONGEST_COMMENT - _ROOM]
    kept = kept[: kept.rfind("\n") + 1] or f"{kept}\n"
    fence = _open_fence(kept)
    folds = max(sum(-1 if found[1] else 1 for found in _FOLD.finditer(kept)), 0)
    closed = (f"{fence}\n" if fence else "") + "\n</details>\n" * min(folds, 100)
    return f"{kept}{closed}\n{CUT}\n"


def _open_fence(text: str) -> str:
    """What would close the block of code that the text ends in; nothing if it ends in none."""
    fence = ""
    for found in _FENCE.finditer(text):
        if not fence:
            fence = found[1]
        elif found[1][0] == fence[0] and len(found[1]) >= len(fence):
            fence = ""
    return fence if len(fence) < 100 else ""
