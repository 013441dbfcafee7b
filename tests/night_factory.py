"""Runs and nights for the tests of the baselines and the detector: tiny, valid, and as wanted in every field."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from baselines.series import NightSummary, summarise
from torchbenchmark.records import (
    Build,
    Channel,
    Environment,
    Measuring,
    PlannedTest,
    Process,
    Record,
    Run,
    RunHeader,
    Shard,
    Status,
    Workload,
)

FIRST_NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
A, B, C = (f"test_eval[{model}-cpu-eager]" for model in ("resnet50", "hf_Bert", "dlrm"))
UNITS = {"cpu_time": "s", "latency": "s", "throughput": "1/s", "operators": "1", "flops": "1", "cpu_memory": "B"}

Channels = Mapping[str, float | Sequence[float]]  # one value, or one per process


def channel(value: float, unit: str) -> Channel:
    return Channel(unit=unit, samples=(value,), median=value, mean=value, p20=value)


def record(
    run: str,
    test: str,
    values: Channels,
    status: Status = Status.OK,
    reason: str = "",
    units: Mapping[str, str] = UNITS,
    workload: str = "w1",
) -> Record:
    per_process = {name: [value] if isinstance(value, int | float) else list(value) for name, value in values.items()}
    count = max(map(len, per_process.values()), default=0)
    processes = tuple(
        Process(
            round=index,
            index=0,
            zygote=f"z{index}",
            start_method="fork",
            status=Status.OK,
            started=FIRST_NIGHT,
            seconds=1.0,
            channels={name: channel(series[index], units[name]) for name, series in per_process.items()},
        )
        for index in range(count)
    )
    return Record(
        run=run,
        test=test,
        workload=Workload(version="1", hash=workload),
        status=status,
        reason=reason,
        ended=FIRST_NIGHT,
        processes=processes,
    )


def run_of(
    day: int,
    tests: Mapping[str, float | Channels | Status | None],
    *,
    suite: str = "smoke",
    machine_class: str = "cpu-4t",
    device: str = "cpu",
    fingerprint: str = "env1",
    workloads: Mapping[str, str] | None = None,
    units: Mapping[str, str] = UNITS,
    run: str | None = None,
    facts: Mapping[str, str] | None = None,
    host: str = "host",
) -> Run:
    """The run of a night. A test is its CPU time, its channels, how it failed, or None for planned without a record."""
    run = run or f"r{day:04}"
    workloads = workloads or {}
    records = []
    for test, what in tests.items():
        workload = workloads.get(test, "w1")
        if isinstance(what, Status):
            records.append(record(run, test, {}, what, reason=f"planted {what}", workload=workload))
        elif what is not None:
            values = {"cpu_time": what} if isinstance(what, int | float) else what
            records.append(record(run, test, values, units=units, workload=workload))
    header = RunHeader(
        run=run,
        suite=suite,
        machine_class=machine_class,
        device=device,
        started=FIRST_NIGHT + timedelta(days=day),
        seed=1,
        rounds=1,
        processes=1,
        plan=tuple(
            PlannedTest(test=test, workload=Workload(version="1", hash=workloads.get(test, "w1"))) for test in tests
        ),
        measuring=Measuring(
            budget_s=1, warmup_cap_s=1, min_unit_s=0.01, min_samples=5, threads=4, timeout_s=60, memory_limit_bytes=None
        ),
        build=Build(
            id=f"build{day:04}",
            subject="torch",
            version=f"2.14.0.dev{day:04}",
            commit=f"{day:040x}",
            python="3.11.4",
            interpreter="/venv/bin/python",
            wheels={"torch": f"2.14.0.dev{day:04}"},
        ),
        environment=Environment(
            fingerprint=fingerprint, facts=dict(facts or {"cpu": "a CPU"}), observed={"load": str(day), "host": host}
        ),
        harness="harness1",
    )
    return Run(header, tuple(records))


def shards_of(whole: Run, *parts: Sequence[str]) -> list[Run]:
    """The run as shards, each with the tests of one of the parts."""
    shards = []
    for index, tests in enumerate(parts, start=1):
        changes = {
            "plan": tuple(planned for planned in whole.header.plan if planned.test in tests),
            "elsewhere": tuple(planned for planned in whole.header.plan if planned.test not in tests),
            "shard": Shard(index=index, count=len(parts)),
        }
        records = tuple(record for record in whole.records if record.test in tests)
        header = whole.header.model_copy(update=changes)
        shards.append(Run(header, records, header.shard.others()))
    return shards


def night_of(day: int, tests: Mapping[str, float | Channels | Status | None], **fields) -> NightSummary:
    return summarise(run_of(day, tests, **fields))


def equal_weights(tests: Sequence[str]) -> dict[str, float]:
    return {test: 1 / len(tests) for test in tests}
