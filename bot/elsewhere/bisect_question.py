"""The question of a round of a bisection: what is asked, how far it has got, and which commits are to be built.

The job that may read the store leaves it in a file. It is known again by its digest, which goes another way than the
file: machines that run code which nobody has reviewed could put another in its place.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.runs import list_series
from baselines.store import Store
from bot.bisection.batch import needed, next_builds
from bot.bisection.document import Desk, Document
from bot.bisection.driving import begun
from bot.bisection.git_range import GitRange
from bot.bisection.search import Done, next_step
from bot.bisection.state import MOST_COMMITS
from bot.config import NightlyConfig
from bot.culprits.commission import Commission
from bot.culprits.of_night import open_without_verdict
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_store import read_alerts
from bot.whole_file import write_whole
from torchbenchmark.registry import load_suite
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1
LARGEST_BYTES = 64 * 2**20
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class BisectQuestion(BaseModel):
    """See the head of this file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["question of a bisection"] = "question of a bisection"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    commission: Commission
    repository: str
    commits: Annotated[tuple[Commit, ...], Field(min_length=2, max_length=MOST_COMMITS)]
    subjects: dict[str, str]
    document: Document | None = None  # None: nothing was built or measured yet
    builds: tuple[Commit, ...] = ()

    @property
    def begun(self) -> Document:
        """The document to go on from; of a new one the machine is not known yet."""
        asked = self.commission.asked
        return self.document or begun(asked, self.commits, "", environment=self.commission.environment)

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to measure any more."""
        return isinstance(next_step(self.begun.search), Done)


def question_of(
    store: Store, commission: Commission, repository: str, commits: GitRange, batch: int, there: Sequence[str] = ()
) -> BisectQuestion:
    """The next round. `there`: commits whose builds the rounds before have left where this one finds them."""
    question = BisectQuestion(
        commission=commission,
        repository=repository,
        commits=tuple(commits.line),
        subjects={commit: commits.subjects.get(commit, "") for commit in commits.line},
        document=Desk(store, commission.asked.key).read(),
    )
    if question.is_over:
        return question
    state = question.begun.search
    lacking = [one for one in needed(state) if one not in there]
    return question.model_copy(update={"builds": (*lacking, *next_builds(state, batch))})


def alerts_to_bisect(config: NightlyConfig, store: Store) -> list[Alert]:
    """Of the suite and the classes of the configuration."""
    suite = load_suite(config.suite).name
    classes = [one for name, one in list_series(store) if name == suite and one in (config.classes or (one,))]
    alerts = [alert for one in classes for alert in read_alerts(store, suite, one)]
    return open_without_verdict(store, [alert for alert in alerts if alert.kind == "regression"])


def write_bisect_question(question: BisectQuestion, path: Path) -> str:
    """Returns its digest."""
    content = question.model_dump_json(by_alias=True).encode() + b"\n"
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()


def read_bisect_question(path: Path, digest: str | None = None) -> BisectQuestion:
    """The question in a file, if it has the digest. Raises BotError naming the file and what is wrong in it."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise BotError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise BotError(f"{path}: larger than {LARGEST_BYTES // 2**20} MiB; that is no question of a bisection")
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise BotError(f"{path}: is not the question that was asked; start the workflow anew")
    try:
        return BisectQuestion.model_validate_json(content)
    except ValidationError as error:
        raise BotError(f"{path}: {first_problem(error)}; expected what `ask` of the workflow has left") from error
