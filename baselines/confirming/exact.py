"""Status and count changes: no statistics, but fresh processes of both builds, which agree or do not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from baselines.confirming.bench import Ended
from baselines.confirming.exact_measured import ExactKind, ExactMeasured, ExactVerdict
from baselines.confirming.seen import SeriesKey
from baselines.confirming.state import Failing, name_of
from baselines.confirming.tonight import WAITING_NIGHTS, Tonight
from torchbenchmark.records import Status

_FIRST: tuple[ExactKind, ...] = ("newly failing", "fixed", "count change")


@dataclass(frozen=True)
class ExactChange:
    """What is not what it was, and need not be estimated: how a test ends, or a count of it."""

    test: str
    kind: ExactKind
    bases: tuple[tuple[datetime, str], ...]  # nights that were as before and their builds, the newest first
    channel: str = ""  # of a count
    counted: float | None = None  # by the night

    @property
    def key(self) -> SeriesKey:
        return SeriesKey(self.test, self.channel)


def ask_exact(tonight: Tonight, changes: Sequence[ExactChange]) -> None:
    """Ask fresh processes of tonight's build, and where all of them agree those of the last good build.

    A count that is still what an earlier night confirmed, as it is while an alert is open, is no news. Failures come
    first, and of very many changes the last are not asked. A count that was flaky rests, as a suspect that was nothing.
    """
    _rest_a_night(tonight)
    known = tonight.state.counts
    tonight.state.counts = {
        name: known[name] for one in changes if _is_known(one, known) for name in [name_of(one.key)]
    }
    changes = [one for one in changes if not _is_known(one, known)]
    asked = _asked(tonight, changes)
    head = tonight.seen.builds[-1]
    now = _measured(tonight, asked, head)
    bases = {one: base for one in asked if _changed(now[one.test], one) and (base := _base(tonight, one, head))}
    before: dict[ExactChange, Sequence[Ended]] = {}
    for build in sorted({build for _, build in bases.values()} - {head}):
        ones = [one for one, base in bases.items() if base[1] == build]
        measured = _measured(tonight, ones, build)
        before |= {one: _telling(measured[one.test], one) for one in ones}
    for one in sorted(changes, key=_order):
        if one in asked:
            _conclude(tonight, one, now[one.test], before.get(one, ()), bases.get(one))
        else:
            _keep(tonight, one, ExactMeasured(test=one.test, channel=one.channel, kind=one.kind, verdict="not asked"))


def _is_known(one: ExactChange, known: Mapping[str, float]) -> bool:
    return one.counted is not None and known.get(name_of(one.key)) == one.counted


def _order(one: ExactChange) -> tuple[int, str, str]:
    return _FIRST.index(one.kind), one.test, one.channel


def _rest_a_night(tonight: Tonight) -> None:
    """A failure that is not settled waits until the test ends well, once it has waited long: one that fails all the
    time, or that no night had for a while, would be nobody's news when it fails again, and never be filed. Of a test
    that no night has had as far back as one looks nothing waits."""
    state, seen = tonight.state, tonight.seen
    state.flaky = {name: nights - 1 for name, nights in state.flaky.items() if nights > 1}
    known = {key.test for key in seen.series}
    ended_well = {key.test for key, there in zip(seen.series, seen.there, strict=True) if there}
    state.failing = {
        test: one
        for test, one in state.failing.items()
        if tonight.nights_since(one.since) <= WAITING_NIGHTS or test in known - ended_well
    }


def _asked(tonight: Tonight, changes: Sequence[ExactChange]) -> list[ExactChange]:
    """The changes of so many tests as a night may ask; those of one test share its processes."""
    found: list[ExactChange] = []
    tests: set[str] = set()
    for one in sorted(changes, key=_order):
        if name_of(one.key) in tonight.state.flaky:
            continue
        if one.test in tests or len(tests) < tonight.rules.exact_tests:
            tests.add(one.test)
            found.append(one)
    return found


def _measured(tonight: Tonight, changes: Iterable[ExactChange], build: str) -> Mapping[str, Sequence[Ended]]:
    tests = list(dict.fromkeys(one.test for one in changes))
    if not tests:
        return {}
    found = tonight.bench.one_by_one(tests, build, tonight.rules.exact_processes)
    tonight.outcome.exact_processes += sum(map(len, found.values()))
    return found


def _base(tonight: Tonight, one: ExactChange, head: str) -> tuple[datetime, str] | None:
    """The newest night that was as before and whose build can be had, or is tonight's."""
    return next((base for base in one.bases if base[1] == head or tonight.bench.has(base[1])), None)


def _changed(now: Sequence[Ended], one: ExactChange) -> bool:
    """Whether all processes of tonight's build are as the night was: all fail, all end ok, or all count the same."""
    if one.kind == "newly failing":
        return bool(now) and all(each.status.failed for each in now)
    if one.kind == "fixed":
        return bool(now) and all(each.status is Status.OK for each in now)
    return _counts_alike(now, one)


def _counts_alike(ended: Sequence[Ended], one: ExactChange) -> bool:
    return len({each.values.get(one.channel) for each in ended}) == 1 and one.channel in ended[0].values


def _telling(ended: Sequence[Ended], one: ExactChange) -> Sequence[Ended]:
    """The processes of the build from before, if they can be held against: of a build that does not run the test here,
    or that counts nothing by now, nothing follows."""
    if one.kind != "count change":
        return [each for each in ended if not each.status.expected]
    return ended if any(one.channel in each.values for each in ended) else ()


def _verdict(
    now: Sequence[Ended], before: Sequence[Ended], one: ExactChange, base: tuple[datetime, str] | None, head: str
) -> ExactVerdict:
    if not _changed(now, one):
        return "flaky"
    if base is None:
        return "without base"
    if not before:
        return "not the build" if base[1] == head else "without base"
    if one.kind == "count change":
        if not _counts_alike(before, one):
            return "flaky"
        return "not the build" if before[0].values[one.channel] == now[0].values[one.channel] else "confirmed"
    failed = sum(each.status.failed for each in before)
    if failed not in (0, len(before)):
        return "flaky"
    return "confirmed" if (failed == 0) == (one.kind == "newly failing") else "not the build"


def _ends(ended: Sequence[Ended], one: ExactChange) -> tuple[str, ...]:
    """How each process ended, or what it counted."""
    return tuple(
        f"{each.values[one.channel]:.12g}" if one.channel in each.values else str(each.status) for each in ended
    )


def _conclude(
    tonight: Tonight,
    one: ExactChange,
    now: Sequence[Ended],
    before: Sequence[Ended],
    base: tuple[datetime, str] | None,
) -> None:
    verdict = _verdict(now, before, one, base, tonight.seen.builds[-1])
    accounts = tonight.state.accounts
    accounts.exact_asked += 1
    accounts.exact_confirmed += verdict == "confirmed"
    accounts.exact_flaky += verdict == "flaky"
    if verdict == "confirmed" and one.counted is not None:
        tonight.state.counts[name_of(one.key)] = one.counted
    if one.channel and verdict in ("flaky", "not the build"):
        tonight.state.flaky[name_of(one.key)] = tonight.rules.rests[-1]
    measured = ExactMeasured(
        test=one.test,
        channel=one.channel,
        kind=one.kind,
        verdict=verdict,
        base=base[0] if base and before else None,
        before=_ends(before, one),
        tonight=_ends(now, one),
    )
    _keep(tonight, one, measured)


def _keep(tonight: Tonight, one: ExactChange, measured: ExactMeasured) -> None:
    """What failed and is not settled is asked again when it fails on another night."""
    settled = measured.verdict == "confirmed"
    if one.kind == "newly failing":
        known = tonight.state.failing.pop(one.test, Failing(since=tonight.seen.tonight))
        known = Failing(since=known.since, nights=known.nights + measured.stands)
        settled = measured.stands and known.nights >= tonight.rules.failing_nights_of(one.test)
        if not settled:
            tonight.state.failing[one.test] = known
    tonight.outcome.exact.append(measured.model_copy(update={"settled": settled}))
