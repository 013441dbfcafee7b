"""What the rules of a night look at: the night, those before it, and what is normal of each of its tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from baselines.noisy import NoisyTest
from baselines.policy import Judged, Policy
from baselines.rolling import Baseline, Mask, ValidNights, rolling_baseline
from baselines.series import (
    NightSummary,
    Statistic,
    TestSummary,
    is_of_environment,
)
from torchbenchmark.channels import CHANNELS

TOTAL = "total"  # in the open alerts: the alert of the total, which masks its nights for every test


@dataclass(frozen=True)
class Evidence:
    """What the rules look at."""

    tonight: NightSummary
    history: tuple[NightSummary, ...]  # oldest first
    pinned: NightSummary | None
    policy: Policy
    masks: Mapping[str, Sequence[Mask]]
    noisy: Mapping[str, NoisyTest] = field(default_factory=dict)

    def baseline(self, test: str, channel: str, statistic: Statistic, nights: int | None = None) -> Baseline:
        return rolling_baseline(self.tonight, self.history, test, channel, statistic, self.valid(test, nights))

    def valid(self, test: str, nights: int | None = None) -> ValidNights:
        """Which nights may be what is normal of a test."""
        masks = (*self.masks.get(test, ()), *self.masks.get(TOTAL, ()))
        return ValidNights(nights or self.policy.nights, self.policy.min_coverage, masks)

    def alert(self, test: str) -> datetime | None:
        """Since when the test has an open alert."""
        return min((mask.since for mask in self.masks.get(test, ()) if mask.since_open), default=None)

    @property
    def valid_nights(self) -> list[NightSummary]:
        valid = ValidNights(self.policy.nights, self.policy.min_coverage)
        return [night for night in self.history if valid.covers(night)]

    @property
    def last_good(self) -> NightSummary | None:
        """The newest valid night in no alert at all; where there is none, the newest night."""
        masks = tuple(mask for several in self.masks.values() for mask in several)
        good = ValidNights(self.policy.nights, self.policy.min_coverage, masks)
        unmasked = [night for night in self.valid_nights if good.mask_of(night) is None]
        here = [night for night in unmasked if is_of_environment(night, self.tonight)]
        return next(reversed(here or unmasked or self.valid_nights or self.history), None)

    @property
    def nights_without_comparison(self) -> int:
        """How many nights in a row, tonight included, had data and nothing to compare it with. The first night of all
        has nothing either; it counts only as a beginning."""
        nights = [night for night in (*self.history, self.tonight) if night.ok_tests]
        count = 0
        for index in reversed(range(1, len(nights))):
            if _has_a_baseline(nights[index], nights[:index], self.policy):
                break
            count += 1
        return count

    def before(self, test: str) -> TestSummary | None:
        """How the test ended in the newest valid night that planned it and has its shard."""
        return next((night.tests[test] for night in reversed(self.valid_nights) if has_test(night, test)), None)

    def last_ran(self, test: str) -> datetime | None:
        """When the newest night started in which the test ended ok."""
        ran = (night.started for night in reversed(self.history) if test in night.tests and night.tests[test].ok)
        return next(ran, None)


def _has_a_baseline(night: NightSummary, before: Sequence[NightSummary], policy: Policy) -> bool:
    """Whether any test of the night can be compared with nights before it, whatever alerts say of them."""
    valid = ValidNights(policy.nights, policy.min_coverage)
    for test in night.ok_tests:
        judged = judged_channel(night.tests[test], night.device, policy)
        if judged and rolling_baseline(night, before, test, *judged.pair, valid).value is not None:
            return True
    return False


def has_test(night: NightSummary, test: str) -> bool:
    return test in night.tests and not night.tests[test].absent


def judged_channel(test: TestSummary, device: str, policy: Policy) -> Judged | None:
    judged = policy.for_device(device)
    return next((one for one in judged if one.channel in CHANNELS and one.channel in test.channels), None)
