"""What is filed: changes that came in together are one alert, under an id of its own or of the alert that they join."""

from collections.abc import Sequence

from baselines.confirming.shares import share_of
from baselines.confirming.state import ChangeKind, Filed, Interval, Onset, Pending, common
from baselines.confirming.tonight import Tonight
from baselines.confirming.trials import Again

Found = tuple[int, Pending, Again]  # a series by its row, what was confirmed of it, and what new pairs showed


def file_changes(tonight: Tonight, there: Sequence[Found]) -> None:
    """Changes of one sign whose onsets have a night in common are one alert."""
    groups: list[list[Found]] = []
    for one in sorted(there, key=lambda one: (one[1].onset.high - one[1].onset.low, one[0])):
        home = next(
            (
                group
                for group in groups
                if group[0][1].kind == one[1].kind
                and common([*(member[1].onset for member in group), one[1].onset]) is not None
            ),
            None,
        )
        if home is None:
            groups.append([one])
        else:
            home.append(one)
    for group in groups:
        _file_group(tonight, group)


def _file_group(tonight: Tonight, group: Sequence[Found]) -> None:
    seen = tonight.seen
    shown = []
    for row, pending, again in group:
        key = seen.series[row]
        interval = Interval(
            test=key.test,
            channel=key.channel,
            base=pending.base,
            head=seen.tonight,
            effect=share_of(again.effect),
            low=share_of(again.low),
            high=share_of(again.high),
        )
        shown.append(interval)
        tonight.outcome.intervals.append((interval, True))
    onset = common(pending.onset for _, pending, _ in group)
    assert onset is not None
    kind = group[0][1].kind
    home = _home(tonight, kind, onset)
    if home is not None:
        onset = home.onset if home.of_a_build else onset.within(home.onset)
    file_one(
        tonight,
        Filed(
            id=home.id if home else new_id(tonight),
            kind=kind,
            night=seen.tonight,
            onset=onset,
            series=tuple(tonight.names[row] for row, _, _ in group),
            intervals=tuple(shown),
            of_a_build=home is not None and home.of_a_build,
        ),
    )


def _home(tonight: Tonight, kind: ChangeKind, onset: Onset) -> Filed | None:
    """The alert of lately that a change belongs to."""
    for one in reversed(tonight.state.filed):
        if one.of_a_build and one.kind == kind and one.onset.overlaps(onset):
            return one
    return None


def file_one(tonight: Tonight, filed: Filed) -> None:
    tonight.state.filed.append(filed)
    tonight.outcome.filed.append(filed)
    tonight.state.accounts.filed += 1


def new_id(tonight: Tonight) -> str:
    number = tonight.state.next_id
    tonight.state.next_id += 1
    return f"{tonight.seen.tonight:%Y%m%d}-{number}"
