"""What a comment says to the bot: at most one command, at the start of a line of the comment's own text.

Pure, in time that grows with the text's length, and never an error. What GitHub shows as code or as a quotation, and
what it does not show, is not said: code in fences, indented, in backticks or `<pre>`, lines that begin with `>` and
those that follow them without an empty line between, HTML comments.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.github.commands.command import WrongUse
from torchbenchmark.foreign_text import inline_code, printable

LONGEST_TEXT = 65_536  # characters of a comment on GitHub; more is not read
LONGEST_LINE = 2_000  # characters of a command
MOST_WORDS = 100
NEAR = 0.75  # how alike a name is that was meant (difflib's ratio)
SHORTEST_MEANT = 3  # letters; of fewer everything is alike

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_HTML_CODE = re.compile(r" {0,3}<(pre|code|script|style|textarea|blockquote)(?:[\s>]|$)", re.IGNORECASE)
_HIDDEN = (  # HTML that is not shown, and its end
    (re.compile(r" {0,3}<!--"), "-->"),
    (re.compile(r" {0,3}<\?"), "?>"),
    (re.compile(r" {0,3}<!\[CDATA\["), "]]>"),
    (re.compile(r" {0,3}<![A-Za-z]"), ">"),
)
_BEGINS = re.compile(r" {0,3}(?:#{1,6}(?:\s|$)|(?:[-*+]|[0-9]{1,9}[.)])(?:\s|$))")  # a heading, an item of a list
_BACKTICKS = re.compile(r"(?<!\\)(\\*)(`+)")  # the lookbehind keeps it linear
_QUOTED = re.compile(r" {0,3}(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*>")
_LISTED = re.compile(r" {0,3}(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)+")
_BLOCKS = (
    _FENCE,
    _HTML_CODE,
    *(begin for begin, _ in _HIDDEN),
    _QUOTED,
)  # begin where they stand, also within a paragraph
_NAME = re.compile(r"/([A-Za-z][A-Za-z_-]{1,30})[:,.;!?]?")
_KEYED = re.compile(r"(-{0,2}[A-Za-z][A-Za-z_-]{0,30})=(.*)", re.DOTALL)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”"}


@dataclass(frozen=True)
class Said:
    """A command and its words, without the quotes around them."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Misread:
    """What was meant as a command and cannot be taken as one."""

    name: str
    wrong: WrongUse


def read_comment(text: str, names: Collection[str]) -> Said | Misread | None:
    """The command in a comment, of those with these names; None if it has none.

    A word after a slash that is no command of ours is silence, unless it is nearly one.
    """
    commands, near = [], None
    for line in spoken_lines(text):
        if not line.startswith("/"):
            continue
        first, rest = _split_name(line)
        if first[1:] in names:
            commands.append((first[1:], rest))
        elif near is None:
            near = _nearly(first, names)
    if not commands:
        return near
    name, rest = commands[0]
    if len(commands) > 1:
        problem = f"the comment has {len(commands)} commands, so none of them is done"
        return Misread(name, WrongUse(problem, "write each in a comment of its own"))
    try:
        return Said(name, words_of(rest))
    except WrongUse as wrong:
        return Misread(name, wrong)


def spoken_lines(text: str) -> Iterator[str]:
    """The lines of a comment that are its own text, as GitHub shows it."""
    lines = printable(text[:LONGEST_TEXT].replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    for paragraph in _paragraphs(lines):
        yield from _outside_of_code(paragraph)


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    comment_ends = _ends_of_comments(lines)
    number, quotation = 0, False
    paragraph: list[str] = []
    while number < len(lines):
        line = lines[number]
        number += 1
        after = None
        if quoted := _QUOTED.match(line) is not None:
            quotation = True
        elif (after := _after_block(lines, number - 1)) is not None:
            number, quotation = after, False
        elif not line.strip():
            quotation = False
        if quoted or after is not None or not line.strip() or _BEGINS.match(line):
            yield paragraph
            paragraph = []
        if not quotation and after is None:
            paragraph.append(line)
            if line.rfind("<!--") > line.rfind("-->"):
                number = comment_ends[number - 1] or number
    yield paragraph


def _outside_of_code(paragraph: Sequence[str]) -> Iterator[str]:
    """The lines that do not begin within code in backticks, which may go on over several."""
    text, at, code_ends = "\n".join(paragraph), 0, 0
    ends = _ends_of_code(text)
    for line in paragraph:
        if at >= code_ends and not line.startswith(("    ", "\t")):
            yield line
        for run in _BACKTICKS.finditer(line):
            if at + run.start(2) >= code_ends:
                code_ends = ends.get(at + run.start(2), code_ends)
        at += len(line) + 1


def _ends_of_code(text: str) -> dict[int, int]:
    """Where code ends that would begin at a run of backticks: after the next run of the same length."""
    ends: dict[int, int] = {}
    next_of: dict[int, int] = {}  # by length
    for run in reversed([*_BACKTICKS.finditer(text)]):
        length, escaped = len(run[2]), len(run[1]) % 2
        if (end := next_of.get(length - escaped)) is not None:
            ends[run.start(2)] = end
        next_of[length] = run.end()
    return ends


def _after_block(lines: Sequence[str], number: int) -> int | None:
    """The line after the block of code or of hidden text that begins here; None if none does. One that is not closed
    lasts to the end."""
    line = lines[number]
    if (listed := _LISTED.match(line)) and (fence := _FENCE.match(line[listed.end() :])):
        return _after_fence(lines, number + 1, fence[1], within=listed.end())
    if fence := _FENCE.match(line):
        return _after_fence(lines, number + 1, fence[1])
    if html := _HTML_CODE.match(line):
        return _after(lines, number, f"</{html[1].lower()}>")
    for begin, end in _HIDDEN:
        if begin.match(line):
            return _after(lines, number, end)
    return None


def _after_fence(lines: Sequence[str], number: int, fence: str, within: int = 0) -> int:
    """`within`: columns of the list's item around it, which ends at a line that begins before."""
    closing = re.compile(rf" {{0,{within + 3}}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    for at in range(number, len(lines)):
        line = lines[at]
        if line[:within].strip():
            return at
        if closing.fullmatch(line):
            return at + 1
    return len(lines)


def _after(lines: Sequence[str], number: int, mark: str) -> int:
    for at in range(number, len(lines)):
        if mark in lines[at].lower():
            return at + 1
    return len(lines)


def _ends_of_comments(lines: Sequence[str]) -> list[int]:
    """For each line the one after that in which a comment begun there ends; 0 where its paragraph has no end of one,
    so that it is none."""
    ends, end = [0] * len(lines), 0
    for number in range(len(lines) - 1, -1, -1):
        ends[number] = end
        line = lines[number]
        if not line.strip() or any(form.match(line) for form in _BLOCKS):
            end = 0
        elif "-->" in line:
            end = number + 1
    return ends


def _split_name(line: str) -> tuple[str, str]:
    parts = line.split(None, 1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def _nearly(first: str, names: Collection[str]) -> Misread | None:
    """A word that was meant as one of our commands, if it was."""
    written = _NAME.fullmatch(first)
    if written is None:
        return None
    close = closest(written[1], names)
    if close is None:
        return None
    return Misread(close, WrongUse(f"there is no command {inline_code(first)}", f"did you mean `/{close}`?"))


def words_of(line: str) -> tuple[str, ...]:
    """The words of a command. One with blanks stands in quotes, also after `key=`. Raises WrongUse."""
    if len(line) > LONGEST_LINE:
        raise WrongUse(f"the command has {len(line)} characters", f"it may have {LONGEST_LINE}")
    text = _without_comments(line)
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word, at = _word(text, at)
        words.append(word)
    if len(words) > MOST_WORDS:
        raise WrongUse(
            f"the command has {len(words)} words", f"it may have {MOST_WORDS}; a glob such as `hf_*` says more"
        )
    return tuple(words)


def _word(text: str, at: int) -> tuple[str, int]:
    """The word that begins at a place, and the place after it. A quote within a word is a letter as any other."""
    word = ""
    while at < len(text) and not text[at].isspace():
        if text[at] in _QUOTES and (not word or word.endswith("=")):
            end = text.find(_QUOTES[text[at]], at + 1)
            if end < 0:
                raise WrongUse(f"the quote {inline_code(text[at:])} is not closed", "close it, or leave it out")
            if end + 1 < len(text) and not text[end + 1].isspace():
                raise WrongUse(f"a quote ends within a word: {inline_code(text[at:])}", "put a blank after it")
            return word + text[at + 1 : end], end + 1
        word += text[at]
        at += 1
    return word, at


def _without_comments(line: str) -> str:
    """Also one that goes on below is cut out."""
    return re.sub(r"<!--.*?(?:-->|$)", " ", line)


def split_keys(words: Sequence[str], keys: Collection[str], usage: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The plain words, and the values of those that are `key=value`.

    Raises WrongUse for a key that is not known, stands twice or has no value.
    """
    plain: list[str] = []
    values: dict[str, str] = {}
    for word in words:
        written = _KEYED.fullmatch(word)
        if written is None:
            plain.append(word)
            continue
        key, value = written[1], written[2]
        if key not in keys:
            raise WrongUse(f"there is no key {inline_code(key)}", f"{_meant(key, keys)}{usage}")
        if key in values:
            raise WrongUse(f"`{key}=` stands twice", "say it once")
        if not value:
            raise WrongUse(f"`{key}=` has no value", "write it directly after the `=`")
        values[key] = value
    return tuple(plain), values


def _meant(word: str, known: Collection[str]) -> str:
    close = closest(word.lstrip("-"), known)
    return f"did you mean `{close}=`? " if close else ""


def closest(word: str, known: Collection[str]) -> str | None:
    """What of `known` a word was meant to be, if it was."""
    if len(word) < SHORTEST_MEANT:
        return None
    swapped = [name for name in sorted(known) if word.lower() in _with_neighbours_swapped(name)]
    close = swapped or difflib.get_close_matches(word.lower(), sorted(known), n=1, cutoff=NEAR)
    return close[0] if close else None


def _with_neighbours_swapped(name: str) -> set[str]:
    """The slip of the fingers that in a short word leaves too little alike: `akc` for `ack`."""
    return {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)}
