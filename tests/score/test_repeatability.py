"""`torchbench repeatability`: how far processes of repeated runs lie apart, test by test, as V1 verified its 7 %."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from score.repeatability import Repeated
from score.repeatability_command import register
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
    Status,
    Workload,
    encode_run,
)
from torchbenchmark.terminal import new_app, run_app

STEADY, LOOSE = "test_eval[resnet18-cuda-eager]", "test_train[resnet18-cuda-eager]"
START = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
WORKLOAD = Workload(version="1", hash="abc")


def process(number: int, status: Status = Status.OK, **means: float) -> Process:
    channels = {
        name: Channel(unit="s", samples=[mean, mean], median=99.0, mean=mean, p20=mean) for name, mean in means.items()
    }
    return Process(
        round=number, index=0, zygote="z", start_method="fork", status=status, started=START, seconds=1.0,
        channels=channels,
    )  # fmt: skip


def record(test: str, *processes: Process, status: Status = Status.OK) -> Record:
    return Record(run="r1", test=test, workload=WORKLOAD, status=status, ended=START, processes=processes)


def run_of(*records: Record, run: str = "r1", build: str = "b1", machine_class: str = "h200-x1") -> Run:
    header = RunHeader(
        run=run,
        suite="v1",
        machine_class=machine_class,
        device="cuda",
        started=START,
        seed=1,
        rounds=3,
        processes=1,
        plan=tuple(PlannedTest(test=test, workload=WORKLOAD) for test in (STEADY, LOOSE)),
        measuring=Measuring(
            budget_s=1, warmup_cap_s=1, min_unit_s=0.01, min_samples=3, threads=1, timeout_s=60, memory_limit_bytes=None
        ),
        build=Build(id=build, subject="torch", version="2.9.0", python="3.11", interpreter="/usr/bin/python"),
        environment=Environment(fingerprint="f", facts={}),
        harness="h",
    )
    return Run(header, [record.model_copy(update={"run": run}) for record in records])


@pytest.fixture
def saved(tmp_path: Path):
    def save(run: Run) -> Path:
        path = tmp_path / f"run{len(list(tmp_path.iterdir()))}.jsonl.gz"
        path.write_bytes(encode_run(run))
        return path

    return save


@pytest.fixture
def torchbench(capfd):
    app = new_app("tests")
    app.callback()(lambda: None)
    register(app)

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leave:
            run_app(app, ["repeatability", *map(str, arguments)])
        captured = capfd.readouterr()
        return leave.value.code, captured.out, captured.err

    return call


LATENCIES = [record(STEADY, *(process(n, latency=1 + n / 100) for n in range(3)))]
LATENCIES += [record(LOOSE, *(process(n, latency=2.0 + 0.2 * (n == 1), gpu_time=1.0) for n in range(3)))]


def test_the_deviation_is_the_highest_mean_of_a_process_over_the_lowest(torchbench, saved):
    code, out, _ = torchbench(saved(run_of(*LATENCIES)), "--json")
    assert code == 0
    found = {(one["test"], one["channel"]): one for one in json.loads(out)["tests"]}
    assert found[STEADY, "latency"]["deviation"] == pytest.approx(0.02)
    assert found[LOOSE, "latency"]["deviation"] == pytest.approx(0.1)
    assert found[LOOSE, "gpu_time"]["deviation"] == 0.0
    assert len(found) == 3


def test_processes_of_several_runs_are_held_against_each_other(torchbench, saved):
    later = run_of(record(STEADY, process(0, latency=1.5)), run="r2")
    code, out, _ = torchbench(saved(run_of(*LATENCIES)), saved(later), "--json", "--channel", "latency")
    assert code == 0
    worst, other = json.loads(out)["tests"]
    assert (worst["test"], worst["deviation"], len(worst["means"])) == (STEADY, pytest.approx(0.5), 4)
    assert other["test"] == LOOSE


def test_tests_above_the_limit_are_listed_by_name(torchbench, saved):
    path = saved(run_of(*LATENCIES))
    _, out, _ = torchbench(path)
    assert [line.split()[0] for line in out.splitlines() if "%  " in line] == [LOOSE, STEADY, LOOSE]
    assert f"latency: 1 test of 2 above 7%: {LOOSE}" in out and "gpu_time: 0 tests of 1 above 7%\n" in out
    _, out, _ = torchbench(path, "--limit", 0.01, "--channel", "latency")
    assert f"latency: 2 tests of 2 above 1%: {LOOSE}, {STEADY}" in out and "gpu_time" not in out


def test_the_table_has_the_whole_id_of_every_test(torchbench, saved):
    _, out, _ = torchbench(saved(run_of(*LATENCIES)), "--channel", "latency")
    rows = [line.split() for line in out.splitlines() if "%  " in line]
    assert [row[0] for row in rows] == [LOOSE, STEADY]


def test_what_did_not_end_ok_and_what_has_too_few_processes_does_not_count(torchbench, saved):
    failed = record(STEADY, *(process(n, latency=1.0) for n in range(3)), status=Status.CRASH)
    some = record(LOOSE, *(process(n, latency=1.0) for n in range(3)), process(3, Status.CRASH, latency=9.0))
    code, out, _ = torchbench(saved(run_of(failed, some)), "--json")
    assert code == 0
    ((only,),) = [json.loads(out)["tests"]]
    assert (only["test"], only["deviation"]) == (LOOSE, 0.0)
    code, _, err = torchbench(saved(run_of(record(LOOSE, process(0, latency=1.0), process(1, latency=1.0)))))
    assert (
        code == 2
        and "no test has latency, gpu_time of 3 processes or more that ended ok; measure with --rounds 3" in err
    )


@pytest.mark.parametrize("other", [{"build": "b2"}, {"machine_class": "h100-x1"}])
def test_runs_of_different_builds_or_machines_are_refused(torchbench, saved, other):
    first, second = saved(run_of(*LATENCIES)), saved(run_of(*LATENCIES, **other))
    code, out, err = torchbench(first, second)
    assert (code, out) == (2, "")
    assert str(second) in err and next(iter(other.values())) in err and "give runs of one" in err


def test_a_run_that_is_given_twice_is_refused_for_it_agrees_with_itself(torchbench, saved):
    first, again = saved(run_of(*LATENCIES)), saved(run_of(*LATENCIES))
    code, out, err = torchbench(first, again)
    assert (code, out) == (2, "") and f"{again}: holds the same run as {first}, r1; give each run once" in err


def test_a_test_that_is_other_work_in_another_run_is_refused(torchbench, saved):
    changed = LATENCIES[0].model_copy(update={"workload": Workload(version="1", hash="def")})
    first, second = saved(run_of(*LATENCIES)), saved(run_of(changed, run="r2"))
    code, out, err = torchbench(first, second)
    assert (code, out) == (2, "") and f"{second}: {STEADY} is other work there than in {first}" in err


def test_a_channel_that_is_named_twice_is_told_once(torchbench, saved):
    _, out, _ = torchbench(saved(run_of(*LATENCIES)), "--json", "--channel", "latency", "--channel", "latency")
    assert len(json.loads(out)["tests"]) == 2


@pytest.mark.parametrize("limit", ["nan", "-0.1"])
def test_a_limit_that_is_none_is_refused(torchbench, saved, limit):
    code, out, err = torchbench(saved(run_of(*LATENCIES)), "--limit", limit)
    assert (code, out) == (2, "") and f"--limit {limit}: a share of at least 0" in err


def test_a_channel_that_nobody_knows_is_told_with_those_that_there_are(torchbench, saved):
    code, _, err = torchbench(saved(run_of(*LATENCIES)), "--channel", "wall")
    assert code == 2 and "--channel 'wall'" in err and "latency" in err


def test_a_channel_that_is_zero_has_no_deviation_and_one_that_was_once_has_any():
    zero = Repeated(STEADY, "latency", (0.0, 0.0, 0.0))
    assert zero.deviation == 0.0
    assert replace(zero, means=(0.0, 0.0, 1.0)).deviation == math.inf
