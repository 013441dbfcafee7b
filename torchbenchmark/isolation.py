"""The driver's end of a zygote: starts it, has it measure one test at a time, and ends it with all its children."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchbenchmark.environment import worker_variables
from torchbenchmark.errors import BenchmarkError

PRELOAD_TIMEOUT_S = 300.0
KILL_GRACE_S = 10.0
POLL_S = 0.25
LOG_TAIL_BYTES = 4000
EVENTS = ("importing", "imported", "refused", "ready", "started", "stage", "exited", "unforkable")


class ZygoteDied(Exception):
    """The zygote ended or stopped answering. `importing` names the model whose import it did not survive, if any."""

    def __init__(
        self, reason: str, importing: str | None = None, during_import: bool = False, status: str = "crash"
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status  # of the test in the air
        self.importing = importing
        self.during_import = during_import


class Stopped(Exception):
    """The run is being stopped: whoever waits for a zygote gives it up."""


@dataclass(frozen=True)
class ModelSource:
    name: str
    folder: Path


@dataclass(frozen=True)
class ImportOutcome:
    """What importing one model did to the zygote."""

    seconds: float
    problem: str | None
    threads_added: int
    thread_names: tuple[str, ...]
    touched_cuda: bool

    @property
    def forkable(self) -> bool:
        return self.threads_added == 0 and not self.touched_cuda

    @property
    def why_not_forkable(self) -> str:
        threads = f"leaves threads running ({', '.join(self.thread_names)})" if self.threads_added else ""
        return " and ".join(filter(None, (threads, "initialises CUDA" if self.touched_cuda else "")))


@dataclass(frozen=True)
class ChildOutcome:
    """How a child ended: its own result, or why there is none."""

    result: dict[str, Any] | None
    status: str
    reason: str
    detail: str
    seconds: float


@dataclass
class _Flight:
    """The measurement in the air."""

    request_id: int
    began: float
    pid: int | None = None
    stage: str = "start"
    ending: tuple[str, str] | None = None  # (status, reason) once the driver has killed it
    log: Path = field(default_factory=Path)


class Zygote:
    """One zygote of one build. Use as a context manager: leaving it ends every process it started."""

    def __init__(
        self,
        python: Path,
        script: Path,
        name: str,
        scratch: Path,
        variables: dict[str, str],
        *,
        cpus: Collection[int] = (),
        stopping: threading.Event | None = None,
    ) -> None:
        """`cpus` are the cores for it and its children, all if empty. Waiting raises Stopped once `stopping` is set."""
        self.name = name
        self._stopping = stopping or threading.Event()
        self.scratch = scratch
        self.log = scratch / f"{name}.log"
        working_folder = scratch / f"{name}.cwd"  # not the scratch itself: models write, and remove, where they are
        working_folder.mkdir(parents=True, exist_ok=True)
        self.imports: dict[str | None, ImportOutcome] = {}  # model -> outcome; None is torch itself
        self._ready = False
        self._next_id = 0
        self._buffer = b""
        control_read, self._control = os.pipe()
        self._events, events_write = os.pipe()
        command = [str(python), "-P", str(script), "--control", str(control_read), "--events", str(events_write)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                pass_fds=[control_read, events_write],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=working_folder,
                env=worker_variables(variables),
                start_new_session=True,
            )
        if cpus:
            with contextlib.suppress(ProcessLookupError):  # its end is seen as the end of the events
                os.sched_setaffinity(self._process.pid, cpus)
        os.close(control_read)
        os.close(events_write)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._events, selectors.EVENT_READ)
        self._child: int | None = None

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def preload(self, models: Iterable[ModelSource], dynamo: bool = True) -> None:
        """Ask for the imports; `wait_ready` waits for them, so that several zygotes can import at once. Without
        `dynamo`, only for tests that do not import it (`experiment.imports_dynamo`): a child would, and be slow."""
        sources = [{"name": model.name, "folder": str(model.folder)} for model in models]
        self._send(op="preload", models=sources, dynamo=dynamo)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait for the end of the imports, if that has not come yet.

        Raises ZygoteDied if an import ends or hangs the zygote, BenchmarkError if the build is not usable.
        """
        if self._ready:
            return
        importing: str | None = None
        threads, touched = 1, False
        deadline = time.monotonic() + PRELOAD_TIMEOUT_S
        while True:
            try:
                event = self._next_event(deadline)
            except ZygoteDied as death:
                raise ZygoteDied(death.reason, importing, True) from death
            if event is None:
                self.end()
                raise ZygoteDied(f"its import did not end within {PRELOAD_TIMEOUT_S:g} s", importing, True)
            kind = event["event"]
            if kind == "importing":
                importing = event["model"]
            elif kind == "imported":
                self.imports[event["model"]] = ImportOutcome(
                    seconds=event["seconds"],
                    problem=event["problem"],
                    threads_added=event["threads"] - threads,
                    thread_names=tuple(event["thread_names"]),
                    touched_cuda=event["cuda"] and not touched,
                )
                threads, touched = event["threads"], event["cuda"]
            elif kind == "refused":
                raise BenchmarkError(event["reason"])
            elif kind == "ready":
                self._ready = True
                return
            elif kind == "gone":
                raise ZygoteDied(f"{self._how_it_ended()} while importing", importing, True)

    def measure(
        self,
        model: ModelSource,
        spec: dict[str, Any],
        *,
        start_method: str,
        timeout_s: float,
        memory_limit: int | None,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> ChildOutcome:
        """Measure in one child and wait for its end. Raises ZygoteDied if the zygote itself is lost."""
        self._next_id += 1
        self.scratch.mkdir(exist_ok=True)  # a model may have removed it
        result_path = self.scratch / f"{self.name}-{self._next_id}.json"
        flight = _Flight(self._next_id, time.monotonic(), log=self.scratch / f"{self.name}-{self._next_id}.log")
        self._send(
            op="measure",
            id=flight.request_id,
            start_method=start_method,
            model=model.name,
            folder=str(model.folder),
            spec=spec,
            result=str(result_path),
            log=str(flight.log),
            folder_to_work_in=str(self.scratch / f"{self.name}-{self._next_id}.cwd"),
        )
        deadline = flight.began + timeout_s
        while True:
            event = self._next_event(min(deadline, time.monotonic() + POLL_S))
            if event is None:
                if self._enforce_limits(flight, deadline, timeout_s, memory_limit):
                    deadline = time.monotonic() + KILL_GRACE_S  # from the order to kill on, once
                continue
            if event["event"] == "gone":
                self._kill_child_group()
                raise ZygoteDied(f"the zygote ended ({self._how_it_ended()}) during {flight.stage}")
            if event["event"] == "unforkable":
                raise ZygoteDied(f"the zygote cannot fork: {event['threads']} threads, CUDA touched: {event['cuda']}")
            if event.get("id") != flight.request_id:
                continue
            if event["event"] == "started":
                flight.pid = self._child = event["pid"]
            elif event["event"] == "stage":
                flight.stage = event["stage"]
                on_stage(flight.stage)
            elif event["event"] == "exited":
                self._child = None
                return self._outcome(flight, event, result_path)

    def _enforce_limits(self, flight: _Flight, deadline: float, timeout_s: float, memory_limit: int | None) -> bool:
        """End the child when it is over time or memory: True if that was ordered just now. Give the whole zygote up if
        the order has not helped by the deadline."""
        if flight.ending is not None:
            if time.monotonic() >= deadline:
                self.end(grace_s=0.0)  # it had its time, and has not obeyed
                raise ZygoteDied(f"the zygote did not end a child ({flight.ending[1]})", status=flight.ending[0])
            return False
        if time.monotonic() >= deadline:
            flight.ending = ("timeout", f"no result within {timeout_s:g} s; it was in stage {flight.stage!r}")
        elif memory_limit is not None and flight.pid is not None:
            used = _resident_bytes(flight.pid)
            if used > memory_limit:
                flight.ending = (
                    "oom",
                    f"ended by the runner's memory limit: {used / 2**20:.0f} MiB resident, "
                    f"{memory_limit / 2**20:.0f} MiB allowed, in stage {flight.stage!r}",
                )
        if flight.ending is None:
            return False
        self._send(op="kill", id=flight.request_id)
        return True

    def _outcome(self, flight: _Flight, exited: dict[str, Any], result_path: Path) -> ChildOutcome:
        seconds = time.monotonic() - flight.began
        detail = _tail(flight.log) or _tail(self.log)
        if flight.ending is not None:
            status, reason = flight.ending
            return ChildOutcome(None, status, reason, detail, seconds)
        if exited["code"] == 0 and result_path.is_file():
            try:
                result = json.loads(result_path.read_text())
                return ChildOutcome(result, result["status"], result["reason"], result["detail"], seconds)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                return ChildOutcome(None, "error", f"the child's result cannot be read: {error!r}", detail, seconds)
        if exited["signal"] is not None:
            how = f"ended by {_signal_name(exited['signal'])}"
        else:
            how = f"ended with exit code {exited['code']} and no result"
        return ChildOutcome(None, "crash", f"{how} in stage {flight.stage!r}", detail, seconds)

    def end(self, grace_s: float = KILL_GRACE_S) -> None:
        """End the zygote and everything below it, by force after `grace_s`; safe to call twice."""
        if self._control >= 0:
            os.close(self._control)  # the zygote reads this as the order to end all children and itself
            self._control = -1
        try:
            self._process.wait(timeout=grace_s)
        except subprocess.TimeoutExpired:
            self._kill_child_group()
            self._process.kill()
            self._process.wait()
        if self._events >= 0:
            self._selector.close()
            os.close(self._events)
            self._events = -1

    def _kill_child_group(self) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGKILL)
            self._child = None

    def _send(self, **request: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # its end is seen as the end of the events
            os.write(self._control, json.dumps(request).encode() + b"\n")

    def _next_event(self, deadline: float) -> dict[str, Any] | None:
        """The next event, {"event": "gone"} at the zygote's end, or None at the deadline (monotonic seconds)."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                return _parse_event(line)
            if self._stopping.is_set():
                raise Stopped
            left = deadline - time.monotonic()
            if not self._selector.select(min(POLL_S, max(0.0, left))):
                if left <= POLL_S:
                    return None
                continue
            chunk = os.read(self._events, 65536)
            if not chunk:
                return {"event": "gone"}
            self._buffer += chunk

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            return "it closed its pipe and did not end"
        if code < 0:
            return _signal_name(-code)
        last = (_tail(self.log).strip().splitlines() or ["no output"])[-1]
        return f"exit code {code}: {last}"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def _parse_event(line: bytes) -> dict[str, Any]:
    """An event, or ZygoteDied: what is none was written by a model into a pipe that is not its own."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("event") not in EVENTS:
        raise ZygoteDied("something that is no event came from the zygote: a model wrote into its pipe")
    return event


def _resident_bytes(leader: int) -> int:
    """Resident bytes of a process and its descendants that are not backed by a file."""
    total, waiting = 0, [leader]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):
                    waiting += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return total


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
