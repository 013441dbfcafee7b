"""The record schema and its file: what was written is read again, and anything else is refused with file and line."""

import gzip
import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import (
    Attempt,
    Channel,
    Measuring,
    PlannedTest,
    Run,
    Status,
    Workload,
    append_line,
    decode_run,
    encode_run,
    read_run,
    replace_lines,
    to_line,
)

ONE, TWO, THREE, FOUR = (f"test_eval[m{number}-cpu-eager]" for number in range(1, 5))


@pytest.fixture
def run(make_header, make_process, make_record) -> Run:
    header = make_header(ONE, TWO)
    failed = make_record(TWO, make_process(status=Status.CRASH), status=Status.CRASH)
    return Run(header, (make_record(ONE, make_process(0.1, 0.2), batch_size=8), failed))


@pytest.fixture
def lines(run: Run) -> list[str]:
    return [to_line(item) for item in (run.header, *run.records)]


def decoded(*lines: str, torn: str = "") -> Run:
    return decode_run("".join(f"{line}\n" for line in lines).encode() + torn.encode(), "run.jsonl")


def changed(line: str, **changes: object) -> str:
    return json.dumps(json.loads(line) | changes)


def test_a_run_that_was_written_is_read_again(run: Run, lines: list[str]) -> None:
    assert decoded(*lines) == run
    assert [json.loads(line)["schema"] for line in lines] == [1, 1, 1]
    assert json.loads(lines[0])["class"] == "cpu-some-t2"


def test_a_gzipped_run_is_read_by_its_content_whatever_its_name(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(encode_run(run))
    assert read_run(path) == run


def test_encoding_a_run_twice_gives_the_same_bytes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = encode_run(run)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert encode_run(run) == before


def test_a_last_line_torn_by_a_kill_is_left_out_wherever_it_was_cut(run: Run, lines: list[str]) -> None:
    header, first, last = lines
    for cut in (1, len(last) // 2, len(last)):
        read = decoded(header, first, torn=last[:cut])
        assert read.records == run.records[:1]
        assert read.missing == [TWO]


def test_a_torn_line_inside_a_gzipped_file_is_left_out_too(lines: list[str]) -> None:
    content = gzip.compress(f"{lines[0]}\n{lines[1][:40]}".encode())
    assert decode_run(content, "run.jsonl.gz").records == ()


def test_damaged_gzip_is_refused_wherever_the_damage_is(run: Run) -> None:
    content = encode_run(run)
    for damaged in (
        content[:3],  # in its head
        content[: len(content) // 2],  # cut off
        content[:12] + bytes(40) + content[52:],  # another content
        content[:-8] + bytes(8),  # another checksum
        content + b"more",
    ):
        with pytest.raises(BenchmarkError, match=r"^run\.jsonl\.gz: a damaged gzip file"):
            decode_run(damaged, "run.jsonl.gz")


@pytest.mark.parametrize("content", ["", '{"kind": "run"'])
def test_a_file_without_a_whole_line_is_refused_as_empty(content: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl: empty; expected the records of a run"):
        decoded(torn=content)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"nothing\.jsonl: cannot be read: No such file"):
        read_run(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("test,latency", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1, 2]", "expected a JSON object, found list"),
        ("null", "expected a JSON object, found NoneType"),
        ('{"benchmarks": []}', "not a record of torchbench"),
        ('{"kind": "run"}', "not a record of torchbench"),
        ('{"kind": "run", "schema": 2}', "record schema 2, but this version reads schema 1"),
        ('{"kind": "run", "schema": "1"}', "record schema '1', but"),
        ('{"kind": "record", "schema": 1}', "expected a line of kind 'run', found 'record'"),
        ('{"kind": "run", "schema": 1}', r"key run: is missing \(and \d+ more\)"),
    ],
)
def test_the_file_of_another_program_is_refused_at_its_first_line(line: str, problem: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"^run\.jsonl:1: {problem}"):
        decoded(line)


def test_bytes_that_are_not_utf8_are_refused_with_their_line(lines: list[str]) -> None:
    content = f"{lines[0]}\n".encode() + lines[1].replace("it broke", "").encode()[:-1] + b',"reason":"\xff"}\n'
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: not JSON"):
        decode_run(content, "run.jsonl")


@pytest.mark.parametrize("text", ["half a \ud800", "\x1b[2J", "a\u202eb", "nul\0"])
def test_text_that_no_run_writes_is_refused_with_its_line(lines: list[str], text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: .* holds a control character or half a character"):
        decoded(lines[0], changed(lines[1], reason=text))
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:1: .* holds a control character or half a character"):
        decoded(changed(lines[0], device=text), lines[1])


def test_a_header_has_no_line_ends_in_it_and_a_reason_may(lines: list[str]) -> None:
    assert decoded(lines[0], changed(lines[1], reason="two\nlines")).records[0].reason == "two\nlines"
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:1: "):
        decoded(changed(lines[0], harness="two\nlines"))


@pytest.mark.parametrize("started", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-01-01T00:00:00Z"])
def test_a_start_outside_of_our_time_is_refused(lines: list[str], started: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:1: .*started.*no time at which a run can have started"):
        decoded(changed(lines[0], started=started))


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e19])
def test_a_sample_that_sums_could_not_hold_is_refused(lines: list[str], value: float) -> None:
    process = json.loads(lines[1])["processes"][0]
    process["channels"]["latency"]["samples"] = [value, value]
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: .*samples"):
        decoded(lines[0], changed(lines[1], processes=[process]))


@pytest.mark.parametrize("unit", ["", "s | x", "[s](http://evil)", "x" * 17])
def test_a_unit_that_is_none_is_refused(lines: list[str], unit: str) -> None:
    process = json.loads(lines[1])["processes"][0]
    process["channels"]["latency"]["unit"] = unit
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: .*unit"):
        decoded(lines[0], changed(lines[1], processes=[process]))


def test_a_file_that_would_fill_the_memory_is_refused(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchbenchmark.records.LARGEST_FILE_BYTES", 10_000)
    for content in (b" " * 10_001, gzip.compress(b" " * 10_000_000)):
        with pytest.raises(BenchmarkError, match="run: larger than 0 MiB"):
            decode_run(content, "run")


def test_a_second_header_is_refused_with_its_line(lines: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:3: expected a line of kind 'record', found 'run'"):
        decoded(lines[0], lines[1], lines[0])


def test_a_second_record_of_a_test_is_refused_with_its_line(lines: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:3: a second record of test_eval\[m1-cpu-eager\]"):
        decoded(lines[0], lines[1], lines[1])


def test_a_record_of_another_run_is_refused_with_its_line(lines: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:3: a record of run other, not 20260102T"):
        decoded(*lines[:2], changed(lines[2], run="other"))


def test_a_record_outside_the_plan_is_refused_with_its_line(lines: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: test_eval\[m3-cpu-eager\] is not in the plan"):
        decoded(lines[0], changed(lines[1], test=THREE))


def test_a_damaged_line_in_the_middle_is_refused_and_not_left_out(lines: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"^run\.jsonl:2: not JSON"):
        decoded(lines[0], lines[1][:-5], lines[2])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"status": "fine"}, "key status: expected "),
        ({"colour": "red"}, "unknown key colour"),
        ({"ended": "yesterday"}, "key ended: "),
    ],
)
def test_a_record_that_the_schema_refuses_is_told_with_line_and_key(lines, changes: dict, problem: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"^run\.jsonl:2: {problem}"):
        decoded(lines[0], changed(lines[1], **changes))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("written", "key"),
    [
        ('"samples":[0.1,0.2]', r"processes\.0\.channels\.latency\.samples\.1"),
        ('"median":0.1', r"processes\.0\.channels\.latency\.median"),
        ('"seconds":1.5', r"processes\.0\.seconds"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_with_line_and_key(lines, number: str, written: str, key: str) -> None:
    assert written in lines[1]
    old = written.rpartition(":")[2].strip("[]").rpartition(",")[2]
    line = lines[1].replace(written, written.replace(old, number))
    with pytest.raises(BenchmarkError, match=rf"^run\.jsonl:2: key {key}: expected a finite number"):
        decoded(lines[0], line)


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("field", ["median", "mean", "p20", "samples"])
def test_a_channel_that_is_not_finite_cannot_be_made(field: str, number: float) -> None:
    values = {"unit": "s", "samples": (0.1,), "median": 0.1, "mean": 0.1, "p20": 0.1}
    with pytest.raises(ValidationError, match="finite"):
        Channel(**(values | {field: (number,) if field == "samples" else number}))


def test_no_part_of_the_header_can_be_made_that_json_could_not_hold() -> None:
    with pytest.raises(ValidationError, match="finite"):
        Measuring(
            budget_s=math.nan, warmup_cap_s=math.inf, min_unit_s=0.01, min_samples=3, threads=2, timeout_s=math.inf
        )


def test_a_channel_without_samples_cannot_be_made() -> None:
    with pytest.raises(ValidationError, match="samples"):
        Channel(unit="s", samples=(), median=0.1, mean=0.1, p20=0.1)


def test_a_plan_has_at_least_one_test_and_none_twice(make_header) -> None:
    with pytest.raises(ValidationError, match="a test stands twice in the plan"):
        make_header(ONE, TWO, ONE)
    with pytest.raises(ValidationError, match="plan"):
        make_header()


def test_samples_come_from_processes_that_ended_ok_in_order(make_process, make_record) -> None:
    record = make_record(
        ONE, make_process(3.0, 1.0), make_process(9.0).model_copy(update={"status": Status.OOM}), make_process(2.0)
    )
    assert record.samples("latency") == [3.0, 1.0, 2.0]
    assert [channel.median for channel in record.process_channels("latency")] == [3.0, 2.0]
    assert record.samples("flops") == [] == record.process_channels("flops")


def test_every_status_is_ok_expected_or_failed_and_only_one_of_them() -> None:
    assert {status for status in Status if status.expected} == {Status.SKIPPED, Status.UNSUPPORTED}
    assert {status for status in Status if not status.failed} == {Status.OK, Status.SKIPPED, Status.UNSUPPORTED}


@pytest.mark.parametrize(
    ("statuses", "coverage", "missing"),
    [
        ((Status.OK, Status.OK, Status.OK, Status.OK), 1.0, 0),
        ((Status.OK, Status.OK, Status.CRASH), 0.5, 1),
        ((Status.OK, Status.SKIPPED, Status.UNSUPPORTED, Status.TIMEOUT), 0.5, 0),
        ((Status.OK, Status.OK, Status.OK, Status.SKIPPED), 1.0, 0),
        ((Status.OK, Status.SKIPPED), 1 / 3, 2),
        ((Status.SKIPPED, Status.SKIPPED, Status.UNSUPPORTED, Status.UNSUPPORTED), 0.0, 0),
        ((), 0.0, 4),
    ],
)
def test_coverage_is_the_share_of_ok_among_the_tests_meant_to_run(
    make_header, make_record, statuses: tuple[Status, ...], coverage: float, missing: int
) -> None:
    tests = (ONE, TWO, THREE, FOUR)
    records = tuple(make_record(test, status=status) for test, status in zip(tests, statuses, strict=False))
    run = Run(make_header(*tests), records)
    assert run.coverage == pytest.approx(coverage)
    assert run.missing == list(tests[len(statuses) :])
    assert len(run.missing) == missing


def test_counts_tell_every_status_also_those_that_never_came(run: Run) -> None:
    assert run.counts() == dict.fromkeys(Status, 0) | {Status.OK: 1, Status.CRASH: 1}


def test_lines_are_appended_whole_and_in_order(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "run.jsonl"
    for item in (run.header, *run.records):
        append_line(path, item)
    assert path.read_bytes().count(b"\n") == 3
    assert read_run(path) == run


def test_replacing_lines_shows_a_reader_the_old_file_until_the_new_one_is_complete(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "run.jsonl"
    replace_lines(path, [run.header])
    seen = []

    def items():
        for item in (run.header, *run.records):
            seen.append(read_run(path).records)
            yield item

    with path.open("rb") as reader_with_open_file:
        replace_lines(path, items())
        assert decode_run(reader_with_open_file.read(), "old").records == ()
    assert seen == [(), (), ()]
    assert read_run(path) == run
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_replacement_that_fails_halfway_leaves_the_old_file(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "run.jsonl"
    replace_lines(path, [run.header])

    def items():
        yield run.header
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_lines(path, items())
    assert read_run(path).header == run.header


def test_attempts_and_reasons_to_skip_travel_with_the_run(make_header, make_record, run: Run) -> None:
    attempt = Attempt(status=Status.OOM, reason="too big — 5 GiB", ended=run.header.started)
    record = make_record(ONE, attempts=(attempt,))
    whole = Run(make_header(ONE, skip="known to hang"), (record,))
    read = decode_run(encode_run(whole), "run")
    assert read.records[0].attempts == (attempt,)
    assert read.header.plan == (
        PlannedTest(test=ONE, workload=Workload(version="1", hash="abcdef012345"), skip="known to hang"),
    )
