"""Which runners of GitHub Actions do the work, and how many measure: `runners` in the configuration.
docs/configuration.md describes every key."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bot.forms import of_form

_LABEL = "one label of letters, digits, dots, - and _"
Label = Annotated[str, AfterValidator(of_form(r"[A-Za-z0-9_.-]{1,100}", _LABEL))]
Labels = Annotated[tuple[Label, ...], Field(min_length=1, max_length=20)]


class RunnerSettings(BaseModel):
    """Labels; a job runs on a machine that has all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    measuring: Labels = ("self-hosted", "gpu")
    second: Labels | None = None  # other machines of the class, which ask again the same night; None for none
    building: Labels = ("self-hosted", "builder")  # of the commits that a bisection looks at
    shards: Annotated[int, Field(ge=1, le=256)] = 1  # machines that measure a night at once
