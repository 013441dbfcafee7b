"""What a person has decided about an alert, as it is stored with it. Reasons are foreign text."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from baselines.series import UtcTime

Why = Annotated[str, Field(max_length=600)]


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    at: UtcTime
    by: str
    why: Why = ""


class Acknowledged(_Decision):
    """Somebody looks after it."""

    episode: int  # which time that it was open: a relapse is to be acknowledged anew


class Snoozed(_Decision):
    """It bothers nobody until a time; then it speaks, if it is still there."""

    until: UtcTime


class Noise(_Decision):
    """It was nothing: until a time its tests must go further to be called again."""

    until: UtcTime
    widths: dict[str, float]  # by test, what it was found to go, as a share; of a test that failed 0
