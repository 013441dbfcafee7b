"""A small run to write and read: its header, processes and records, each with what a test wants to be different."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from torchbenchmark.records import (
    Build,
    Channel,
    Environment,
    Measuring,
    PlannedTest,
    Process,
    Record,
    RunHeader,
    Status,
    Workload,
)

RUN = "20260102T030405Z-0badcafe"
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WORKLOAD = Workload(version="1", hash="abcdef012345")


@pytest.fixture
def make_header() -> Callable[..., RunHeader]:
    def make(*tests: str, skip: str = "", **changes: Any) -> RunHeader:
        fields = {
            "run": RUN,
            "suite": "smoke",
            "machine_class": "cpu-some-t2",
            "device": "cpu",
            "started": WHEN,
            "seed": 7,
            "rounds": 2,
            "processes": 1,
            "plan": tuple(PlannedTest(test=test, workload=WORKLOAD, skip=skip) for test in tests),
            "measuring": Measuring(
                budget_s=1.0, warmup_cap_s=4.0, min_unit_s=0.01, min_samples=3, threads=2, timeout_s=60.0
            ),
            "build": Build(id="2.9-0", subject="torch", version="2.9", python="CPython 3.11", interpreter="/b/python"),
            "environment": Environment(fingerprint="f00", facts={"os": "some"}),
            "harness": "0" * 40,
        }
        return RunHeader(**(fields | changes))

    return make


@pytest.fixture
def make_process() -> Callable[..., Process]:
    def make(*samples: float, round: int = 1, index: int = 0, status: Status = Status.OK) -> Process:
        values = samples or (0.25,)
        latency = Channel(unit="s", samples=values, median=values[0], mean=values[0], p20=values[0])
        return Process(
            round=round,
            index=index,
            zygote=f"r{round}z0",
            start_method="fork",
            status=status,
            reason="" if status is Status.OK else "it broke",
            started=WHEN,
            seconds=1.5,
            channels={"latency": latency} if status is Status.OK else {},
        )

    return make


@pytest.fixture
def make_record() -> Callable[..., Record]:
    def make(test: str, *processes: Process, status: Status = Status.OK, **changes: Any) -> Record:
        reason = "" if status is Status.OK else "it broke"
        fields = {"run": RUN, "workload": WORKLOAD, "reason": reason, "ended": WHEN, "processes": processes}
        return Record(test=test, status=status, **(fields | changes))

    return make
