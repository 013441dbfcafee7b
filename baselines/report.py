"""What a detection found, as data: the table, the JSON and the YAML, and whoever files an alert, only read this."""

from enum import StrEnum
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from baselines.confirming.state import NightOutcome
from baselines.differences import Difference
from baselines.noisy import NoisyTest
from baselines.policy import Policy
from baselines.series import Statistic, UtcTime
from baselines.suspects import Screen
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, EXIT_REGRESSION

SCHEMA = 1

Verdict = Literal["clean", "regression", "broken", "baseline made"]
EXIT_CODES: dict[Verdict, int] = {
    "clean": EXIT_CLEAN,
    "baseline made": EXIT_CLEAN,
    "regression": EXIT_REGRESSION,
    "broken": EXIT_BROKEN,
}


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class State(StrEnum):
    """What became of one test; the order is that of the table."""

    NEWLY_FAILING = "newly failing"
    SLOWER = "slower"
    GONE = "gone"
    NOT_COMPARABLE = "not comparable"
    WORKLOAD_CHANGE = "workload change"
    ENVIRONMENT_CHANGE = "environment change"
    STILL_FAILING = "still failing"
    FASTER = "faster"
    FIXED = "fixed"
    NEW = "new"
    UNCHANGED = "unchanged"


class Row(_Schema):
    """One test. Changes are positive where it got slower (or, of a rate, lower)."""

    test: str
    state: State
    reason: str = ""
    channel: str | None = None
    statistic: Statistic | None = None
    unit: str | None = None
    baseline: float | None = None
    tonight: float | None = None
    change: float | None = None
    nights: int = 0  # in the baseline
    pin_change: float | None = None
    alert: UtcTime | None = None  # open since
    others: dict[str, float] = {}  # change of the channels that are not judged
    left_out: bool = False  # the suite leaves it out tonight, on purpose
    segment_since: UtcTime | None = None  # where a change of workload or environment began the series anew
    segment_ended_by: str = ""  # which change that was
    good_until: UtcTime | None = (
        None  # the newest night of the baseline; of a failing test, the one in which it last ran
    )


class CountChange(_Schema):
    """A count that is exact, and not what it was in the newest night of the baseline."""

    test: str
    channel: str
    baseline: float
    tonight: float


class Total(_Schema):
    """V1-weighted geometric mean of baseline over tonight, times 1000, over the tests that have both."""

    score: float
    change: float  # positive: slower
    state: State  # slower, faster or unchanged, by the policy's limit
    tests: int
    left_out: tuple[str, ...] = ()  # no weight, as their model is in no category


class NightRef(_Schema):
    run: str
    key: str
    started: UtcTime
    build: str
    version: str
    commit: str | None
    coverage: float


class Judgement(_Schema):
    verdict: Verdict
    reason: str


class Report(_Schema):
    """All that `detect` found."""

    kind: Literal["detection"] = "detection"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    verdict: Verdict
    reason: str
    flat: Judgement  # by the seed's 7 % and 1 %
    policy: Policy
    suite: str
    machine_class: str = Field(alias="class")
    device: str
    tonight: NightRef
    baseline: NightRef | None  # the last good night: valid, and in no alert; `differences` are against it
    pin: NightRef | None
    total: Total | None
    pin_total: Total | None
    rows: tuple[Row, ...]
    counts: tuple[CountChange, ...]
    differences: tuple[Difference, ...]
    screen: Screen | None = (
        None  # none where there is nothing to compare with, or the report is of before there was one
    )
    noisy: dict[str, NoisyTest] = {}  # by test, or "total": what people have called noise
    confirmation: NightOutcome | None = None  # what was measured again; none where nothing could be

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    @property
    def judged(self) -> str:
        """The channels that were compared, of which the total is made: of most nights one."""
        return ", ".join(sorted({row.channel for row in self.rows if row.channel and row.change is not None}))

    def tests(self, state: State) -> list[str]:
        return [row.test for row in self.rows if row.state is state]

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    def to_yaml(self) -> str:
        content = self.model_dump(mode="json", by_alias=True)
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
