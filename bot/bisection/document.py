"""A bisection of commits as it is stored: what was asked for, what was built and run, and the search so far.

It is written conditionally after every step and after every run of a visit. Whoever goes on reads it and does what is
lacking; a second writer is refused, as two that take turns would each undo the other's.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.store import Store
from bot.bisection.state import SearchState
from bot.errors import BotError
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
PREFIX = "bisections"
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SideName = Literal["good", "commit"]
Noun = Literal["commit", "version", "date"]  # what a range is of


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Asked(_Schema):
    """All that makes two bisections the same: the same again goes on."""

    good: str
    bad: str
    build: str | None = None
    measure: str | None = None
    higher_is_better: bool = False
    tests: tuple[str, ...] = ()
    suite: str = ""
    device: str = ""
    channel: str = ""
    subject: str = ""
    threads: int | None = None
    budget_s: float | None = None
    builds: str = ""  # digest of how builds are made, and of the folders of models
    beyond: float | None = None
    most_builds: int | None = None
    most_pairs: int | None = None
    prior: Literal["flat", "paths"] = "flat"
    compared: Literal["times", "counts", "status"] = "times"  # counts and statuses exactly, by runs that agree
    noun: Noun = "commit"
    package: str = ""  # of versions
    pre: bool = False  # pre-releases too
    wheels: str = ""  # of dates: their address
    folder: str = ""  # where the measuring command of versions and dates runs
    again: str = ""  # which verdict on an alert is not to be taken: then nothing is taken from before it

    @property
    def exact(self) -> bool:
        return self.compared != "times"

    @property
    def unit(self) -> str:
        """What a commit is measured by."""
        return "run" if self.exact else "pair"

    @property
    def key(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


class Made(_Schema):
    """An attempt to build a commit."""

    commit: str
    ok: bool
    reason: str = ""
    log: str = ""  # of a failed one: where its whole log lies, on the machine that tried
    lines: tuple[str, ...] = ()  # the last of it
    source: str = ""  # of a date: the commit that its wheel says it was made of
    seconds: NonNegative = 0.0


class SideRun(_Schema):
    """One side of a pair: one run of the measuring command. Two that follow each other are a pair, in their order."""

    side: SideName
    value: float
    seconds: NonNegative


class End(_Schema):
    """What one run came to that is compared exactly."""

    outcome: str  # a status, a count, ...: two runs agree where this is the same
    why: str = ""  # of a failure; foreign text, and not compared
    seconds: NonNegative


class Visit(_Schema):
    """Pairs of a commit against the good end that were asked for at once; of what is compared exactly, runs of it."""

    number: int
    commit: str
    n: int
    runs: tuple[SideRun, ...] = ()  # empty where a file of pairs holds them
    ends: tuple[End, ...] = ()  # of what is compared exactly
    seconds: NonNegative = 0.0
    # Log ratios, positive where the commit is worse, or the numbers of outcomes; empty until all are there.
    values: tuple[float, ...] = ()


class Compared(_Schema):
    """Two builds that are held against each other after the verdict (closing.py)."""

    what: Literal["parent", "revert"]
    culprit: str
    base: str  # its parent, or the bad end
    commit: str = ""  # the culprit, or the commit that takes it back on the bad end; empty where there is none
    reason: str = ""  # why there is nothing measured
    visits: tuple[Visit, ...] = ()  # one of pairs; of what is compared exactly, runs of `base` and of `commit`
    ended: bool = False

    def with_visit(self, number: int, visit: Visit) -> Self:
        return self.model_copy(update={"visits": (*self.visits[:number], visit)})


class Document(_Schema):
    """The stored object."""

    kind: Literal["bisection of commits"] = "bisection of commits"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nonce: str = ""  # of the last writer
    asked: Asked
    machine: str = ""  # the model of its CPU: pairs of two kinds of machines are not added up
    made: tuple[Made, ...] = ()
    visits: tuple[Visit, ...] = ()  # the first pairs are of the good end against itself; the last visit may be open
    search: SearchState
    closing: tuple[Compared, ...] = ()  # what was measured after the verdict

    @property
    def all_visits(self) -> tuple[Visit, ...]:
        """Those of the search, and those after it."""
        return (*self.visits, *(visit for one in self.closing for visit in one.visits))

    @property
    def open_visit(self) -> Visit | None:
        return self.visits[-1] if self.visits and not self.visits[-1].values else None

    @property
    def rehearsed(self) -> bool:
        """Whether the good end was measured against itself."""
        return bool(self.visits and self.visits[0].values)


class Desk:
    """The document of one line of commits in a store, and the only hand that may write it."""

    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.key = f"{PREFIX}/{key}.json"
        self.version: str | None = None

    @property
    def where(self) -> str:
        return f"{self.store.location}: {self.key}"

    def read(self) -> Document | None:
        """What is stored. Raises BotError if that cannot be gone on with."""
        stored = self.store.read_versioned(self.key)
        if stored is None:
            return None
        self.version = stored.version
        try:
            return Document.model_validate_json(stored.content)
        except ValidationError as error:
            raise BotError(
                f"{self.where}: {first_problem(error)}; mend it, or remove it to start this bisection anew"
            ) from error

    def write(self, document: Document) -> Document:
        """Store a document in place of the one that was read or written last. Raises BotError if another has been."""
        document = document.model_copy(update={"nonce": secrets.token_hex(8)})
        content = document.model_dump_json(by_alias=True, indent=1).encode() + b"\n"
        won = self.store.write_if(self.key, content, self.version)
        stored = self.store.read_versioned(self.key)
        if stored is None or (stored.content != content):
            raise BotError(
                f"{self.where}: another process has written this bisection meanwhile; let it go on alone (what is "
                "stored is whole, and the same command goes on from there)"
            )
        del won  # an answer that was lost and a repeated write look alike: what is stored decides
        self.version = stored.version
        return document


def known_seconds(made: Sequence[Made], visits: Sequence[Visit]) -> tuple[float | None, float | None]:
    """Mean seconds of a build and of a pair, as far as there were any."""
    builds = [one.seconds for one in made]
    pairs = [(visit.seconds, visit.n) for visit in visits if visit.values]
    total = sum(n for _, n in pairs)
    return (
        sum(builds) / len(builds) if builds else None,
        sum(seconds for seconds, _ in pairs) / total if total else None,
    )
