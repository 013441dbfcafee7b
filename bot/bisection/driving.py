"""Takes a search from step to step: asks it what to do, has that done, and stores what came of it before the next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bot.bisection.document import Asked, Compared, Desk, Document, Made, Visit, known_seconds
from bot.bisection.instruments import Instrument
from bot.bisection.outcomes import numbered
from bot.bisection.script import BaseCannotMeasure, CannotMeasure
from bot.bisection.search import Build, Done, Probe, next_step
from bot.bisection.state import Rules, new_search, with_build, with_probes
from bot.bisection.verdict import Verdict
from bot.errors import BotError
from torchbenchmark.environment import cpu_model

REHEARSAL = 8  # pairs of the good end against itself, which say how noisy a pair is
# By the root mean square of all but the largest of eight the sd of normal numbers (simulated); one may be wild.
TRIMMED = 1.293
LEAST_PAIR_SD = 0.001  # also of a command that always prints the same: what builds share is never nothing
LEAST_BUILD_SD = 0.001  # where code came to lie, the length of a path
LEAST_EFFECT = 0.01  # that is looked for unless something else is said
COSTS = (2.0, 200.0)  # of an attempt to build, in pairs


class View:
    """Is told of what happens. Whoever shows it overrides what it shows."""

    def going_on(self, document: Document) -> None: ...
    def building(self, document: Document, commit: str) -> None: ...
    def built(self, document: Document, made: Made) -> None: ...
    def measuring(self, document: Document, visit: Visit) -> None: ...
    def ran(self, document: Document) -> None: ...
    def measured(self, document: Document, visit: Visit) -> None: ...
    def left_out(self, document: Document, commit: str, reason: str) -> None: ...
    def closing(self, document: Document, one: Compared) -> None: ...
    def closed(self, document: Document, one: Compared) -> None: ...


@dataclass
class Ended:
    """A line of commits that was searched to its end."""

    document: Document
    verdict: Verdict


class Bisecting:
    """One line of commits, and where its document lies."""

    def __init__(
        self,
        asked: Asked,
        line: Sequence[str],
        desk: Desk,
        instrument: Instrument,
        view: View,
        weights: Sequence[float] = (),
        environment: Sequence[str] = (),
    ) -> None:
        """Of a bisection that is not stored yet, `weights` is its prior (paths.py), and `environment` what differs
        beside the build."""
        self.desk = desk
        self.instrument = instrument
        self.view = view
        stored = desk.read()
        if stored is None:
            self.document = desk.write(begun(asked, line, cpu_model(), weights, environment))
        else:
            if stored.search.commits != tuple(line) or stored.asked != asked:
                raise BotError(f"{desk.where}: is a bisection of something else; remove it, or name another --store")
            if stored.machine != cpu_model():
                raise BotError(
                    f"{desk.where}: was begun on a machine with {stored.machine}, and this one has {cpu_model()}: "
                    "their pairs are not added up; go on there, or name another --store"
                )
            self.document = stored
            view.going_on(stored)

    def run(self) -> Ended:
        """To the verdict."""
        while True:
            match next_step(self.document.search):
                case Done(verdict):
                    return Ended(self.document, verdict)
                case Build(commit):
                    self._build(commit)
                case Probe(commit, n):
                    if self.document.rehearsed or self.document.asked.exact:
                        self._visit(commit, n)
                    else:
                        self._rehearse()

    def take(self, made: Made) -> None:
        """What was built elsewhere, before it is asked for."""
        self._store(**with_made(self.document, made))

    def _build(self, commit: str) -> None:
        self.view.building(self.document, commit)
        made = self.instrument.build(commit)
        reason = self._same_as_before(made) if made.ok else ""
        self._store(**with_made(self.document, made, left_out=reason))
        self.view.built(self.document, made)
        if reason:
            self.view.left_out(self.document, commit, reason)

    def _same_as_before(self, made: Made) -> str:
        """Why a build between the ends is not measured: it is made of the same commit as one that is there."""
        search = self.document.search
        if not made.source or made.commit in (search.good, search.bad):
            return ""
        same = [one.commit for one in self.document.made if one.ok and one.source == made.source]
        return f"it is made of the same commit as {same[0]}, {made.source[:12]}" if same else ""

    def _rehearse(self) -> None:
        """The good end against itself, and what follows from it for the search."""
        visit = self._measured(self.document.search.good, REHEARSAL)
        self._store(**rehearsed(self._with(visit)))
        self.view.measured(self.document, visit)

    def _visit(self, commit: str, n: int) -> None:
        search = self.document.search
        try:
            visit = self._measured(commit, n)
        except CannotMeasure as error:
            if search.index[commit] in search.measured:
                raise BotError(f"{commit[:12]} was measured before, and now cannot be: {error}") from error
            reason = f"it cannot be measured: {error}"
            self._store(visits=self.document.visits[:-1], search=with_build(search, commit, ok=False, reason=reason))
            self.view.left_out(self.document, commit, reason)
            return
        self._store(visits=self._with(visit).visits, search=with_probes(search, commit, visit.values))
        self.view.measured(self.document, visit)

    def _measured(self, commit: str, n: int) -> Visit:
        """The visit that is open, or a new one, to its end."""
        visit = self.document.open_visit
        if visit is None:
            visit = Visit(number=len(self.document.visits), commit=commit, n=n)
            self._store(visits=(*self.document.visits, visit))
        elif visit.commit != commit:
            raise BotError(f"{self.desk.where}: has begun pairs of {visit.commit[:12]}, and the search asks for others")
        self.view.measuring(self.document, visit)

        def keep(going_on: Visit) -> None:
            self._store(visits=self._with(going_on).visits)
            self.view.ran(self.document)

        good = self.document.search.good
        try:
            measured = self.instrument.measure(good, visit, keep)
        except BaseCannotMeasure as error:
            raise BotError(f"the good end {good[:12]} cannot be measured: {error}") from error
        return numbered(self.document.visits[:-1], measured) if self.document.asked.exact else measured

    def _with(self, visit: Visit) -> Document:
        return self.document.model_copy(update={"visits": (*self.document.visits[:-1], visit)})

    def _store(self, **changed: Any) -> None:
        self.document = self.desk.write(self.document.model_copy(update=changed))


def begun(
    asked: Asked, line: Sequence[str], machine: str, weights: Sequence[float] = (), environment: Sequence[str] = ()
) -> Document:
    """A bisection that knows nothing yet."""
    rules = Rules(pair_sd=LEAST_EFFECT, most_attempts=asked.most_builds, most_probes=asked.most_pairs)
    what: Literal["exact", "times"] = "exact" if asked.exact else "times"
    search = new_search(line, rules, weights=weights, environment=environment, what=what)
    return Document(asked=asked, machine=machine, search=search)


def with_made(document: Document, made: Made, left_out: str = "") -> dict[str, Any]:
    """What an attempt to build changes; `left_out` is why a build that came of it is not measured."""
    ok, reason = made.ok and not left_out, left_out or made.reason
    search = with_build(document.search, made.commit, ok=ok, reason=reason)
    return {"made": (*document.made, made), "search": search}


def rehearsed(document: Document) -> dict[str, Any]:
    """What the first visit changes, which is in the document already: how the range is searched."""
    build_s, pair_s = known_seconds(document.made, document.visits)
    rules = rules_of(document.asked, document.visits[0].values, build_s, pair_s)
    return {"visits": document.visits, "search": document.search.model_copy(update={"rules": rules})}


def rules_of(asked: Asked, rehearsal: Sequence[float], build_s: float | None, pair_s: float | None) -> Rules:
    """How a range is searched whose good end gave these log ratios against itself."""
    smallest = np.sort(np.abs(np.asarray(rehearsal)))[:-1]
    spread = TRIMMED * float(np.sqrt(np.mean(smallest**2))) if len(smallest) else 0.0
    pair_sd = max(spread, LEAST_PAIR_SD)
    cost = build_s / pair_s if build_s is not None and pair_s else COSTS[1]
    return Rules(
        pair_sd=pair_sd,
        shared_sd=max(0.2 * pair_sd, LEAST_BUILD_SD),
        smallest_effect=math.log1p(asked.beyond) if asked.beyond is not None else max(pair_sd, LEAST_EFFECT),
        build_cost=float(np.clip(cost, *COSTS)),
        most_attempts=asked.most_builds,
        most_probes=asked.most_pairs,
    )
