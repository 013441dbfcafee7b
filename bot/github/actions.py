"""What is to be done on GitHub, as values: a command says what, one place does it, and another job may.

Each can be done again: a reply, a status comment and a check run are found by their key, among what the bot wrote. A
text that is too long is cut, with a notice.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bot.benchmark_request import BenchmarkRequest, Commit
from bot.pages.comment_length import LONGEST_COMMENT, fitting

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Field(ge=1)]
Text = Annotated[str, BeforeValidator(lambda text: fitting(text) if isinstance(text, str) else text)]
Reaction = Literal["eyes", "+1", "-1", "confused", "rocket"]


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reply(_Action):
    """A new comment below an issue or a pull request; the same key is posted once."""

    kind: Literal["reply"] = "reply"
    number: Number
    key: Key
    body: Annotated[Text, Field(min_length=1, max_length=LONGEST_COMMENT)]


class React(_Action):
    kind: Literal["react"] = "react"
    comment: Number
    content: Reaction


class Status(_Action):
    """The status comment of a request: made once, edited in place since."""

    kind: Literal["status"] = "status"
    number: Number
    key: Key
    body: Annotated[Text, Field(min_length=1, max_length=LONGEST_COMMENT)]


class Check(_Action):
    """The check run of a request on a commit: made once, updated since."""

    kind: Literal["check"] = "check"
    commit: Commit
    key: Key
    state: Literal["queued", "in_progress", "completed"]
    conclusion: Literal["success", "failure", "neutral", "cancelled"] | None = None
    title: Annotated[str, Field(max_length=200)]
    summary: Annotated[Text, Field(max_length=LONGEST_COMMENT)]

    @model_validator(mode="after")
    def _concluded_in_the_end(self) -> "Check":
        if (self.state == "completed") != (self.conclusion is not None):
            raise ValueError("a check that is completed has a conclusion, and no other has")
        return self


class CancelRun(_Action):
    """End a run of a workflow that is waiting or at work."""

    kind: Literal["cancel run"] = "cancel run"
    run: Number


class Dispatch(_Action):
    """Start a workflow of this repository, on its default branch. With a key it is started once: `run-name` of the
    workflow must show the key, which therefore is an input too."""

    kind: Literal["dispatch"] = "dispatch"
    key: Key | None = None
    workflow: Annotated[str, Field(pattern=r"^[a-z-]+\.yml$")]
    inputs: dict[str, Annotated[str, Field(max_length=1000)]]


class Measure(_Action):
    """Hand a request to the measuring job."""

    kind: Literal["measure"] = "measure"
    request: BenchmarkRequest


Action = Annotated[Reply | React | Status | Check | CancelRun | Dispatch | Measure, Field(discriminator="kind")]
