"""Attribution of what a bisection found: the last build before a change and the first with it, profiled by turns. What
was profiled is stored with the bisection, and not profiled again; if it cannot be, the verdict stays as it is."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from baselines.store import Store
from bot.bisection.account import EXIT_CODES, Found
from bot.bisection.attributed import SHORT, Attributed, CommitFit
from bot.bisection.document import PREFIX
from bot.bisection.state import SearchState
from bot.bisection.verdict import Suspects
from bot.errors import BotError
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.profiles.difference import Touched
from torchbenchmark.profiles.fitting import TouchedFiles, ordered_by_fit
from torchbenchmark.profiles.measuring import LARGEST_SOURCE, Profiled
from torchbenchmark.profiles.touched import OPERATOR_LIST
from torchbenchmark.terminal import EXIT_REGRESSION
from torchbenchmark.yaml_files import first_problem

PAIRS = 6  # of which an operator that takes 1.3 times as long is told in nine of ten
MOST_COMMITS = 50  # of a set whose touched files are looked at
MOST_PATHS, MOST_SOURCES = 2000, 100  # of a commit: those that are matched, and those that are read
SOURCES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inl", ".metal", ".mm", ".py")


class Profiler(Protocol):
    def profile(
        self, base: str, head: str, pairs: int, out: Path, traces: Path, touched: Touched | None = None
    ) -> Profiled:
        """Both commits, profiled by turns; what a kill has left in `out` is gone on with."""


class Files(Protocol):
    """The files of commits."""

    def paths(self, commit: str) -> list[str]: ...
    def text(self, commit: str, path: str, largest: int) -> str | None: ...


@dataclass(frozen=True)
class Attributing:
    """All that it takes."""

    files: Files | None  # None: of a release or date it is not known what it touched
    store: Store
    profiler: Profiler
    folder: Path  # of pairs and traces
    tell: Callable[[str], None]

    def of(self, found: Found) -> Found:
        """What was found, with what it changed; of a merge to whose branch a change was followed that of the branch."""
        branches = tuple(self.of(one) for one in found.branches)
        if any(EXIT_CODES[one.verdict.kind] == EXIT_REGRESSION for one in branches):
            return dataclasses.replace(found, branches=branches)
        if EXIT_CODES[found.verdict.kind] != EXIT_REGRESSION:
            return found
        attributed = tuple(self._change(found, one) for one in found.verdict.suspects)
        return dataclasses.replace(found, attributed=attributed)

    def _change(self, found: Found, one: Suspects) -> Attributed:
        base, head = sides_of(found.document.search, one)
        name = f"{base[:SHORT]}-{head[:SHORT]}"
        key = f"{PREFIX}/{found.document.asked.key}/{name}.json"
        try:
            if (done := self._stored(key)) is not None:
                return done
            self.tell(f"profiling {base[:SHORT]} and {head[:SHORT]} by turns")
            return self._profiled(key, base, head, one.inseparable)
        except Exception as problem:  # also one that nobody thought of: the verdict took hours
            reason = one_line(problem if isinstance(problem, (SentinelError, OSError)) else repr(problem))
            return Attributed(base=base, head=head, reason=reason)

    def _profiled(self, key: str, base: str, head: str, commits: Sequence[str]) -> Attributed:
        touched = {}
        if self.files is not None:
            touched = {commit: touched_files(self.files, commit) for commit in commits[:MOST_COMMITS]}
        here = self.folder / f"{base[:SHORT]}-{head[:SHORT]}"
        traces = here / "traces"
        profiled = self.profiler.profile(
            base, head, PAIRS, here / "profiles.jsonl", traces, lambda names: _by_name(touched, names)
        )
        fits = [
            CommitFit(commit=fit.commit, share=fit.share, causes=dict(fit.causes))
            for fit in ordered_by_fit(profiled.attribution, touched)
        ]
        done = Attributed(
            base=base,
            head=head,
            fits=tuple(fits),
            attribution=profiled.attribution,
            traces=tuple(self._kept(key, traces)),
        )
        self.store.write_if(key, done.model_dump_json(by_alias=True, indent=1).encode() + b"\n", None)
        return done

    def _kept(self, key: str, traces: Path) -> list[str]:
        """Where the traces lie: in a store that is not of this machine, or else in the folder of work."""
        left = sorted(traces.glob("*.json.gz"))
        if "://" not in self.store.location:
            return [str(trace) for trace in left]
        keys = [f"{key.removesuffix('.json')}/{trace.name}" for trace in left]
        for name, trace in zip(keys, left, strict=True):
            self.store.create_from_file(name, trace)
        return keys

    def _stored(self, key: str) -> Attributed | None:
        content = self.store.read_if_present(key)
        if content is None:
            return None
        try:
            return Attributed.model_validate_json(content)
        except ValidationError as error:
            raise BotError(
                f"{self.store.location}: {key}: {first_problem(error)}; remove it to profile anew"
            ) from error


def sides_of(search: SearchState, one: Suspects) -> tuple[str, str]:
    """The last commit before a change that has a build, and the first from it on."""
    first, last = search.index[one.inseparable[0]], search.index[one.inseparable[-1]]
    built = [place for place, ok in search.built.items() if ok]
    before = max((place for place in built if place < first), default=0)
    after = min((place for place in built if place >= last), default=len(search.commits) - 1)
    return search.commits[before], search.commits[after]


def touched_files(files: Files, commit: str) -> TouchedFiles:
    """What a commit touched, with the texts of those files that may hold operators."""
    paths = files.paths(commit)[:MOST_PATHS]
    texts = {
        path: text
        for path in [path for path in paths if path.endswith(SOURCES)][:MOST_SOURCES]
        if (text := files.text(commit, path, LARGEST_SOURCE)) is not None
    }
    operators = files.text(commit, OPERATOR_LIST, LARGEST_SOURCE) if texts else None
    return TouchedFiles(tuple(paths), texts, operators or "")


def _by_name(touched: dict[str, TouchedFiles], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What any of the commits touched."""
    found: dict[str, dict[str, None]] = {}
    for files in touched.values():
        for name, paths in files.of(names).items():
            found.setdefault(name, {}).update(dict.fromkeys(paths))
    return {name: tuple(paths) for name, paths in found.items()}
