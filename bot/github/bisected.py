"""What a bisection came to, as an alert keeps it. Subjects of commits and reasons are foreign text: whoever shows them
puts them in code spans."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from baselines.series import UtcTime

MOST_PATHS = 100
MOST_COMMITS = 5  # of one change; the rest is counted
Line = Annotated[str, Field(max_length=2000)]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SuspectCommit(_Schema):
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")]
    subject: Line = ""
    paths: tuple[Line, ...] = ()  # that it touched, where that is known: by them it has owners


class BisectedChange(_Schema):
    """One change: the commits that no build tells apart."""

    commits: tuple[SuspectCommit, ...]
    more: int = 0  # further ones
    told: Line  # what changed, such as `+8.1 % [+7.2, +9.0] (worse)`
    probability: float
    certainty: str


class Bisected(_Schema):
    """The verdict on one time that an alert was open."""

    at: UtcTime
    episode: int  # which time: 0 the first, else a relapse
    verdict: str
    good: str
    bad: str
    changes: tuple[BisectedChange, ...] = ()
    nothing: float = 0.0  # probability that the ends are equal
    ends: Line = ""  # how they differ
    reason: Line = ""
    environment: tuple[Line, ...] = ()  # what differs beside the build, where the ends are equal
    of_merge: Line = ""  # what the branches of a culprit that is a merge came to
