"""What the series of a class did together: reasons to suspect the environment, never a verdict.

Many series of a machine that move within two nights are the mark of a change of the environment, but of one of a
compiler as well: it takes the last good build, measured tonight, to tell them apart.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIKE_SHARE = 0.3
NIGHTS_TOGETHER = 2
FEWEST_SERIES = 10  # of fewer, a third is three series


@dataclass(frozen=True)
class Move:
    """One series that moved: the night (position) of its onset, and whether it got larger."""

    test: str
    onset: int
    larger: bool


@dataclass(frozen=True)
class FleetView:
    """How much of a class moved alike."""

    series: int
    alike: int  # the most that moved in one direction within two nights
    larger: bool
    canaries: str  # what tests of a frozen build did, if they moved
    fingerprint: tuple[str, ...]  # what differs of the environment

    @property
    def share(self) -> float:
        return self.alike / self.series if self.series else 0.0

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the environment is to be suspected; none: there is no sign of it."""
        found = []
        if self.fingerprint:
            found.append(f"the environment differs: {', '.join(self.fingerprint)}")
        if self.canaries:
            found.append(self.canaries)
        if self.series >= FEWEST_SERIES and self.share > ALIKE_SHARE:
            direction = "slower, or more" if self.larger else "faster, or less"  # of a test it may be its memory
            found.append(
                f"{self.alike} of {self.series} tests moved alike ({direction}) within {NIGHTS_TOGETHER} nights"
            )
        return tuple(found)


def view_fleet(
    moves: Sequence[Move], series: int, canaries: str = "", fingerprint: Mapping[str, str] | None = None
) -> FleetView:
    """`series`: how many were screened; `canaries`: how tests of a frozen build moved, in words; `fingerprint`: what
    differs between the environments of this night and the last, field by field."""
    alike, larger = 0, True
    for direction in (True, False):
        onsets = sorted(move.onset for move in moves if move.larger is direction)
        for index, onset in enumerate(onsets):
            together = bisect_left(onsets, onset + NIGHTS_TOGETHER) - index
            if together > alike:
                alike, larger = together, direction
    return FleetView(series, alike, larger, canaries, tuple(f"{k} {v}" for k, v in (fingerprint or {}).items()))
