"""What a bisection knows: its range and rules, what was tried to be built, and what was measured, in order.

Everything else is worked out of it. A caller stores it after every step; a search that goes on from a stored state
takes the same steps as one that was never killed.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from bot.errors import BotError
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
MOST_COMMITS = 20_000
LARGEST = 1e100  # of a number that was measured: its square is still one

Positive = Annotated[float, Field(gt=0, lt=LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Measurement = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST)]
Weight = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=300)]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Rules(_Schema):
    """How a range is searched. Effects are log ratios against the good end: .01 is 1 % slower."""

    pair_sd: Positive  # of one zygote pair, as it is known from A/A or from confirming
    shared_sd: Annotated[float, Field(ge=0, lt=LARGEST, allow_inf_nan=False)] | None = None  # see `build_sd`
    smallest_effect: Positive | None = None  # the smallest that is looked for; None: one pair_sd
    nothing: Share = 0.2  # the chance, before all measuring, that the ends are equal
    further: Positive = 0.2  # changes that a range is expected to hold, beside the first
    sure: Share = 0.99  # the search ends here: "culprit"
    likely: Share = 0.95  # what is told as "likely" where the search ends earlier; the mass of a credible set
    end_probes: Count = 6  # of the bad end, before anything else is measured
    most_end_probes: Count = 40  # of the bad end, to find out whether there is a change at all
    first_visit: Count = 3  # pairs, when a commit has just been built
    again: Count = 2  # pairs, when a commit is visited again
    ends_every: Count = 4  # batches, after which an end is measured again
    agreeing: Count = 3  # exact values: runs that must agree
    build_cost: Positive = 20.0  # of an attempt, in pairs
    most_attempts: Count | None = None  # None: by the length of the range
    most_probes: Count | None = None

    @property
    def build_sd(self) -> float:
        """What all pairs of a build share, such as where its code came to lie; more pairs do not average it away."""
        return 0.2 * self.pair_sd if self.shared_sd is None else self.shared_sd

    @property
    def smallest(self) -> float:
        return self.pair_sd if self.smallest_effect is None else self.smallest_effect

    @model_validator(mode="after")
    def _levels_in_order(self) -> Self:
        if self.likely > self.sure:
            raise ValueError(f"likely is {self.likely:g}, which is more than sure, {self.sure:g}")
        return self


class Attempt(_Schema):
    """A commit that was tried to be built. Also one that was built and then could not be measured has ok = false."""

    commit: Name
    ok: bool
    reason: str = ""


class Batch(_Schema):
    """What the pairs of one visit to a commit gave: log ratios against the good end, or exact values."""

    commit: Name
    values: Annotated[tuple[Measurement, ...], Field(min_length=1)]


class SearchState(_Schema):
    """A bisection, as far as it has got."""

    kind: Literal["bisection"] = "bisection"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    nonce: str = ""  # of the last writer: no two writes have the same bytes
    what: Literal["times", "exact"] = "times"
    commits: Annotated[
        tuple[Name, ...], Field(min_length=2, max_length=MOST_COMMITS)
    ]  # from the good end to the bad one
    weights: tuple[Weight, ...] = ()  # of each commit after the good end, before all measuring; empty: alike
    environment: tuple[str, ...] = ()  # what differs between the two nights beside the build, as sentences
    rules: Rules
    attempts: tuple[Attempt, ...] = ()
    batches: tuple[Batch, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.index) != len(self.commits):
            twice = next(one for place, one in enumerate(self.commits) if self.index[one] != place)
            raise ValueError(f"commits: {twice} is in the range twice")
        if self.weights and len(self.weights) != len(self.commits) - 1:
            raise ValueError(
                f"weights: there are {len(self.weights)} for {len(self.commits) - 1} commits after the good end"
            )
        built: dict[str, bool] = {}
        measured = {batch.commit for batch in self.batches}
        for attempt in self.attempts:
            if attempt.commit not in self.index:
                raise ValueError(f"attempts: {attempt.commit} is not in the range")
            if attempt.commit in built and (attempt.ok or not built[attempt.commit]):
                raise ValueError(f"attempts: {attempt.commit} was tried before")
            built[attempt.commit] = attempt.ok
        for commit in measured:
            if not built.get(commit, False):
                raise ValueError(f"batches: {commit} was measured and not built")
        return self

    @cached_property
    def index(self) -> dict[str, int]:
        """The place of each commit; the good end is 0."""
        return {commit: place for place, commit in enumerate(self.commits)}

    @property
    def good(self) -> str:
        return self.commits[0]

    @property
    def bad(self) -> str:
        return self.commits[-1]

    @cached_property
    def built(self) -> dict[int, bool]:
        """Places that were tried: whether a build came of it that can be measured."""
        return {self.index[attempt.commit]: attempt.ok for attempt in self.attempts}

    @cached_property
    def measured(self) -> dict[int, tuple[float, ...]]:
        """All values by place, in the order of the commits."""
        found: dict[int, tuple[float, ...]] = {}
        for batch in self.batches:
            place = self.index[batch.commit]
            found[place] = found.get(place, ()) + batch.values
        return dict(sorted(found.items()))

    @property
    def probes(self) -> int:
        return sum(len(batch.values) for batch in self.batches)


def new_search(
    commits: Sequence[str],
    rules: Rules,
    *,
    weights: Sequence[float] = (),
    environment: Sequence[str] = (),
    what: Literal["times", "exact"] = "times",
) -> SearchState:
    """A search that knows nothing yet. `commits` begins with the good end and ends with the bad one."""
    try:
        return SearchState(
            commits=tuple(commits), rules=rules, weights=tuple(weights), environment=tuple(environment), what=what
        )
    except ValidationError as error:
        raise BotError(f"bisection: {first_problem(error)}") from error


def with_build(state: SearchState, commit: str, *, ok: bool, reason: str = "") -> SearchState:
    """The state after an attempt to build a commit. Raises BotError for a commit that was tried before.

    A commit that was built, but cannot be measured, may be told of once more, with ok = False, before it is measured.
    """
    place = _place(state, commit)
    before = state.built.get(place)
    if before is not None and (ok or not before):
        raise BotError(f"bisection: {commit} was tried before, and {'was built' if before else 'does not build'}")
    if before and place in state.measured:
        raise BotError(f"bisection: {commit} was measured already; it is not taken back")
    return _copy(state, attempts=(*state.attempts, Attempt(commit=commit, ok=ok, reason=reason)))


def with_probes(state: SearchState, commit: str, log_ratios: Sequence[float]) -> SearchState:
    """The state after a visit to a built commit: ln(commit / good end) of each pair, or what each run counted.

    Raises BotError if nothing was measured, or something that is no finite number.
    """
    place = _place(state, commit)
    if not state.built.get(place, False):
        raise BotError(f"bisection: {commit} was measured, but not built")
    values = tuple(float(value) for value in log_ratios)
    if not values:
        raise BotError(f"bisection: {commit}: nothing was measured; where nothing can be, tell with_build(ok=False)")
    for number, value in enumerate(values, 1):
        if not math.isfinite(value) or abs(value) > LARGEST:
            raise BotError(
                f"bisection: {commit}: pair {number} of {len(values)} gave {value}, which is no finite number"
            )
    return _copy(state, batches=(*state.batches, Batch(commit=commit, values=values)))


def encoded(state: SearchState) -> bytes:
    """The state as JSON, numbers to the last digit."""
    return state.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def decoded(content: bytes, where: str) -> SearchState:
    """A stored state. Raises BotError, which names the place and the key, for one that cannot be gone on with."""
    try:
        return SearchState.model_validate_json(content)
    except ValidationError as error:
        raise BotError(
            f"{where}: {first_problem(error)}; mend it, or remove it to start this bisection anew"
        ) from error


def _place(state: SearchState, commit: str) -> int:
    place = state.index.get(commit)
    if place is None:
        raise BotError(f"bisection: {commit} is not in the range {state.good} .. {state.bad}")
    return place


def _copy(state: SearchState, **changed: object) -> SearchState:
    """A checked change of a checked state: of a long search not everything is checked again at each step."""
    values = {name: getattr(state, name) for name in SearchState.model_fields}
    return SearchState.model_construct(**{**values, **changed})
