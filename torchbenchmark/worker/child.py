"""One child of a zygote: prepares the process, measures or checks one test, leaves the result as JSON and ends."""

import contextlib
import faulthandler
import os
import sys
import traceback
from collections.abc import Callable
from json import dumps  # bound here: a model may replace them in the module
from pathlib import Path
from typing import Any, NoReturn

from torchbenchmark.worker.measure import measure
from torchbenchmark.worker.outcome import classify

DETAIL_CHARACTERS = 4000


def measure_and_report(request: dict[str, Any], began: float, events: int) -> NoReturn:
    """Measure `request["spec"]` and write the outcome to `request["result"]`; never returns.

    `began` is the monotonic time of the fork. The exit code is 0 whenever a result was written, whatever its status.
    """
    os.set_inheritable(events, False)
    _redirect_output(request["log"])
    Path(request["folder_to_work_in"]).mkdir(parents=True, exist_ok=True)
    os.chdir(request["folder_to_work_in"])
    _prefer_this_process_when_memory_runs_out()

    def tell_stage(stage: str) -> None:
        os.write(events, dumps({"event": "stage", "id": request["id"], "stage": stage}).encode() + b"\n")

    result = _measure(request, began, tell_stage)
    tell_stage("report")
    _write_atomically(Path(request["result"]), dumps(result, allow_nan=False))
    _flush()
    os._exit(0)  # no teardown of the framework: it could hang or crash, and its time is nobody's


def _measure(request: dict[str, Any], began: float, tell_stage: Callable[[str], None]) -> dict[str, Any]:
    stage = "start"

    def enter(name: str) -> None:
        nonlocal stage
        stage = name
        tell_stage(name)

    try:
        work = _contracts if "contracts" in request["spec"] else measure
        result = work(request["spec"], request["model"], request["folder"], began, enter)
        dumps(result, allow_nan=False)
        return result
    except BaseException as error:  # whatever a model raises, SystemExit too, is this test's outcome
        with contextlib.suppress(Exception):
            traceback.print_exc()
        status, reason = classify(error, stage)
        try:
            detail = "".join(traceback.format_exception(error))[-DETAIL_CHARACTERS:]
        except Exception:
            detail = ""
        return {"status": status, "reason": reason, "detail": detail}


def _contracts(*arguments: Any) -> dict[str, Any]:
    """Judge the test by its contracts instead of measuring it."""
    from torchbenchmark.contracts.judging import check  # measuring needs none of it

    return check(*arguments)


def _redirect_output(log: str) -> None:
    """Standard output and error to the log, input from nothing; a fatal signal leaves a traceback there."""
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _flush()
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    faulthandler.enable(file=2, all_threads=False)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a model may have put anything in their place
            stream.flush()


def _prefer_this_process_when_memory_runs_out() -> None:
    """If the machine runs out of memory, the kernel shall end this child, not the driver or the zygote."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


def _write_atomically(path: Path, text: str) -> None:
    scratch = path.with_suffix(".part")
    scratch.write_text(text)
    scratch.replace(path)
