"""What a nightly bisects, and by what: `bisect` in its configuration. docs/configuration.md describes every key."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_CHANNEL = {"cpu": "cpu_time", "cuda": "gpu_time"}  # that a bisection compares, by device
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class BisectSettings(BaseModel):
    """Where the commits of the subject are, how one is built, and what a night may spend on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: Path  # a clone, which is read only
    build: Annotated[str, Field(min_length=1)] | None = None  # a shell line; None for `builds.git.command`
    most_minutes: Positive = 120.0  # of a night; what is not finished goes on in the next
    most_builds: Annotated[int, Field(ge=2)] | None = None  # of a bisection, over all its nights
    most_pairs: Annotated[int, Field(ge=6)] | None = None
    build_timeout_s: Positive = 4 * 3600.0
