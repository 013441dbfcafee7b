"""The words of `/benchmark` and of `/benchmark profile`, read without looking anything up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.github.commands.command import WrongUse
from bot.github.commands.grammar import closest, split_keys
from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import DEVICES, PRECISIONS, TESTS
from torchbenchmark.foreign_text import inline_code

KEYS = ("device", "backend", "precision", "mode", "base", "sha", "budget", "pairs")
MERGE_BASE = "merge-base"
SHORTEST_SHA = 7  # characters
WORDS_HELP = (
    "The words before the keys name a suite, models, or tests by globs such as `hf_*`; the keys are "
    f"{', '.join(f'`{key}=`' for key in KEYS)}"
)
KEYS_HELP = (
    f"`device=` {', '.join(DEVICES)}",
    f"`backend=` one or more, joined with commas, of {', '.join(BACKENDS)}",
    f"`precision=` one or more of {', '.join(PRECISIONS)}",
    f"`mode=` {', '.join(TESTS)}, or both",
    f"`base=` {MERGE_BASE} (the default), a commit, or a branch",
    f"`sha=` the head commit, or at least its first {SHORTEST_SHA} characters; needed on a pull request from a fork",
    "`budget=` minutes (`90`, `90m`, `1.5h`) after which no further pair is begun",
    "`pairs=` at most so many pairs of a test",
)
_SHA = re.compile(r"[0-9a-fA-F]{7,40}")
_REVISION = re.compile(r"(?!.*(?:\.\.|//|@\{))[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,199}")
_OF_PULL_REQUESTS = re.compile(r"(?:refs/)?pull/", re.IGNORECASE)
_BUDGET = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(m|min|h)?")
_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class Asked:
    """What is empty or None is left to the configuration and to the suite."""

    words: tuple[str, ...] = ()  # suite, models, globs
    device: str | None = None
    backends: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    base: str = MERGE_BASE
    sha: str | None = None  # in small letters
    budget_minutes: float | None = None
    pairs: int | None = None


def parse_asked(words: Sequence[str]) -> Asked:
    """Raises WrongUse."""
    plain, values = split_keys(words, KEYS, WORDS_HELP)
    modes = tuple(word for word in plain if word in TESTS)
    return Asked(
        words=tuple(word for word in plain if word not in TESTS),
        device=_one_of("device", values["device"], DEVICES) if "device" in values else None,
        backends=_some_of("backend", values.get("backend"), tuple(BACKENDS)),
        precisions=_some_of("precision", values.get("precision"), PRECISIONS),
        modes=tuple(dict.fromkeys((*modes, *_some_of("mode", values.get("mode"), TESTS)))),
        base=_base(values.get("base", MERGE_BASE)),
        sha=_sha(values["sha"]) if "sha" in values else None,
        budget_minutes=_budget(values["budget"]) if "budget" in values else None,
        pairs=_pairs(values["pairs"]) if "pairs" in values else None,
    )


def _one_of(key: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        close = closest(value, known)
        meant = f"did you mean `{close}`? " if close else ""
        raise WrongUse(f"`{key}=` has no {inline_code(value)}", f"{meant}It has {', '.join(known)}")
    return value


def _some_of(key: str, value: str | None, known: Sequence[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(dict.fromkeys(_one_of(key, one, known) for one in value.split(",")))


def _base(value: str) -> str:
    if _REVISION.fullmatch(value) is None:
        raise WrongUse(
            f"`base=` {inline_code(value)} is no commit and no branch", f"say {MERGE_BASE}, a commit, or a branch"
        )
    if _OF_PULL_REQUESTS.match(value):  # whoever opened it moves it at any moment, and it is built as the head is
        raise WrongUse(
            f"`base=` {inline_code(value)} is of a pull request, to which its author may push at any moment",
            "name the commit that you have looked at",
        )
    return value


def _sha(value: str) -> str:
    if _SHA.fullmatch(value) is None:
        raise WrongUse(
            f"`sha=` {inline_code(value)} is no commit",
            f"say the head commit, or at least its first {SHORTEST_SHA} characters, 0 to 9 and a to f",
        )
    return value.lower()


def _budget(value: str) -> float:
    """Minutes."""
    read = _BUDGET.fullmatch(value)
    if read is None or not float(read[1]):
        raise WrongUse(f"`budget=` {inline_code(value)} is no time", "say minutes, such as 90, 90m or 1.5h")
    return float(read[1]) * (60 if read[2] == "h" else 1)


def _pairs(value: str) -> int:
    if _COUNT.fullmatch(value) is None:
        raise WrongUse(f"`pairs=` {inline_code(value)} is no number", "say how many, such as 12")
    return int(value)
