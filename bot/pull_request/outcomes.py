"""What the steps of the measuring job leave beside the pairs: how the builds and the measuring went."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.benchmark_request import Commit
from torchbenchmark.paired.pairs_file import SideName

SCHEMA = 1
BUILT, MEASURED, PAIRS, PROFILES = "built.json", "measured.json", "pairs.jsonl", "profiles.jsonl"
MOST_LINES, LONGEST_TEXT = 40, 2000

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Seconds = Annotated[float, Field(ge=0, le=1e7)]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class BuildOutcome(_Schema):
    """How the build of one side went. All of its text is foreign."""

    kind: Literal["build of a side"] = "build of a side"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    side: SideName
    commit: Commit
    state: Literal["built", "failed", "not there", "unavailable"]
    interpreter: Text = ""
    reason: Text = ""
    lines: Annotated[tuple[Text, ...], Field(max_length=MOST_LINES)] = ()  # the last of its log
    seconds: Seconds = 0.0


class MeasuringOutcome(_Schema):
    """How far the measuring has come."""

    kind: Literal["measuring of a request"] = "measuring of a request"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    part: Annotated[int, Field(ge=0, le=1000)] = 0  # that was ended last
    parts: Annotated[int, Field(ge=1, le=1000)] = 1
    state: Literal["measured", "not measured"]
    reason: Text = ""  # why not, or why there is no profile
    seconds: Seconds = 0.0  # of all parts so far


def cut(text: str) -> str:
    """The text as far as an outcome may hold it."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
