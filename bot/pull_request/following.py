"""Edits the status of a request while it is measured, from outside: the measuring job itself may write nothing."""

import re
from collections.abc import Callable, Sequence

from bot.benchmark_request import BenchmarkRequest
from bot.github.actions import Action
from bot.github.looking import Looking
from bot.github.request_status import Stage
from bot.pages import request_status
from bot.pull_request.reporting import status_action

MEASURE = "measure"  # the job's name in benchmark.yml
EVERY_S = 20.0
PATIENCE = 30  # looks at a run that is not to be found, or without that job
BUILD = re.compile(r"Build (base|head)")
PART = re.compile(r"Measure, part (\d{1,2}) of (\d{1,2})")
PROFILE = "Profile both builds"


def status_of_step(request: BenchmarkRequest, step: str, run_url: str) -> tuple[Stage, str] | None:
    """What the status comment says while the measuring job is at this step; None if that tells nothing new."""
    if built := BUILD.fullmatch(step):
        return "building", request_status.building(request, built[1], run_url)
    if part := PART.fullmatch(step):
        return "measuring", request_status.measuring(request, int(part[1]), int(part[2]), run_url)
    return ("measuring", request_status.profiling(request, run_url)) if step == PROFILE else None


def follow(
    request: BenchmarkRequest,
    run: int,
    look: Looking,
    perform: Callable[[Sequence[Action]], object],
    sleep: Callable[[float], object],
) -> int:
    """Until the measuring job is over. Returns how often the status was edited."""
    last, edits, absent = None, 0, 0
    while True:
        found = look.run(run)
        jobs = {_own_name(name): (state, step) for name, state, step in found.jobs} if found is not None else {}
        if found is None or MEASURE not in jobs:
            absent += 1
            if found is None or found.state == "completed" or absent > PATIENCE:
                return edits
        else:
            state, step = jobs[MEASURE]
            if state == "completed":
                return edits
            told = status_of_step(request, step, found.url)
            if told is not None and told != last:
                perform([status_action(request, run, *told)])
                last, edits = told, edits + 1
        sleep(EVERY_S)


def _own_name(name: str) -> str:
    """Of a job of a called workflow, which GitHub names after the one that calls too: `benchmark / measure`."""
    return name.rpartition(" / ")[2]
