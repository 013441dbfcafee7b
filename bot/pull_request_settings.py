"""What people may ask for on pull requests, and who may: `pull_requests` in the configuration. docs/configuration.md
describes every key."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bot.benchmark_request import FEWEST_PAIRS, MOST_TESTS
from bot.forms import of_form

Minutes = Annotated[float, Field(gt=0, le=24 * 60, allow_inf_nan=False)]
Pairs = Annotated[int, Field(ge=FEWEST_PAIRS, le=500)]
Team = Annotated[str, AfterValidator(of_form(r"[A-Za-z0-9-]+/[A-Za-z0-9_.-]+", "organisation/team, without an @"))]


class PullRequestSettings(BaseModel):
    """Limits, defaults and rights of `/benchmark`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str | None = None  # that models are looked up in; None for the suite of the nightly
    teams: tuple[Team, ...] = ()  # ORGANISATION/TEAM whose members may command too, beside those who may write
    runner: Annotated[tuple[str, ...], Field(min_length=1)] = ("self-hosted", "gpu")  # labels of the measuring job
    pairs: Pairs = 12  # of a test, at most
    most_pairs: Pairs = 48  # that may be asked for
    budget_minutes: Minutes = 60.0
    most_budget_minutes: Minutes = 240.0
    most_tests: Annotated[int, Field(ge=1, le=MOST_TESTS)] = 120
    beyond: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None  # what `no change` means, a share
    check_run: bool = True  # beside the comments

    @model_validator(mode="after")
    def _within_limits(self) -> "PullRequestSettings":
        if self.pairs > self.most_pairs:
            raise ValueError(f"`pairs` is {self.pairs}, but `most_pairs` is {self.most_pairs}: raise the limit")
        if self.budget_minutes > self.most_budget_minutes:
            raise ValueError("`budget_minutes` is more than `most_budget_minutes`: raise the limit")
        return self
