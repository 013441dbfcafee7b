"""What a comment says to the bot: pure, strict, and never an error."""

import random
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.github.commands.all_commands import names_at
from bot.github.commands.command import WrongUse
from bot.github.commands.grammar import (
    LONGEST_LINE,
    LONGEST_TEXT,
    MOST_WORDS,
    Misread,
    Said,
    read_comment,
    split_keys,
    spoken_lines,
    words_of,
)

NAMES = {"benchmark", "ack", "help"}
RIGHT = Said("benchmark", ("resnet18", "device=cpu"))


def said(text: str) -> Said | None:
    read = read_comment(text, NAMES)
    assert not isinstance(read, Misread), read
    return read


def problem(text: str) -> str:
    read = read_comment(text, NAMES)
    assert isinstance(read, Misread), read
    return str(read.wrong)


@pytest.mark.parametrize(
    "text",
    [
        "/benchmark resnet18 device=cpu",
        "Thanks!\n/benchmark resnet18 device=cpu\nand now we wait",
        "/benchmark\tresnet18   device=cpu  ",
        "/benchmark resnet18 device=cpu\r\n",
        "one\r/benchmark resnet18 device=cpu\rtwo",
        "\ufeff/benchmark resnet18 device=\u200bcpu",  # marks that nobody sees
        "/benchmark\u00a0resnet18 device=cpu",
        "/benchmark 'resnet18' device=\"cpu\"",
        "/benchmark `resnet18` device=cpu",
        "/benchmark “resnet18” device=cpu",
        "/benchmark resnet18 <!-- the small one --> device=cpu",
        "/benchmark resnet18 device=cpu <!-- and\nmore -->",
        "> they said\n> something\n\n/benchmark resnet18 device=cpu",
        "```\ncode\n```\n/benchmark resnet18 device=cpu",
        "- ```\n  code\n  ```\n/benchmark resnet18 device=cpu",
        "- ```\n  a list's item ends where a line begins before it\n/benchmark resnet18 device=cpu",
        "~~~ python\n```\n~~~~\n/benchmark resnet18 device=cpu",
        "``` is ``` inline code, and no fence\n/benchmark resnet18 device=cpu",
        "<!-- a template's hint -->\n/benchmark resnet18 device=cpu",
        "what `<!--` is\n\n/benchmark resnet18 device=cpu",
        "<pre>\ncode\n</pre>\n/benchmark resnet18 device=cpu",
        "one ` is no code\n/benchmark resnet18 device=cpu",
        "one ` is no code\n/benchmark resnet18 device=cpu\n\nand ` another",
        "\\` is none\n/benchmark resnet18 device=cpu\n`",
        "some `code` and `` more ` code ``\n/benchmark resnet18 device=cpu",
        "- a ` in a list\n\n/benchmark resnet18 device=cpu",
        "<code>inline</code> and more\n/benchmark resnet18 device=cpu",
        "<details>\n\n/benchmark resnet18 device=cpu\n</details>",
    ],
)
def test_a_command_at_the_start_of_a_line_is_heard(text):
    assert said(text) == RIGHT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "please /benchmark resnet18",
        " /benchmark resnet18",
        "- /benchmark resnet18",
        "`/benchmark resnet18`",
        "\\/benchmark resnet18",
        "> /benchmark resnet18",
        "   > /benchmark resnet18",
        "> as they said\n/benchmark resnet18",  # GitHub shows it as more of the quotation
        "    /benchmark resnet18",
        "\t/benchmark resnet18",
        "```\n/benchmark resnet18\n```",
        "```sh\n/benchmark resnet18",
        "````\n```\n/benchmark resnet18\n```\n````",
        "~~~\n```\n/benchmark resnet18\n~~~",
        "   ```\n/benchmark resnet18\n   ```",
        "> quoted\n```\ncode\n\n/benchmark resnet18\n```",
        "<!--\n/benchmark resnet18\n-->",
        "<!-- never closed\n/benchmark resnet18",
        "text <!-- hidden\n/benchmark resnet18\n-->",
        "text <!-- no comment, as a fence ends the paragraph\n```\nx -->\n/benchmark resnet18\n```",
        "<pre>\n/benchmark resnet18\n</pre>",
        "<PRE class=x>\n/benchmark resnet18\n</PRE>",
        "<blockquote>\n/benchmark resnet18\n</blockquote>",
        "<code>\n/benchmark resnet18\n</code>",
        "`\n/benchmark resnet18\n`",
        "as in `` this\n/benchmark resnet18` ``",
        "- > as they said\n/benchmark resnet18",
        "<?\n/benchmark resnet18\n?>",
        "<![CDATA[\n/benchmark resnet18\n]]>",
        "<!DOCTYPE\n/benchmark resnet18\n>",
    ],
)
def test_what_is_shown_as_code_or_quotation_or_not_at_all_is_not_said(text):
    assert said(text) is None


@pytest.mark.parametrize(
    "text",
    ["/usr/bin/python crashed", "/lgtm", "/merge", "/retest", "/", "/b", "/1", "//benchmark", "/benchmark/resnet18"],
)
def test_words_that_merely_begin_with_a_slash_are_silence(text):
    assert said(text) is None


@pytest.mark.parametrize(
    "written", ["/benchmrak", "/Benchmark", "/BENCHMARK", "/benchmarks", "/benchmark:", "/bench-mark"]
)
def test_what_is_nearly_a_command_is_told_which(written):
    assert problem(f"{written} resnet18") == f"there is no command `{written}`; did you mean `/benchmark`?"


def test_a_command_that_is_right_makes_up_for_one_that_is_nearly_one():
    assert said("/benchmrak resnet18\n/benchmark resnet18 device=cpu") == RIGHT


def test_one_command_a_comment():
    told = "the comment has 2 commands, so none of them is done; write each in a comment of its own"
    assert problem("/benchmark resnet18\n/benchmark resnet50") == told
    assert problem("/ack\n\n/help") == told
    assert said("/benchmark resnet18 device=cpu\n> /benchmark resnet50") == RIGHT


def test_quotes_keep_blanks_and_nothing_within_a_word_is_one():
    assert words_of("""a "b c" 'd "e"' f="g h" it's `i` "" x'y""") == (
        "a",
        "b c",
        'd "e"',
        "f=g h",
        "it's",
        "i",
        "",
        "x'y",
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("'a b", "the quote `'a b` is not closed; close it, or leave it out"),
        ('key="a b', 'the quote `"a b` is not closed; close it, or leave it out'),
        ('"a"b', 'a quote ends within a word: `"a"b`; put a blank after it'),
        ("x" * (LONGEST_LINE + 1), f"the command has {LONGEST_LINE + 1} characters; it may have {LONGEST_LINE}"),
        ("x " * (MOST_WORDS + 1), "the command has 101 words; it may have 100; a glob such as `hf_*` says more"),
    ],
)
def test_words_that_cannot_be_told_apart_are_told(line, told):
    with pytest.raises(WrongUse) as wrong:
        words_of(line)
    assert str(wrong.value) == told


def test_keys_are_told_from_words():
    assert split_keys(("a", "device=cpu", "hf_*", "base=x=y"), ("device", "base"), "") == (
        ("a", "hf_*"),
        {"device": "cpu", "base": "x=y"},
    )


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("devcie=cpu", "there is no key `devcie`; did you mean `device=`? Keys are such and such"),
        ("--device=cpu", "there is no key `--device`; did you mean `device=`? Keys are such and such"),
        ("DEVICE=cpu", "there is no key `DEVICE`; did you mean `device=`? Keys are such and such"),
        ("zzz=1", "there is no key `zzz`; Keys are such and such"),
        ("device=", "`device=` has no value; write it directly after the `=`"),
    ],
)
def test_a_key_that_is_not_known_is_told_with_those_that_are(word, told):
    with pytest.raises(WrongUse) as wrong:
        split_keys((word,), ("device", "base"), "Keys are such and such")
    assert str(wrong.value) == told
    with pytest.raises(WrongUse, match="stands twice"):
        split_keys(("device=cpu", "device=cuda"), ("device", "base"), "")


MARKDOWN = st.sampled_from(
    ["/benchmark", "/ack", "/benchmrak", "```", "~~~", "<!--", "-->", "<pre>", "</pre>", "> ", "    ", "\t", "- ",
     "1. ", "\n", "\r", "\n\n", " ", "'", '"', "`", "=", "device=", "\u2028", "\x00", "\ud800", "\u202e", "x"]
)  # fmt: skip


@given(st.lists(MARKDOWN | st.text(max_size=8), max_size=60).map("".join))
def test_no_text_is_an_error(text):
    read = read_comment(text, names_at("pull request"))
    assert read is None or isinstance(read, Said | Misread)
    if isinstance(read, Said):
        assert any(line.startswith(f"/{read.name}") for line in spoken_lines(text))
        assert all(word.isprintable() or not word for word in read.words)


@given(st.lists(st.text(string.ascii_letters + "*?[]_", min_size=1, max_size=12), max_size=10))
def test_words_without_quotes_are_read_as_they_stand(words):
    assert said(" ".join(["/benchmark", *words])) == Said("benchmark", tuple(words))


@given(st.text(string.ascii_letters + " /<>-!'=\t", min_size=1, max_size=20).filter(str.strip))
def test_a_word_in_quotes_is_read_as_it_stands(word):
    if "<!--" not in word:
        assert said(f'/benchmark "{word}"') == Said("benchmark", (word,))


@pytest.mark.parametrize("fence", ["```", "~~~~", "<!--", "<pre>", "> "])
@given(inside=st.text(string.printable, max_size=60))
def test_nothing_after_what_is_never_closed_is_said(fence, inside):
    closing = {"<!--": "-->", "<pre>": "</pre>"}.get(fence, fence.strip())
    if closing in inside.lower() or (fence == "> " and ("\n" in inside or "\r" in inside)):
        return
    assert said(f"{fence}\n{inside}\n/benchmark resnet18" if fence != "> " else f"> {inside}\n/benchmark x") is None


MANY = [
    "\\",
    "\\`",
    "`x``",
    "<!--",
    "`",
    "```\n",
    "a <!--\n",
    "- ",
    "1. ",
    "/\n",
    "~~~",
    "<pre>\n",
    "/benchx\n",
    "/benchmark\n",
    "'a",
    "> a\n",
    "/ack ",
]


@pytest.mark.parametrize("repeated", MANY, ids=repr)
def test_a_long_comment_takes_as_many_steps_as_its_halves(repeated):
    """Whatever grows with the square of the length takes four times as many."""
    whole = (repeated * LONGEST_TEXT)[:LONGEST_TEXT]
    assert steps(whole[: LONGEST_TEXT // 8]) < 3 * steps(whole[: LONGEST_TEXT // 16])
    assert read_comment(whole * 2, NAMES) == read_comment(whole, NAMES)  # what is beyond is not read


def steps(text: str) -> int:
    """Lines of Python that reading a text takes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read_comment(text, NAMES)
    finally:
        sys.settrace(before)
    return count


PIECES = [
    *(
        "```",
        "~~~",
        "````",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
        ">",
        "> ",
        "    ",
        "\t",
        "- ",
        "1. ",
        "* ",
        "`",
        "# h",
        "---",
    ),
    *(
        "\n",
        "\n\n",
        " ",
        "text",
        "<div>",
        "</div>",
        "<details>",
        "[a]:",
        "\\",
        *["/benchmark m\n", "\n/benchmark m"] * 3,
    ),
]


def test_what_is_heard_a_parser_of_markdown_shows_as_text():
    """By markdown-it, on texts made of all that could hide or quote a line."""
    made, parser, heard = random.Random(8), MarkdownIt("commonmark"), 0
    for _ in range(3000):
        text = "".join(made.choice(PIECES) for _ in range(made.randint(2, 14)))
        if any(line.startswith("/benchmark m") for line in spoken_lines(text)):
            heard += 1
            assert shows(parser, text, "/benchmark m"), text
    assert heard > 1000


def shows(parser: MarkdownIt, text: str, words: str) -> bool:
    """Whether words are shown, outside of quotations and of code."""
    quotations = 0
    for token in parser.parse(text):
        quotations += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        inside = token.children or [] if token.type == "inline" else [token] if token.type == "html_block" else []
        if not quotations and any(one.type in ("text", "html_block") and words in one.content for one in inside):
            return True
    return False
