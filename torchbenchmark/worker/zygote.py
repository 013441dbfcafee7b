"""The zygote: a process of the build's interpreter that imports everything once and forks a child per measurement.

Started by path (never through the build's own packages), driven over two pipes with one JSON object a line:
requests come in on --control, events go out on --events. It runs one thread, touches no CUDA and no CPU thread pool,
and ends, with all its children, when the driver's end of the control pipe closes.
"""

import argparse
import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from json import dumps, loads  # bound here: a model may replace them in the module
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[1]  # the folder of the one torchbenchmark that serves all builds
FOREIGN_PACKAGE_EXIT = 3
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def load_harness() -> None:
    """Import this copy of torchbenchmark by path, without putting any folder on sys.path.

    Raises ImportError if the build can import another package of that name: one harness measures all builds.
    """
    found = importlib.util.find_spec("torchbenchmark")
    if found is not None and (found.origin is None or Path(found.origin).resolve() != HARNESS / "__init__.py"):
        where = found.origin or list(found.submodule_search_locations or [])
        raise ImportError(
            f"the build's interpreter has another package named torchbenchmark ({where}); uninstall it there, "
            f"the harness in {HARNESS} measures every build"
        )
    spec = importlib.util.spec_from_file_location(
        "torchbenchmark", HARNESS / "__init__.py", submodule_search_locations=[str(HARNESS)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torchbenchmark"] = module
    spec.loader.exec_module(module)


def import_harness(dynamo: bool) -> None:
    """Import torch and what measures, and torch._dynamo where a child would import it within its first batch."""
    importlib.import_module("torchbenchmark.worker.child")
    if dynamo:
        importlib.import_module("torch._dynamo")


def thread_count() -> int:
    """Threads of this process as the kernel counts them."""
    return len(os.listdir("/proc/self/task"))


def thread_names() -> list[str]:
    """What the threads beside the main one call themselves: the first thing to know of one that should not be there."""
    names = []
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            with contextlib.suppress(OSError):
                names.append(Path(f"/proc/self/task/{task}/comm").read_text().strip())
    return names


def cuda_touched() -> bool:
    """True once this process has a CUDA driver context: torch says so, or the driver's memory device is open."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if Path(f"/proc/self/fd/{descriptor}").readlink().name.startswith("nvidia-uvm"):
                return True
    return False


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies; end at once if it died already."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of processes whose parent dies below us, so that none can escape being ended."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Zygote:
    def __init__(self, control: int, events: int) -> None:
        self.control = control
        self.events = events
        self.children: dict[int, int] = {}  # pid -> request id
        self.buffer = b""
        self.wake_read, self.wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for descriptor in (control, events):
            os.set_inheritable(descriptor, False)

    def tell(self, **event: object) -> None:
        os.write(self.events, dumps(event).encode() + b"\n")

    def serve(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        try:
            while True:
                readable, _, _ = select.select([self.control, self.wake_read], [], [])
                if self.wake_read in readable:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self.wake_read, 4096)
                    self.reap()
                if self.control in readable and not self.handle_requests():
                    return
        finally:
            self.end_all()

    def handle_requests(self) -> bool:
        """Handle the complete requests that have come; False when the driver is gone or has said quit."""
        chunk = os.read(self.control, 65536)
        if not chunk:
            return False
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in lines:
            request = loads(line)
            operation = request["op"]
            if operation == "quit":
                return False
            if operation == "preload":
                self.preload(request["models"], request["dynamo"])
            elif operation == "measure":
                self.start_child(request)
            elif operation == "kill":
                self.kill(request["id"])
        return True

    def preload(self, models: list[dict[str, str]], dynamo: bool) -> None:
        """Import every model's module, telling after each what it did to this process; then freeze the heap."""
        # What a module may change for all that come after it.
        kept = sys.stdout, sys.stderr, signal.getsignal(signal.SIGCHLD)
        from torchbenchmark.worker.loading import import_model  # only after load_harness

        gc.disable()  # imports make objects that stay: to look for garbage among them is a sixth of their time
        self.import_and_tell(None, functools.partial(import_harness, dynamo))
        for model in models:
            self.import_and_tell(model["name"], functools.partial(import_model, model["name"], model["folder"]))
        sys.stdout, sys.stderr, handler = kept
        signal.signal(signal.SIGCHLD, handler)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        gc.enable()
        gc.collect()
        gc.freeze()  # the children's collector must not write to (and so copy) the pages they share with us
        self.tell(event="ready", pid=os.getpid(), threads=thread_count(), cuda=cuda_touched())

    def import_and_tell(self, model: str | None, load: Callable[[], object]) -> None:
        """Run one import (None: torch and the harness themselves) and tell what it did to this process."""
        self.tell(event="importing", model=model)
        began = time.monotonic()
        problem = None
        try:
            load()
        except BaseException as error:  # an import may raise anything, SystemExit too; the others go on
            problem = f"{type(error).__name__}: {error}"[:1500]
        self.tell(
            event="imported",
            model=model,
            seconds=round(time.monotonic() - began, 4),
            problem=problem,
            threads=thread_count(),
            thread_names=thread_names(),
            cuda=cuda_touched(),
        )

    def start_child(self, request: dict) -> None:
        if request["start_method"] == "spawn":
            command = [sys.executable, "-P", __file__, "--once", dumps(request), "--events", str(self.events)]
            pid = subprocess.Popen(
                command, pass_fds=[self.events], stdin=subprocess.DEVNULL, start_new_session=True
            ).pid
        else:
            threads = thread_count()
            if threads != 1 or cuda_touched():
                self.tell(event="unforkable", id=request["id"], threads=threads, cuda=cuda_touched())
                return
            parent = os.getpid()
            began = time.monotonic()
            pid = os.fork()
            if pid == 0:
                self.become_child(request, parent, began)
        self.children[pid] = request["id"]
        self.tell(event="started", id=request["id"], pid=pid)

    def become_child(self, request: dict, parent: int, began: float) -> None:
        """In the child: leave everything of the zygote behind, measure, and end without returning."""
        try:
            os.setsid()
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for descriptor in (self.control, self.wake_read, self.wake_write):
                os.close(descriptor)
            from torchbenchmark.worker.child import measure_and_report

            measure_and_report(request, began, self.events)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)  # measure_and_report ends the process itself; here something went wrong before it could

    def kill(self, request_id: int) -> None:
        for pid, identity in self.children.items():
            if identity == request_id:
                _kill_group(pid)

    def reap(self) -> None:
        """Collect ended children, end what they left running, and tell the driver how each ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            request_id = self.children.pop(pid, None)
            if request_id is None:
                continue  # an adopted orphan
            _kill_group(pid)
            self.end_orphans()
            self.tell(
                event="exited",
                id=request_id,
                code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                cpu_seconds=round(usage.ru_utime + usage.ru_stime, 3),
            )

    def end_orphans(self) -> None:
        """Kill every descendant that is not a measurement in flight."""
        for _ in range(100):
            strays = [pid for pid in _children_of(os.getpid()) if pid not in self.children]
            if not strays:
                return
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def end_all(self) -> None:
        for pid in list(self.children):
            _kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self.children.clear()
        self.end_orphans()


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(leader, signal.SIGKILL)  # killed before it could become a group leader


def _children_of(parent: int) -> list[int]:
    children = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(f"/proc/{entry}/stat").read_text()
                if int(stat.rpartition(")")[2].split()[1]) == parent:
                    children.append(int(entry))
    return children


def _run_once(request: dict, events: int) -> None:
    """A measurement in a fresh interpreter, for models whose import leaves a process that cannot be forked."""
    die_with_parent(os.getppid())
    load_harness()
    from torchbenchmark.experiment import imports_dynamo
    from torchbenchmark.worker.child import measure_and_report
    from torchbenchmark.worker.loading import import_model

    spec = request["spec"]
    import_harness(imports_dynamo(spec["test"], spec["backend"]))
    import_model(request["model"], request["folder"])
    measure_and_report(request, time.monotonic(), events)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--once")
    options = parser.parse_args()
    if options.once:
        _run_once(loads(options.once), options.events)
        return 0
    zygote = Zygote(options.control, options.events)
    die_with_parent(os.getppid())
    adopt_orphans()
    try:
        load_harness()
    except ImportError as error:
        zygote.tell(event="refused", reason=str(error))
        return FOREIGN_PACKAGE_EXIT
    zygote.serve()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a model's import may have closed or replaced it
            stream.flush()
    os._exit(0)  # to take torch apart piece by piece takes a fifth of a second, and nobody needs it


if __name__ == "__main__":
    sys.exit(main())
