"""A whole bisection: the range of first parents and, where its culprit is a merge, each branch that came in with it."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from baselines.store import Store
from bot.bisection.account import Found
from bot.bisection.closing import PAIRS, Closing, checked
from bot.bisection.document import Asked, Desk
from bot.bisection.driving import Bisecting, View
from bot.bisection.instruments import Instrument
from bot.bisection.paths import weights_of
from bot.bisection.ranges import Range
from bot.errors import BotError

DEEPEST = 5  # merges within merges that are followed
MOST_FACTS = 20  # commits of a set that are looked up


class Revert(Protocol):
    """Makes the commit that takes a culprit back on top of the bad end (reverting.py)."""

    def __call__(self, bad: str, culprit: str, *, merge: bool) -> str: ...


@dataclass(frozen=True)
class Whole:
    """All that a bisection needs, whichever line it is at."""

    asked: Asked
    range: Range
    store: Store
    instrument: Instrument
    view: View
    revert: Revert | None  # where builds are made of commits
    closing_pairs: int = PAIRS  # after a verdict; 0: none
    environment: tuple[str, ...] = ()  # what differs between the two nights beside the build, as sentences

    def run(self) -> Found:
        return self._line(self.range.line, self.asked.key, 0)

    def _line(self, line: Sequence[str], key: str, depth: int) -> Found:
        weights = weights_of(line[1:], self.range.touched(line)) if self.asked.prior == "paths" else ()
        desk = Desk(self.store, key)
        ended = Bisecting(self.asked, line, desk, self.instrument, self.view, weights, self.environment).run()
        document = ended.document
        if self.closing_pairs:
            revert = self._reverted if self.revert is not None else None
            closing = Closing(document, desk, self.instrument, self.view, self.range.bad, revert, self.closing_pairs)
            document = closing.run(ended.verdict)
        verdict = checked(document, ended.verdict)
        suspects = [commit for one in verdict.suspects for commit in one.inseparable]
        found = Found(
            document,
            verdict,
            self.range.subjects,
            {commit: self.range.facts(commit) for commit in suspects[:MOST_FACTS]},
            follow_ups=tuple(filter(None, (self.range.follow_up(one.inseparable) for one in ended.verdict.suspects))),
        )
        if verdict.kind != "culprit" or depth >= DEEPEST:
            return found
        branches = [
            self._line(branch, f"{self.asked.key}-{branch[-1][:12]}", depth + 1)
            for branch in self.range.branches(suspects[0])
        ]
        return replace(found, branches=tuple(branches))

    def _reverted(self, culprit: str) -> str:
        assert self.revert is not None
        return self.revert(self.range.bad, culprit, merge=self.range.is_merge(culprit))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """The checkouts and scratch files of a bisection belong to one process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "ab")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BotError(f"{folder}: cannot be written: {error.strerror}; name another folder with --work") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BotError(f"{folder}: another process is at this bisection; wait for it, or end it") from error
        yield
