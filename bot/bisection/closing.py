"""What is measured after the verdict, in new pairs or runs: the culprit against its parent and, where it can be taken
back, the bad end without it against the bad end. The pairs of the search have chosen the culprit, so they flatter it;
these have chosen nothing."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.bisection.document import Compared, Desk, Document, End, Made, Visit
from bot.bisection.instruments import Instrument
from bot.bisection.outcomes import before_and_after, numbered
from bot.bisection.reverting import DoesNotApply
from bot.bisection.script import BaseCannotMeasure, CannotMeasure
from bot.bisection.verdict import Suspects, Verdict
from torchbenchmark.statistics.interval import Interval
from torchbenchmark.statistics.signed_rank import fewest_pairs, signed_rank_interval

PAIRS = 12  # as of the interval of a confirmed signal
LEVEL = 0.95


class View(Protocol):
    """Is told of what happens."""

    def building(self, document: Document, commit: str) -> None: ...
    def built(self, document: Document, made: Made) -> None: ...
    def closing(self, document: Document, one: Compared) -> None: ...
    def ran(self, document: Document) -> None: ...
    def closed(self, document: Document, one: Compared) -> None: ...


@dataclass
class Closing:
    """The comparisons after a verdict, and the document that they are stored in after every step."""

    document: Document
    desk: Desk
    instrument: Instrument
    view: View
    bad: str  # of the whole range, also where the line is a branch of it
    revert: Callable[[str], str] | None  # makes what takes another back on the bad end; raises DoesNotApply
    pairs: int = PAIRS  # of exact values `agreeing` runs, whatever this is

    def run(self, verdict: Verdict) -> Document:
        for one in sure_ones(verdict):
            (culprit,) = one.inseparable
            commits = self.document.search.commits
            parent = commits[commits.index(culprit) - 1]
            self._compare("parent", culprit, parent, lambda culprit=culprit: culprit)
            if self.revert is not None:
                taken_back = functools.partial(self._reverted, culprit, self.revert)
                self._compare("revert", culprit, self.bad, taken_back)
        return self.document

    def _reverted(self, culprit: str, revert: Callable[[str], str]) -> str:
        if culprit == self.bad:
            raise DoesNotApply("it is the bad end itself, and without it that is its parent")
        return revert(culprit)

    def _compare(self, what: str, culprit: str, base: str, make: Callable[[], str]) -> None:
        one = compared(self.document, what, culprit)
        if one is not None and one.ended:
            return
        try:
            commit = make()  # again after a kill: it is the same commit
        except DoesNotApply as error:
            self._end(Compared(what=what, culprit=culprit, base=base, reason=str(error)))
            return
        one = one or self._keep(Compared(what=what, culprit=culprit, base=base, commit=commit))
        for needed in (base, commit):
            if not self._is_built(needed):
                self._end(one.model_copy(update={"reason": f"{needed[:12]} does not build"}))
                return
        self.view.closing(self.document, one)
        try:
            one = self._measured(one)
        except CannotMeasure as error:
            one = one.model_copy(update={"reason": f"it cannot be measured: {error}", "visits": ()})
        except BaseCannotMeasure as error:
            one = one.model_copy(update={"reason": f"{base[:12]} cannot be measured: {error}", "visits": ()})
        self._end(one)

    def _is_built(self, commit: str) -> bool:
        made = next((one for one in self.document.made if one.commit == commit), None)
        if made is None:
            self.view.building(self.document, commit)
            made = self.instrument.build(commit)
            self._store(made=(*self.document.made, made))
            self.view.built(self.document, made)
        return made.ok

    def _measured(self, one: Compared) -> Compared:
        """With all its visits: pairs of both or, of what is compared exactly, runs of each."""
        exact = self.document.asked.exact
        n = self.document.search.rules.agreeing if exact else self.pairs
        for number, commit in enumerate((one.base, one.commit) if exact else (one.commit,)):
            if number == len(one.visits):
                every = len(self.document.visits) + sum(len(each.visits) for each in self.document.closing)
                one = self._keep(one.with_visit(number, Visit(number=every, commit=commit, n=n)))
            if not one.visits[number].values:
                visit = self.instrument.measure(one.base, one.visits[number], self._keeper(one, number))
                visit = numbered(self.document.visits, visit) if exact else visit
                one = self._keep(one.with_visit(number, visit))
        return one

    def _keeper(self, one: Compared, number: int) -> Callable[[Visit], None]:
        def keep(visit: Visit) -> None:
            self._keep(one.with_visit(number, visit))
            self.view.ran(self.document)

        return keep

    def _end(self, one: Compared) -> None:
        self._keep(one.model_copy(update={"ended": True}))
        self.view.closed(self.document, one)

    def _keep(self, one: Compared) -> Compared:
        others = tuple(each for each in self.document.closing if (each.what, each.culprit) != (one.what, one.culprit))
        self._store(closing=(*others, one))
        return one

    def _store(self, **changed: object) -> None:
        self.document = self.desk.write(self.document.model_copy(update=changed))


def sure_ones(verdict: Verdict) -> list[Suspects]:
    """The changes that lie at one commit, certainly or likely."""
    return [one for one in verdict.suspects if len(one.inseparable) == 1 and one.certainty != "open"]


def compared(document: Document, what: str, culprit: str) -> Compared | None:
    return next((one for one in document.closing if (one.what, one.culprit) == (what, culprit)), None)


def closing_of(document: Document, suspect: Suspects) -> dict[str, Compared]:
    """What was measured for a change after the verdict, by what it is."""
    found = {one.what: one for one in document.closing if suspect.inseparable == (one.culprit,) and one.ended}
    return {what: found[what] for what in ("parent", "revert") if what in found}


def interval(one: Compared) -> Interval | None:
    """Of the log ratios; None where there are none, or too few for an interval."""
    values = one.visits[0].values if one.visits else ()
    return signed_rank_interval(values, LEVEL) if len(values) >= fewest_pairs(LEVEL) else None


def outcomes(one: Compared) -> tuple[Sequence[End], Sequence[End]] | None:
    """Of what is compared exactly, the runs of either side."""
    return (one.visits[0].ends, one.visits[1].ends) if len(one.visits) == 2 else None


def shows(document: Document, suspect: Suspects, one: Compared) -> bool | None:
    """Whether a comparison with the parent shows the change; None where it says nothing."""
    if document.asked.exact:
        again = outcomes(one)
        if again is None:
            return None
        return [_settled(ends) for ends in again] == [_settled(ends) for ends in before_and_after(document, suspect)]
    return _lies(one, above=suspect.step > 0)


def takes_back(document: Document, suspect: Suspects, one: Compared) -> bool | None:
    """Whether the bad end without the culprit is without the change; None where that was not measured, or where the
    interval holds both nothing and half of the change."""
    if document.asked.exact:
        again = outcomes(one)
        return None if again is None else _settled(again[0]) != _settled(again[1])
    found = interval(one)
    if found is None or _lies(one, above=suspect.step < 0):
        return None if found is None else True
    half = -suspect.step / 2
    return None if found.low <= half <= found.high else False


def _lies(one: Compared, *, above: bool) -> bool | None:
    """Whether the interval lies above 0, or below it."""
    found = interval(one)
    if found is None:
        return None
    return found.low > 0 if above else found.high < 0


def checked(document: Document, verdict: Verdict) -> Verdict:
    """The verdict, less certain where the closing comparison does not show a change."""
    suspects = []
    for one in verdict.suspects:
        parent = closing_of(document, one).get("parent")
        contradicted = parent is not None and shows(document, one, parent) is False
        suspects.append(dataclasses.replace(one, certainty="likely") if contradicted else one)
    return dataclasses.replace(verdict, suspects=tuple(suspects))


def _settled(ends: Sequence[End]) -> set[str]:
    return {end.outcome for end in ends}
