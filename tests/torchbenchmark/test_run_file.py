"""The file of a run while it grows: whatever moment it is killed at, nothing is lost and nothing stands twice."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from torchbenchmark import run_file
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Attempt, Process, Record, RunHeader, Status, append_line, read_run, to_line
from torchbenchmark.run_file import RunFile

ONE, TWO, THREE = (f"test_eval[m{number}-cpu-eager]" for number in range(1, 4))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results" / "run.jsonl"


def journal_of(path: Path) -> Path:
    return path.with_name("run.jsonl.journal")


def release(file: RunFile) -> None:
    """What the end of a killed process does, and no more: the lock falls."""
    os.close(file._lock)


def resumed(path: Path) -> RunFile:
    file = RunFile(path)
    file.resume()
    return file


@pytest.fixture
def started(path: Path, make_header) -> RunFile:
    file = RunFile(path)
    file.start(make_header(ONE, TWO, THREE))
    return file


# One writer


def test_a_second_writer_is_refused_until_the_first_has_closed(path: Path, started: RunFile) -> None:
    with pytest.raises(BenchmarkError, match=r"run\.jsonl: another torchbench writes this run; wait, or name another"):
        RunFile(path)
    started.close()
    RunFile(path).close()


def test_a_second_process_is_refused_and_leaves_everything_as_it_was(
    path: Path, started: RunFile, make_process
) -> None:
    started.add_process(ONE, make_process(), 8)
    before = {entry.name: entry.stat().st_size for entry in path.parent.iterdir()}
    script = f"import pathlib; from torchbenchmark.run_file import RunFile; RunFile(pathlib.Path({str(path)!r}))"
    second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "another torchbench writes this run" in second.stderr
    assert {entry.name: entry.stat().st_size for entry in path.parent.iterdir()} == before


def test_a_lock_on_a_journal_that_its_holder_has_just_removed_is_taken_anew(
    path: Path, started: RunFile, make_record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for test in (ONE, TWO, THREE):
        started.add_record(make_record(test))
    real_lock, locked = run_file.fcntl.flock, []

    def lock_after_the_first_has_closed(descriptor: int, how: int) -> None:
        if not locked:
            started.close()
        locked.append(descriptor)
        real_lock(descriptor, how)

    monkeypatch.setattr(run_file.fcntl, "flock", lock_after_the_first_has_closed)
    second = RunFile(path)
    assert len(locked) == 2
    with pytest.raises(BenchmarkError, match="another torchbench"):
        RunFile(path)
    second.resume()
    second.close()


def test_a_place_that_cannot_be_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchmarkError, match=r"file/run\.jsonl: cannot be written: .*; name another file"):
        RunFile(tmp_path / "file" / "run.jsonl")


def test_a_zipped_file_is_refused_since_no_line_can_be_added_to_it(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"run\.jsonl\.gz: .*; name a \.jsonl file"):
        RunFile(tmp_path / "run.jsonl.gz")


# Start, growth and end


def test_a_run_is_on_disk_line_by_line_and_its_journal_goes_with_the_last_record(
    path: Path, started: RunFile, make_process, make_record
) -> None:
    assert read_run(path).missing == [ONE, TWO, THREE]
    for test in (ONE, TWO, THREE):
        started.add_process(test, make_process(), 8)
        started.add_record(make_record(test))
        assert read_run(path) == started.run()
    assert started.scratch.is_dir()
    assert journal_of(path).is_file()
    started.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["run.jsonl"]


def test_start_refuses_a_run_that_exists_and_leaves_it_alone(path: Path, started: RunFile, make_header) -> None:
    started.close()
    before = path.read_bytes()
    file = RunFile(path)
    with pytest.raises(BenchmarkError, match=r"run\.jsonl: exists already; go on with --resume, or name another file"):
        file.start(make_header(ONE))
    file.close()
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["run.jsonl"]


def test_start_takes_an_empty_file_and_forgets_the_journal_of_a_run_that_is_gone(
    path: Path, started: RunFile, make_header, make_process
) -> None:
    started.add_process(ONE, make_process(), 8)
    started.close()
    path.write_bytes(b"")
    file = RunFile(path)
    file.start(make_header(ONE, run="another"))
    release(file)
    assert resumed(path).progress == {}


def test_progress_is_kept_while_the_run_is_not_complete(
    path: Path, started: RunFile, make_process, make_record
) -> None:
    started.add_record(make_record(ONE))
    progress = started.add_process(TWO, make_process(1.0), None)
    assert progress.batch_size is None
    started.add_process(TWO, make_process(2.0, round=2), 4)
    progress = started.add_process(TWO, make_process(round=2, index=1, status=Status.CRASH), None)
    started.close()
    again = resumed(path)
    assert again.progress_of(TWO) == progress
    assert again.progress_of(TWO).batch_size == 4
    assert again.progress_of(THREE).processes == []
    assert again.run().missing == [TWO, THREE]


# Resume


def test_resume_drops_lines_torn_by_a_kill_in_both_files(
    path: Path, started: RunFile, make_process, make_record
) -> None:
    started.add_record(make_record(ONE))
    started.add_process(TWO, make_process(), 8)
    release(started)
    with path.open("ab") as file:
        file.write(to_line(make_record(TWO)).encode()[:-1])
    with journal_of(path).open("ab") as file:
        file.write(b'{"kind":"measured","te')
    again = resumed(path)
    assert [record.test for record in again.run().records] == [ONE]
    assert len(again.progress_of(TWO).processes) == 1
    again.add_process(TWO, make_process(round=2), 8)
    again.add_record(make_record(TWO))
    release(again)
    third = resumed(path)
    assert [record.test for record in third.run().records] == [ONE, TWO]
    assert [process.round for process in third.progress_of(TWO).processes] == [1, 2]


def test_resume_takes_failed_records_back_and_keeps_how_they_ended(
    path: Path, started: RunFile, make_process, make_record
) -> None:
    broken = make_process(status=Status.CRASH)
    started.add_process(ONE, broken, 8)
    started.add_record(make_record(ONE, broken, status=Status.CRASH))
    started.add_record(make_record(TWO, status=Status.SKIPPED))
    started.add_record(make_record(THREE, status=Status.UNSUPPORTED))
    started.close()
    again = resumed(path)
    assert read_run(path).missing == [ONE]
    first = again.progress_of(ONE).attempts
    assert [(attempt.status, attempt.reason) for attempt in first] == [(Status.CRASH, "it broke")]
    assert again.progress_of(ONE).processes == []
    again.add_record(make_record(ONE, status=Status.OOM, attempts=tuple(first)))
    again.close()
    third = resumed(path)
    assert [attempt.status for attempt in third.progress_of(ONE).attempts] == [Status.CRASH, Status.OOM]
    third.add_record(make_record(ONE, attempts=tuple(third.progress_of(ONE).attempts)))
    third.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["run.jsonl"]
    assert read_run(path).missing == []


def test_resume_may_leave_failed_records_as_they_are(path: Path, started: RunFile, make_record) -> None:
    started.add_record(make_record(ONE, status=Status.TIMEOUT))
    started.close()
    file = RunFile(path)
    file.resume(retry_failed=False)
    assert file.run().missing == [TWO, THREE]
    assert file.progress == {}


def test_resume_of_a_complete_run_changes_no_byte(path: Path, started: RunFile, make_record) -> None:
    for test in (ONE, TWO, THREE):
        started.add_record(make_record(test))
    started.close()
    before = path.read_bytes()
    resumed(path).close()
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["run.jsonl"]


def test_resume_begins_with_an_empty_folder_for_scratch(path: Path, started: RunFile) -> None:
    (started.scratch / "left.log").write_text("old")
    release(started)
    assert list(resumed(path).scratch.iterdir()) == []


def test_resume_without_a_run_is_refused_and_leaves_nothing_behind(path: Path) -> None:
    file = RunFile(path)
    with pytest.raises(BenchmarkError, match=r"run\.jsonl: cannot be read: No such file"):
        file.resume()
    file.close()
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{}", "unable to extract tag using discriminator 'kind'"),
        ("latency,1", "invalid JSON: "),
        ('{"kind":"measured","run":"r","test":"t","batch_size":null,"process":{}}', r"key measured\.process\.round: "),
    ],
)
def test_a_journal_that_is_damaged_is_told_with_its_line(path: Path, started: RunFile, line: str, problem: str) -> None:
    release(started)
    journal_of(path).write_text(f"{line}\n")
    with pytest.raises(BenchmarkError, match=rf"run\.jsonl\.journal:1: {problem}.*; remove the file to drop it"):
        resumed(path)


@pytest.mark.parametrize("failed", [False, True])
def test_the_journal_of_another_run_is_not_mixed_into_this_one(
    path: Path, started: RunFile, make_header, make_process, make_record, failed: bool
) -> None:
    if failed:
        started.add_record(make_record(ONE, status=Status.OOM))
        started.resume()
    else:
        started.add_process(ONE, make_process(), 8)
    release(started)
    path.unlink()
    append_line(path, make_header(ONE, run="another"))
    with pytest.raises(BenchmarkError, match=r"run\.jsonl\.journal:1: of run 20260102T.*, not another; remove"):
        resumed(path)


# Killed at any moment


class Killed(BaseException):
    """SIGKILL: nothing after it happens."""


@dataclass
class Disk:
    """Stands between RunFile and its two ways to write; kills before write number `fatal`, or in the middle of it."""

    fatal: int | None = None
    torn: bool = False
    writes: int = 0
    whole: list[object] = field(default_factory=list)  # what was written to its end, in order

    def append_line(self, path: Path, item: object) -> None:
        if self._is_fatal():
            if self.torn:
                line = to_line(item).encode()
                with path.open("ab") as file:
                    file.write(line[: len(line) // 2])
            raise Killed
        append_line(path, item)
        self.whole.append(item)

    def replace_lines(self, path: Path, items: list[object]) -> None:
        if self._is_fatal():
            if self.torn:
                path.with_name(f".{path.name}.1.tmp").write_bytes(b"{")
            raise Killed
        run_file_replace_lines(path, items)

    def _is_fatal(self) -> bool:
        self.writes += 1
        return self.writes - 1 == self.fatal


run_file_replace_lines = run_file.replace_lines
ROUNDS = 2
Measure = Callable[[Path, Disk, int], bool]


@pytest.fixture
def measure(make_header, make_process, make_record, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """One life of a driver: starts or resumes and measures what is missing. TWO crashes in lives 0 and 1. False if
    the disk has killed it."""
    monkeypatch.setattr("torchbenchmark.records.os.fsync", lambda descriptor: None)

    def decide(file: RunFile, test: str) -> None:
        progress = file.progress_of(test)
        failed = any(process.status.failed for process in progress.processes)
        if failed or len(progress.processes) == ROUNDS:
            status = Status.CRASH if failed else Status.OK
            file.add_record(make_record(test, *progress.processes, status=status, attempts=tuple(progress.attempts)))

    def live(file: RunFile, life: int) -> None:
        if file.path.exists():
            file.resume()
        else:
            file.start(make_header(ONE, TWO, THREE))
        for test in file.run().missing:
            decide(file, test)
        for number in range(1, ROUNDS + 1):
            for test in file.run().missing:
                if number not in {process.round for process in file.progress_of(test).processes}:
                    status = Status.CRASH if test == TWO and life < 2 else Status.OK
                    file.add_process(test, make_process(life + number / 10, round=number, status=status), 8)
                    decide(file, test)
        file.close()

    def measure(path: Path, disk: Disk, life: int) -> bool:
        monkeypatch.setattr(run_file, "append_line", disk.append_line)
        monkeypatch.setattr(run_file, "replace_lines", disk.replace_lines)
        file = RunFile(path)
        try:
            live(file, life)
        except Killed:
            release(file)
            return False
        return True

    return measure


def lost_or_doubled(path: Path, disks: list[Disk]) -> list[str]:
    """What is wrong with the finished run in `path`, given all that `disks` were told is written."""
    problems = []
    whole = [item for disk in disks for item in disk.whole]
    for record in read_run(path).records:
        rounds = [process.round for process in record.processes]
        if rounds != list(range(1, ROUNDS + 1)):
            problems.append(f"{record.test} has processes of rounds {rounds}")
        ends = [item for item in whole if isinstance(item, Record) and item.test == record.test]
        if len(record.attempts) != sum(end.status.failed for end in ends) or ends[-1] != record:
            problems.append(f"{record.test} tells of {len(record.attempts)} attempts after {len(ends)} records")
        told = [getattr(item, "process", None) for item in whole if getattr(item, "test", None) == record.test]
        good = [process for process in told if isinstance(process, Process) and process.status is Status.OK]
        if list(record.processes) != good:
            problems.append(f"{record.test} does not hold the {len(good)} processes that were told as done")
    if [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")] != ["run.jsonl"]:
        problems.append("something is left beside the run")
    return problems


def count_writes(measure: Measure, path: Path, life: int) -> int:
    disk = Disk()
    assert measure(path, disk, life)
    return disk.writes


@pytest.mark.parametrize("torn", [False, True])
def test_a_kill_at_any_write_of_a_run_and_another_of_its_resume_lose_and_double_nothing(
    tmp_path: Path, measure: Measure, torn: bool
) -> None:
    first_life = count_writes(measure, tmp_path / "uninterrupted" / "run.jsonl", 0)
    assert first_life == 1 + 5 + 3  # header, processes (TWO needs one to fail), records
    kills = 0
    for first in [*range(first_life), None]:
        begun = tmp_path / f"begun-{first}" / "run.jsonl"
        disk = Disk(first, torn)
        assert measure(begun, disk, 0) is (first is None)
        second_life = count_writes(measure, shutil.copytree(begun.parent, tmp_path / f"c{first}") / "run.jsonl", 1)
        for second in range(second_life):
            path = shutil.copytree(begun.parent, tmp_path / f"{first}-{second}") / "run.jsonl"
            disks = [Disk(whole=list(disk.whole)), Disk(second, torn), Disk(), Disk()]
            assert not measure(path, disks[1], 1)
            assert measure(path, disks[2], 2)  # decides what the second life has left undecided: TWO may have failed
            assert measure(path, disks[3], 3)
            assert lost_or_doubled(path, disks) == [], f"killed at write {first}, then at write {second}"
            kills += 1
    assert kills > 50


def test_a_kill_after_the_last_record_but_before_the_journal_is_gone_does_no_harm(
    path: Path, started: RunFile, make_process, make_record
) -> None:
    for test in (ONE, TWO, THREE):
        process = make_process()
        started.add_process(test, process, 8)
        started.add_record(make_record(test, process))
    release(started)
    before = read_run(path)
    again = resumed(path)
    assert again.run().missing == []
    again.close()
    assert read_run(path) == before
    assert [entry.name for entry in path.parent.iterdir()] == ["run.jsonl"]


def test_a_record_taken_back_twice_by_two_killed_resumes_counts_as_one_attempt(
    path: Path, started: RunFile, make_record, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = Attempt(status=Status.OOM, reason="first", ended=make_record(ONE).ended)
    started.add_record(make_record(ONE, status=Status.CRASH, attempts=(earlier,)))
    release(started)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run_file, "replace_lines", killed)
        for _ in range(2):
            file = RunFile(path)
            with pytest.raises(Killed):
                file.resume()
            release(file)
            assert [record.status for record in read_run(path).records] == [Status.CRASH]
    assert [attempt.status for attempt in resumed(path).progress_of(ONE).attempts] == [Status.OOM, Status.CRASH]


def test_the_header_is_what_resume_gives_back(path: Path, make_header) -> None:
    header: RunHeader = make_header(ONE, skip="known to hang")
    file = RunFile(path)
    file.start(header)
    file.close()
    assert RunFile(path).resume() == header
