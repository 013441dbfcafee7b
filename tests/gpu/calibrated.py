"""Run by the interpreter of the build with the longer operator: how many rows make a test slower by a share of its own
time, and what these rows then come to, in fresh processes, by the profile, with the operator short and long by turns.

    PYTHON tests/gpu/calibrated.py --into FOLDER --device cuda --preset full --share 0.03 TEST...
"""

import argparse
import json
import math
import multiprocessing
import os
import queue
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import planted

FIRST_ROWS = {"cuda": 1 << 20, "cpu": 1 << 15}
MOST_ROWS = {"cuda": 1 << 28, "cpu": 1 << 22}
PROCESSES = 6  # that the truth is measured in: of three its median is known to a tenth of a percent only
TURNS = 4  # in each of them
CPU_ITERATIONS = 40


def cpu_seconds(invoke: Callable[[], object]) -> float:
    """CPU time of one iteration: the least of some, as neighbours slow the processor."""
    invoke()
    times = []
    for _ in range(CPU_ITERATIONS):
        began = time.process_time()
        invoke()
        times.append(time.process_time() - began)
    return min(times)


def model_of(name: str, device: str, preset: str) -> Any:
    import torch

    from torchbenchmark.worker.loading import import_model
    from torchbenchmark.worker.precisions import apply_precision

    model_name, test = name.split()
    if device == "cpu":
        torch.set_num_threads(1)
    folder = Path(__file__).parents[2] / "torchbenchmark" / "models" / model_name
    model = import_model(model_name, str(folder)).Model(test=test, device=device, batch_size=None, preset=preset)
    apply_precision("fp32", model)
    return model


def seconds_by_rows(model: Any, device: str) -> tuple[Callable[[int], float], set[str]]:
    """How long an iteration takes with so many rows in each call of the operator; and the calls that it makes."""
    import slow_operator

    slow_operator.rows.clear()
    for _ in range(10):  # warms up, and tells the calls
        model.invoke()
    measured = planted.kernel_seconds if device == "cuda" else cpu_seconds
    calls = set(slow_operator.calls)

    def seconds(rows: int) -> float:
        slow_operator.rows.update(dict.fromkeys(calls, rows))
        return measured(model.invoke)

    seconds(0)
    return seconds, calls


def find_rows(name: str, device: str, preset: str, share: float, answer: Any) -> None:
    """In a process of its own."""
    seconds, calls = seconds_by_rows(model_of(name, device, preset), device)
    rows = planted.rows_that_add(share, seconds, 0, FIRST_ROWS[device], MOST_ROWS[device])
    answer.put({"rows": rows, "calls": sorted(calls)})


def measure_truth(name: str, device: str, preset: str, rows: int, answer: Any) -> None:
    """In a process of its own."""
    seconds, _ = seconds_by_rows(model_of(name, device, preset), device)
    base, added = planted.difference(seconds, 0, rows, TURNS)
    answer.put({"seconds": base, "log_ratio": math.log1p(added / base)})


def plan_of(calibrated: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Rows by call, of all tests. Raises ValueError if two tests make the same call."""
    plan: dict[str, int] = {}
    for name, one in calibrated.items():
        for call in one["calls"]:
            if call in plan:
                raise ValueError(f"{name}: calls layer_norm as another test does ({call}); choose other tests")
            plan[call] = one["rows"]
    return plan


def in_a_fork(function: Callable[..., None], *arguments: Any) -> Any:
    fork = multiprocessing.get_context("fork")
    answer = fork.Queue()
    child = fork.Process(target=function, args=(*arguments, answer), daemon=True)
    child.start()
    while True:
        ended = not child.is_alive()
        try:
            found = answer.get(timeout=1)
        except queue.Empty:
            if ended:
                sys.exit(f"{' '.join(map(str, arguments))}: ended with {child.exitcode} and without an answer")
            continue
        child.join()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--share", type=float, required=True)
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    import torch

    from torchbenchmark.worker.loading import import_model

    for model in dict.fromkeys(name.split()[0] for name in options.tests):
        import_model(model, str(Path(__file__).parents[2] / "torchbenchmark" / "models" / model))
    started_by = os.getppid()
    assert not torch.cuda.is_initialized()  # the children are forks
    file = options.into / "calibrated.json"
    calibrated = json.loads(file.read_text()) if file.exists() else {}
    how = (options.device, options.preset)
    for name in options.tests:
        one = calibrated.setdefault(name, {})
        if not one:
            one.update(in_a_fork(find_rows, name, *how, options.share), profiles=[])
        while len(one["profiles"]) < PROCESSES:
            if os.getppid() != started_by:
                sys.exit("whoever started this was killed")
            one["profiles"].append(in_a_fork(measure_truth, name, *how, one["rows"]))
            scratch = file.with_suffix(".tmp")
            scratch.write_text(json.dumps(calibrated, indent=1))
            scratch.replace(file)
        shares = ", ".join(f"{math.expm1(profile['log_ratio']):+.2%}" for profile in one["profiles"])
        print(
            f"{name:35s} {1e3 * one['profiles'][0]['seconds']:9.3f} ms, {one['rows']} rows a call: {shares}", flush=True
        )


if __name__ == "__main__":
    main()
