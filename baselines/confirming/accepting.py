"""Levels that a person has accepted: a series goes on with a segment that begins at the onset of its change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from baselines.confirming.state import ClassState, Filed, name_of, test_of

if TYPE_CHECKING:  # numpy takes longer than most commands do, and `alerts accept` needs none
    from baselines.confirming.seen import Seen

KEPT_ACCEPTED = 200  # keys, so that the state stays small


@dataclass(frozen=True)
class AcceptedLevel:
    """An alert whose level is what is normal from now on."""

    alert: str  # its key
    at: datetime  # when it was accepted: nights that begin later go by it
    since: Mapping[str, datetime]  # by test, the first night that is sure to have the level


def onset_of(state: ClassState, test: str, opened: datetime) -> datetime:
    """The first night that is sure to have the newest regression of a test that was filed since a time; that time
    itself where none was, as the limits opened the alert."""
    filed = [one for one in state.filed if _is_of(one, test) and one.night >= opened]
    return filed[-1].onset.high if filed else opened


def accept_levels(state: ClassState, levels: Iterable[AcceptedLevel], seen: "Seen") -> None:
    """Let the series of accepted alerts begin at their onset, each alert once. What was accepted after tonight began is
    left to the next night, so that a night that was killed comes to the same.

    The whole history since then is the level, and no suspect of tonight is measured from before it. A series that was
    confirmed to change again later keeps the segment of that change.
    """
    for level in levels:
        if level.alert in state.accepted or level.at > seen.tonight:
            continue
        state.accepted = [*state.accepted, level.alert][-KEPT_ACCEPTED:]
        for test, since in level.since.items():
            for name in _series_of(test, since, state, seen):
                _begin(state, name, since)


def _begin(state: ClassState, name: str, since: datetime) -> None:
    known = max((one.night for one in state.filed if name in one.series and one.kind == "regression"), default=since)
    one = state.of_name(name)
    if one.segment is not None and one.segment > known:
        return
    if one.segment is None:
        one.prior, one.weight = None, 0.0
    one.segment = since
    one.carried, one.resting, one.futile, one.score = None, 0, 0, 0.0
    if one.pending is not None and one.pending.base < since:
        one.pending = None  # the same change, once more


def _series_of(test: str, since: datetime, state: ClassState, seen: "Seen") -> list[str]:
    """What was filed of the test; all its series where the limits alone called it."""
    filed = {name for one in state.filed if _is_of(one, test) and one.night >= since for name in one.series}
    names = [name_of(key) for key in seen.series if key.test == test]
    mine = [name for name in names if name in filed]
    return mine or names


def _is_of(filed: Filed, test: str) -> bool:
    return filed.kind == "regression" and test in map(test_of, filed.series)
