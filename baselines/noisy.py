"""What a person has called noise: a test that must go further for a while, to be called slower, faster or failing."""

import math
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from baselines.series import UtcTime

FAILING_NIGHTS = 3  # on which a test that was called flaky must be found failing to be filed
_FAILING_FOR = timedelta(days=FAILING_NIGHTS, hours=-12)  # nights are not a day apart to the minute


class NoisyTest(BaseModel):
    """A change of it is told when it is beyond what was called noise by as much as others must be beyond nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    since: UtcTime
    until: UtcTime
    width: float = Field(ge=0)  # as a share; 0 of one that failed

    def widened(self, limit: float) -> float:
        """A limit, as a share, from what was called noise on."""
        return (1 + self.width) * (1 + limit) - 1

    @property
    def margin(self) -> float:
        """What is added to a margin, in log units."""
        return math.log1p(self.width)

    def has_failed_long(self, last_ran: datetime | None, tonight: datetime) -> bool:
        """Whether it fails for so many nights that it is no flake, counted from when it was called one."""
        return last_ran is not None and tonight - max(last_ran, self.since) > _FAILING_FOR
