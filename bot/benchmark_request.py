"""What one `/benchmark` asks to be measured, as the planning job hands it to those after it.

It travels as an output of a job, so everything in it is of few characters and bounded: no text of a comment, of a pull
request or of a branch.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.errors import BotError
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
MOST_TESTS = 200
FEWEST_PAIRS = 6  # of fewer a comment would call equal builds different too often (docs/benchmark.md)
LONGEST = 60_000  # characters of a request; a job's outputs may have a mebibyte together

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
RepositoryName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")]
Login = Annotated[str, Field(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})(?:\[bot\])?$")]
TestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\[\]-]{1,200}$")]


class BenchmarkRequest(BaseModel):
    """One request: which commits of which pull request, which tests, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)

    kind: Literal["benchmark request"] = "benchmark request"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    key: Annotated[
        str, Field(pattern=r"^[0-9a-f]{16}$")
    ]  # of the repository and the comment: its status is found by it
    repository: RepositoryName
    pull: Annotated[int, Field(ge=1)]
    comment: Annotated[int, Field(ge=1)]  # which asked
    asked_by: Login
    base: Commit
    head: Commit
    head_repository: RepositoryName  # another one than `repository` for a fork
    base_is: Literal["merge-base", "named"] = "merge-base"
    suite: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]{1,200}$")]
    tests: Annotated[tuple[TestId, ...], Field(min_length=1, max_length=MOST_TESTS)]  # by their whole ids, as planned
    device: Literal["cpu", "cuda"]
    pairs: Annotated[int, Field(ge=FEWEST_PAIRS, le=500)]  # at most; a test that is decided leaves earlier
    budget_minutes: Annotated[float, Field(gt=0, le=24 * 60)]
    profile: bool = False  # also what differs inside

    @property
    def is_fork(self) -> bool:
        return self.head_repository.casefold() != self.repository.casefold()


def written(request: BenchmarkRequest) -> str:
    """The request on one line."""
    return request.model_dump_json(by_alias=True)


def read_request(text: str) -> BenchmarkRequest:
    """The request in the output of a job. Raises BotError for anything else."""
    if len(text) > LONGEST:
        raise BotError(f"the request has {len(text)} characters, which none has; start the workflow by a new comment")
    try:
        return BenchmarkRequest.model_validate_json(text)
    except ValidationError as error:
        raise BotError(f"the request of the planning job: {first_problem(error)}; start it by a new comment") from error
