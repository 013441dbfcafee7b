"""The limits of confirming: how far a change must go, how much may be measured for it, and how sure is sure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from baselines.noisy import FAILING_NIGHTS
from torchbenchmark.statistics.sign_e_process import MOST_PAIRS, NIGHTLY_ERROR, SOFT_BETS, Bet

Urgency = Literal["severe", "regression", "improvement"]


@dataclass(frozen=True)
class Rules:
    """All in log units, nights or pairs. What they were tuned on stands in docs/detection.md."""

    burn_in: int = 14  # nights of a class before anything is asked
    margin: float = 0.005  # changes up to this are nobody's business, and what zygotes of one build may differ by

    margins: Mapping[str, float] = field(default_factory=dict)  # of channels of which enough is known by now
    noise: Mapping[str, float] = field(default_factory=dict)  # by test: what a person has called noise, on top of it
    flaky: frozenset[str] = frozenset()  # tests whose failing a person has called noise

    gate: float = 3.5  # of a candidate's score
    least_share_of_margin: float = 0.9  # that a candidate's effect has
    least_hope: float = 0.4  # (effect - margin) in standard deviations of a pair
    most_candidates: int = 50
    nights_of_the_limits: int = 7  # of their baseline: until then they call what was confirmed still

    pairs_a_night: float = 220.0  # into a bucket ...
    bucket: float = 300.0  # ... that holds so many
    lanes: int = 8  # candidates that are measured by turns

    bets: tuple[Bet, ...] = SOFT_BETS
    error: float = NIGHTLY_ERROR
    futile_below: float = 0.2  # two lost pairs; E under 1/20, as of sign bets, would take soft ones ten
    futile_by_last_bet: bool = True
    most_pairs: int = MOST_PAIRS
    carried_nights: int = 3  # evidence that was neither enough nor futile is kept so long
    rests: tuple[int, ...] = (3, 6, 12, 14)  # nights until another try, after the first, second ... futile one ...
    rest_ended_by: float = 1.5  # ... unless the score rises by so much

    persistent_at: float = 20.0  # E of new pairs on another runner or night
    persistent_pairs: int = 12
    interval_pairs: int = 12
    at_once: frozenset[Urgency] = frozenset()  # what is asked again the same night here
    severe_above: float = math.log(1.07)  # of a regression
    level: float = 0.95  # of the interval that people see

    prior_of_a_step: float = 4.0  # nights that a confirmed level counts for
    prior_of_an_environment: float = 1.0

    exact_processes: int = 3  # of either build, for a status or a count that changed
    exact_tests: int = 20  # of which a night asks at most
    failing_nights: int = 1  # on which a test must be found failing to be filed

    share_moved_alike: float = 0.3  # of the series: a reason to suspect the environment ...
    fewest_alike: int = 10  # ... of so many tests or more: of fewer, a third is three tests
    bridging_tests: int = 30
    bridging_processes: int = 3
    share_off_their_level: float = 0.25  # of the bridging tests: then it is the environment
    share_persistent: float = 0.6  # of a build's tests, the night after
    aa_pairs: int = 12

    def margin_of(self, channel: str, test: str = "") -> float:
        """What a change of a channel must be beyond: of a test that was called noisy, from there on."""
        return self.margins.get(channel, self.margin) + self.noise.get(test, 0.0)

    def failing_nights_of(self, test: str) -> int:
        """On how many nights a test must be found failing to be filed."""
        return max(self.failing_nights, FAILING_NIGHTS) if test in self.flaky else self.failing_nights
