"""A whole bisection: the range of first parents and, where its culprit is a merge, each branch that came in with it."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from baselines.store import Store
from bot.bisection.account import Found
from bot.bisection.document import Asked, Desk
from bot.bisection.driving import Bisecting, View
from bot.bisection.instruments import Instrument
from bot.bisection.ranges import Range
from bot.errors import BotError

DEEPEST = 5  # merges within merges that are followed
MOST_FACTS = 20  # commits of a set that are looked up


@dataclass(frozen=True)
class Whole:
    """All that a bisection needs, whichever line it is at."""

    asked: Asked
    range: Range
    store: Store
    instrument: Instrument
    view: View

    def run(self) -> Found:
        return self._line(self.range.line, self.asked.key, 0)

    def _line(self, line: Sequence[str], key: str, depth: int) -> Found:
        ended = Bisecting(self.asked, line, Desk(self.store, key), self.instrument, self.view).run()
        suspects = [commit for one in ended.verdict.suspects for commit in one.inseparable]
        found = Found(
            ended.document,
            ended.verdict,
            self.range.subjects,
            {commit: self.range.facts(commit) for commit in suspects[:MOST_FACTS]},
            follow_ups=tuple(filter(None, (self.range.follow_up(one.inseparable) for one in ended.verdict.suspects))),
        )
        if ended.verdict.kind != "culprit" or depth >= DEEPEST:
            return found
        branches = [
            self._line(branch, f"{self.asked.key}-{branch[-1][:12]}", depth + 1)
            for branch in self.range.branches(suspects[0])
        ]
        return replace(found, branches=tuple(branches))


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
