"""The file of a run while it grows: records as they are decided, and a journal of what is measured but not decided.

A test is decided only after its last round, so a kill in the middle would lose hours if the processes measured so far
stood nowhere. Each is appended to the journal at once; --resume reads both files and goes on where the run ended.
"""

import contextlib
import fcntl
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import (
    Attempt,
    Process,
    Record,
    Run,
    RunHeader,
    append_line,
    complete_lines,
    read_run,
    replace_lines,
    require_no_special_file,
)
from torchbenchmark.yaml_files import first_problem


class _Measured(BaseModel):
    """Journal: one process of a test that is not decided yet."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Literal["measured"] = "measured"
    run: str
    test: str
    batch_size: int | None
    process: Process


class _Superseded(BaseModel):
    """Journal: a failed record that --resume took back in order to measure its test anew."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Literal["superseded"] = "superseded"
    record: Record


_ENTRY: TypeAdapter[_Measured | _Superseded] = TypeAdapter(
    Annotated[_Measured | _Superseded, Field(discriminator="kind")]
)


@dataclass
class Progress:
    """What is known of one undecided test."""

    processes: list[Process] = field(default_factory=list)
    batch_size: int | None = None
    attempts: list[Attempt] = field(default_factory=list)


class RunFile:
    """Holds the run's file exclusively; everything added is on disk when the call returns."""

    def __init__(self, path: Path) -> None:
        path = path.absolute()  # the zygotes work in another folder
        self.path = path
        self.journal = path.with_name(f"{path.name}.journal")
        self.scratch = path.with_name(f"{path.name}.scratch")
        self.records: dict[str, Record] = {}
        self.progress: dict[str, Progress] = {}
        if path.suffix == ".gz":
            raise BenchmarkError(f"{path}: a run grows line by line, unzipped; name a .jsonl file and zip it when done")
        require_no_special_file(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._take_lock()
        except BlockingIOError as error:
            raise BenchmarkError(f"{path}: another torchbench writes this run; wait, or name another file") from error
        except OSError as error:
            raise BenchmarkError(f"{path}: cannot be written: {error.strerror}; name another file") from error

    def start(self, header: RunHeader) -> None:
        """Begin a new run. Raises BenchmarkError if the file holds one already."""
        if self.path.exists() and self.path.stat().st_size > 0:
            raise BenchmarkError(f"{self.path}: exists already; go on with --resume, or name another file with --out")
        self.header = header
        self.journal.write_bytes(b"")
        replace_lines(self.path, [header])
        self._fresh_scratch()

    def resume(self, *, retry_failed: bool = True) -> RunHeader:
        """Read what is there and take failed records back to be measured again."""
        run = read_run(self.path)
        self.header = run.header
        self._read_journal()
        retried = [record for record in run.records if retry_failed and record.status.failed]
        for record in retried:
            append_line(self.journal, _Superseded(record=record))
            self._supersede(record)
        kept = [record for record in run.records if record not in retried]
        replace_lines(self.path, [run.header, *kept])  # also drops a last line torn by a kill
        self.records = {record.test: record for record in kept}
        self._fresh_scratch()
        return run.header

    def add_process(self, test: str, process: Process, batch_size: int | None) -> Progress:
        append_line(self.journal, _Measured(run=self.header.run, test=test, batch_size=batch_size, process=process))
        return self._note_process(test, process, batch_size)

    def add_record(self, record: Record) -> None:
        append_line(self.path, record)
        self.records[record.test] = record

    def progress_of(self, test: str) -> Progress:
        return self.progress.setdefault(test, Progress())

    def run(self) -> Run:
        return Run(self.header, tuple(self.records.values()))

    def close(self) -> None:
        """Let go of the file; the journal is removed if it holds nothing, or once every planned test has its record."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        complete = hasattr(self, "header") and not self.run().missing
        if complete or os.fstat(self._lock).st_size == 0:
            self.journal.unlink(missing_ok=True)
        os.close(self._lock)

    def _take_lock(self) -> int:
        """The journal's descriptor, locked. Raises BlockingIOError if another process holds it."""
        while True:
            descriptor = os.open(self.journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self.journal.stat()):
                    return descriptor
            os.close(descriptor)  # its holder removed it between our open and our lock

    def _note_process(self, test: str, process: Process, batch_size: int | None) -> Progress:
        progress = self.progress_of(test)
        progress.processes.append(process)
        progress.batch_size = batch_size if batch_size is not None else progress.batch_size
        return progress

    def _supersede(self, record: Record) -> None:
        """Forget the processes of the failed record; keep how it ended, and how those before it did."""
        attempt = Attempt(status=record.status, reason=record.reason, ended=record.ended)
        self.progress[record.test] = Progress(attempts=[*record.attempts, attempt])

    def _read_journal(self) -> None:
        content = self.journal.read_bytes()
        lines = complete_lines(content, str(self.journal))
        for number, line in enumerate(lines, start=1):
            try:
                entry = _ENTRY.validate_json(line)
            except ValidationError as error:
                problem = first_problem(error)
                raise BenchmarkError(f"{self.journal}:{number}: {problem}; remove the file to drop it") from error
            run = entry.run if isinstance(entry, _Measured) else entry.record.run
            if run != self.header.run:
                raise BenchmarkError(
                    f"{self.journal}:{number}: of run {run}, not {self.header.run}; remove the file to drop it"
                )
            if isinstance(entry, _Measured):
                self._note_process(entry.test, entry.process, entry.batch_size)
            else:
                self._supersede(entry.record)
        whole = sum(len(line) + 1 for line in lines)
        if whole < len(content):
            os.truncate(self.journal, whole)

    def _fresh_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
