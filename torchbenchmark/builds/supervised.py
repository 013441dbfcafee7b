"""Runs one command and leaves no process of it behind, be it done, too slow, or its driver killed. Run by path, with
the standard library alone: `supervised.py FD COMMAND...`, where the driver holds the other end of the pipe FD."""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_CANNOT_START = 127


def main() -> int:
    driver, command = int(sys.argv[1]), sys.argv[2:]
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # the end of the pipe says when to stop
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    a_child_ended, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_as_at_the_start)
    except OSError as error:
        print(f"{command[0]}: cannot be started: {error.strerror}", file=sys.stderr)
        return _CANNOT_START
    while (code := child.poll()) is None:
        ready, _, _ = select.select([driver, a_child_ended], [], [])
        if driver in ready:
            break
        os.read(a_child_ended, 512)
    _end_descendants()
    if code is None:
        return 128 + signal.SIGKILL
    return code if code >= 0 else 128 - code


def _as_at_the_start() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)


def _end_descendants() -> None:
    """Orphans become our children: those are killed until there is none."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for pid in children.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    sys.exit(main())
