"""An estimate with its confidence interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """In the unit of what was estimated; for log ratios .01 is 1 % (exactly exp(.01) - 1)."""

    estimate: float
    low: float
    high: float
    level: float  # the confidence that the method attains: of an exact method at least what was asked for

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high

    def shifted(self, by: float) -> "Interval":
        return Interval(self.estimate + by, self.low + by, self.high + by, self.level)
