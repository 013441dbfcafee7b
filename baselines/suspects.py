"""The screen of a night: the suspects, best first, each with one sentence that says why, and every score.

A suspect is no verdict; it says where to measure pairs first.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from baselines.policy import SEED_PER_TEST
from baselines.rolling import ValidNights
from baselines.series import NightSummary, UtcTime
from torchbenchmark.channels import CHANNELS

if TYPE_CHECKING:  # numpy takes a while to import; only who screens a night does
    from baselines.screening.screen import Screened
    from baselines.series_values import SeriesValues
    from torchbenchmark.paired.noise_table import NoiseTable

MOST_SUSPECTS = 50
LEAST_SCORE = math.log(100)  # nats: a hundred times likelier with a change than without
_TOLD_IN_FULL = math.log(1e6)
_LARGEST_EFFECT = math.log(1e9)  # no build is that much slower or faster; of what says so, more digits say no more

Kind = Literal["regression", "improvement", "status change", "count change"]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SeriesScore(_Schema):
    """What the screen says of one series: kept for all, so that limits can be judged again."""

    test: str
    channel: str
    score: float  # nats
    moved_as: Literal["jump", "step", "drift"]
    nights: int  # of the new level, tonight counted
    effect: float  # ln(new / old), positive: slower, or more
    level_nights: int
    scale: float  # of a night, in log units
    shift_score: float | None = None  # of the newest report of a level shift: to be held against the knob's height
    shift_reported: UtcTime | None = None


class Suspect(_Schema):
    """Something of tonight that may have changed."""

    kind: Kind
    test: str
    channel: str | None = None
    why: str
    score: float | None = None  # None: exact, and so before all that are not
    effect: float | None = None  # a share: .03 is 3 % slower, or more
    severe: bool = False  # above the seed's 7 %
    reported: bool = False  # the change-point detection is sure of it since tonight
    onset_low: UtcTime | None = None  # the nights in which the new level may have begun
    onset_high: UtcTime | None = None
    alert: UtcTime | None = None  # open since


class Screen(_Schema):
    """The screen of a night."""

    knob: str
    series: int
    suspects: tuple[Suspect, ...]  # the best
    left_out: int = 0  # suspects after those
    scores: tuple[SeriesScore, ...]
    environment: tuple[str, ...]  # reasons to suspect the environment


def screen(
    tonight: NightSummary,
    history: Sequence[NightSummary],
    valid: Mapping[str, ValidNights],
    *,
    knob: str,
    alerts: Mapping[str, UtcTime],
    exact: Sequence[Suspect] = (),
    fingerprint: Mapping[str, str] | None = None,
    canaries: str = "",
    noise: "NoiseTable | None" = None,
) -> Screen:
    """`history` is oldest first, without tonight; `exact` are the changes of status and of counts, found elsewhere;
    `fingerprint`: what differs of the environment since the night before; `canaries`: how those moved, in words."""
    from baselines.screening.fleet import Move, view_fleet
    from baselines.screening.screen import screen_night
    from baselines.screening.shifts import KNOBS
    from baselines.series_values import series_of_night

    series = series_of_night(tonight, history, valid)
    found = screen_night([one.logs for one in series], KNOBS[knob], [_floor(one, noise) for one in series])
    both = [(one, screened) for one, screened in zip(series, found, strict=True) if screened is not None]
    ranked = sorted(both, key=lambda pair: -pair[1].score)
    moves = {
        one.test: Move(one.test, -screened.nights, screened.effect > 0)
        for one, screened in reversed(ranked)  # of a test's channels the one that says most stays
        if screened.score >= LEAST_SCORE and screened.moved_as != "drift"
    }
    suspects = [
        _suspect(one, screened, alerts)
        for one, screened in ranked
        if screened.score >= LEAST_SCORE or screened.reported_tonight  # a report is made once, and must be seen then
    ]
    # What is reported tonight is said this once, so it comes first; what has an open alert is known, and comes last,
    # an exact change too: it is one again every night until the alert is closed, and would crowd out what is new.
    suspects.sort(key=lambda suspect: not suspect.reported)
    every = sorted((*exact, *suspects), key=lambda suspect: suspect.alert is not None)
    return Screen(
        knob=knob,
        series=len(series),
        suspects=tuple(every[:MOST_SUSPECTS]),
        left_out=len(every[MOST_SUSPECTS:]),
        scores=tuple(_score(one, screened) for one, screened in both),
        environment=view_fleet(list(moves.values()), len({one.test for one in series}), canaries, fingerprint).reasons,
    )


def _floor(one: "SeriesValues", noise: "NoiseTable | None") -> float:
    """The least that a night is believed to spread by, in log units: what its own processes say, and the A/A table."""
    from baselines.screening.noise import READS

    known = 0.0 if noise is None else noise.spread(one.test, one.channel)
    return READS * max(one.error, known)


def _suspect(one: "SeriesValues", screened: "Screened", alerts: Mapping[str, UtcTime]) -> Suspect:
    shift = screened.last_shift if screened.reported_tonight else None
    change = _share(screened.effect)
    return Suspect(
        kind="regression" if screened.effect > 0 else "improvement",
        test=one.test,
        channel=one.channel,
        why=_why(one, screened),
        score=screened.score,
        effect=change,
        severe=abs(change) > SEED_PER_TEST,
        reported=shift is not None,
        onset_low=one.nights[shift.onset_low].started if shift else None,
        onset_high=one.nights[shift.onset_high].started if shift else None,
        alert=alerts.get(one.test),
    )


def _share(effect: float) -> float:
    return math.expm1(max(-_LARGEST_EFFECT, min(effect, _LARGEST_EFFECT)))


def _why(one: "SeriesValues", screened: "Screened") -> str:
    """One sentence, with the numbers in it."""
    from baselines.screening.noise import READS

    scale, sign = screened.scale, 1 if CHANNELS[one.channel].better == "lower" else -1
    change = _share(sign * screened.effect)
    odds = f"e^{screened.score:.0f}" if screened.score > _TOLD_IN_FULL else f"{math.exp(screened.score):,.0f}"
    noise = f"nights spread by {scale / READS:.2%}"
    if screened.moved_as == "drift":
        told = (
            f"{one.channel} has drifted by {change:+.2%} over the last {screened.nights} nights; {noise}; "
            f"a line is {odds} times likelier than a level"
        )
    else:
        since = one.nights[-min(screened.nights, len(one.nights))].started
        when = "tonight" if screened.nights == 1 else f"for {screened.nights} nights, since {since:%Y-%m-%d}"
        told = (
            f"{one.channel} is {change:+.2%} against the level of {screened.level_nights} nights before, {when}; "
            f"{noise}; {odds} times likelier with a change than without"
        )
    return f"{told}; reported tonight as a level shift" if screened.reported_tonight else told


def _score(one: "SeriesValues", screened: "Screened") -> SeriesScore:
    shift = screened.last_shift
    return SeriesScore(
        test=one.test,
        channel=one.channel,
        score=screened.score,
        moved_as=screened.moved_as,
        nights=screened.nights,
        effect=screened.effect,
        level_nights=screened.level_nights,
        scale=screened.scale,
        shift_score=shift.score if shift else None,
        shift_reported=one.nights[shift.reported].started if shift else None,
    )
