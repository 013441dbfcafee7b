"""Our own records as results: the mean over all iterations of all processes that ended ok."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats import Provenance, read_latencies, read_measurements
from torchbenchmark.formats.run_records import measurements_of
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

ALEXNET = "test_train[alexnet-cpu-eager]"
YOLO = "test_eval[yolov3-cpu-eager]"
START = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
WORKLOAD = Workload(version="1", hash="abc")


def process(*samples: float, status: Status = Status.OK, channel: str = "latency") -> Process:
    measured = Channel(unit="s", samples=samples, median=samples[0], mean=99.0, p20=samples[0])
    return Process(
        round=0,
        index=0,
        zygote="z",
        start_method="fork",
        status=status,
        started=START,
        seconds=1.0,
        channels={channel: measured},
    )


def record(test: str, *processes: Process, status: Status = Status.OK) -> Record:
    return Record(run="r1", test=test, workload=WORKLOAD, status=status, ended=START, processes=processes)


def run_of(*records: Record) -> Run:
    header = RunHeader(
        run="r1",
        suite="core",
        machine_class="xeon-x8",
        device="cpu",
        started=START,
        seed=1,
        rounds=1,
        processes=1,
        plan=tuple(PlannedTest(test=test, workload=WORKLOAD) for test in (ALEXNET, YOLO)),
        measuring=Measuring(
            budget_s=1, warmup_cap_s=1, min_unit_s=0.01, min_samples=3, threads=1, timeout_s=60, memory_limit_bytes=None
        ),
        build=Build(id="b1", subject="torch", version="2.9.0", python="3.11", interpreter="/usr/bin/python"),
        environment=Environment(fingerprint="f", facts={}),
        harness="h",
    )
    return Run(header, records)


@pytest.fixture
def saved(tmp_path: Path):
    def save(*records: Record, compressed: bool = True) -> Path:
        content = encode_run(run_of(*records))
        path = tmp_path / ("run.jsonl.gz" if compressed else "run.jsonl")
        path.write_bytes(content if compressed else gzip.decompress(content))
        return path

    return save


@pytest.mark.parametrize("compressed", [True, False])
def test_iterations_of_all_processes_count_alike_and_not_the_means_of_processes(saved, compressed: bool) -> None:
    path = saved(record(ALEXNET, process(1.0, 1.0, 1.0), process(5.0)), compressed=compressed)
    assert read_latencies(path) == {ALEXNET: 2.0}


def test_a_process_that_failed_inside_an_ok_record_does_not_count(saved) -> None:
    path = saved(record(ALEXNET, process(2.0), process(50.0, status=Status.CRASH)))
    assert read_latencies(path) == {ALEXNET: 2.0}


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_record_that_did_not_end_ok_gives_no_time(saved, status: Status) -> None:
    path = saved(record(ALEXNET, process(2.0)), record(YOLO, process(3.0), status=status))
    assert read_latencies(path) == {ALEXNET: 2.0}


def test_a_record_without_latency_is_left_out(saved) -> None:
    path = saved(record(ALEXNET, process(2.0)), record(YOLO, process(3.0, channel="cpu_time")))
    assert read_latencies(path) == {ALEXNET: 2.0}


def test_a_run_in_which_nothing_ended_ok_is_an_error(saved) -> None:
    path = saved(record(ALEXNET, process(2.0), status=Status.OOM))
    with pytest.raises(BenchmarkError, match=r"run\.jsonl\.gz: none of the 2 planned tests ended ok"):
        read_latencies(path)


@pytest.mark.parametrize("sample", [0.0, -1.0])
def test_a_sample_that_is_no_time_is_refused_with_its_test(saved, sample: float) -> None:
    path = saved(record(ALEXNET, process(1.0, sample)))
    with pytest.raises(BenchmarkError, match=r"run\.jsonl\.gz: test_train\[alexnet-cpu-eager\]: .*no time"):
        read_latencies(path)


def test_build_date_and_class_come_from_the_header(saved) -> None:
    measured = read_measurements(saved(record(ALEXNET, process(1.0))))
    assert measured.provenance == Provenance(
        "run.jsonl.gz",
        "torch 2.9.0",
        "2026-01-02",
        "xeon-x8",
        versions="python 3.11",
        command="torchbench run --suite core --device cpu --rounds 1 --processes 1 --budget 1 --threads 1",
    )


def test_card_driver_versions_and_what_was_chosen_come_from_the_header() -> None:
    run = run_of(record(ALEXNET, process(1.0)))
    facts = {
        "gpu.name": "NVIDIA H200",
        "gpu.driver_version": "580.1",
        "cpus": "16",
        "lock.timm": "1.0.31",
        "image": "x",
    }
    header = run.header.model_copy(
        update={
            "environment": Environment(fingerprint="f", facts=facts),
            "build": run.header.build.model_copy(update={"wheels": {"torch": "2.9.0"}, "libraries": {"cuda": "13.0"}}),
            "selection": ("alex*", "--backend jit"),
        }
    )
    told = measurements_of(Run(header, run.records), "run.jsonl").provenance
    assert told.machine == "name NVIDIA H200, driver_version 580.1, cpus 16"
    assert told.versions == "cuda 13.0, python 3.11, timm 1.0.31, torch 2.9.0"
    assert told.command.endswith("--threads 1 --filter 'alex*' --backend jit")


def test_a_line_that_is_no_record_is_refused_with_file_and_line(saved) -> None:
    path = saved(record(ALEXNET, process(1.0)), compressed=False)
    path.write_bytes(path.read_bytes() + b'{"kind": "record"}\n')
    with pytest.raises(BenchmarkError, match=r"run\.jsonl:3: "):
        read_latencies(path)


def test_records_of_a_later_schema_are_refused(saved) -> None:
    path = saved(record(ALEXNET, process(1.0)), compressed=False)
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    with pytest.raises(BenchmarkError, match=r"run\.jsonl:1: record schema 2"):
        read_latencies(path)


def test_a_damaged_gzip_file_is_refused(saved) -> None:
    path = saved(record(ALEXNET, process(1.0)))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(BenchmarkError, match=r"run\.jsonl\.gz: a damaged gzip file"):
        read_latencies(path)
