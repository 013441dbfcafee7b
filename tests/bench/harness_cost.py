"""What the harness itself costs, as ratios within one run (`make bench`).

1. Request to the first synchronised tensor on the device: a forked child against a fresh interpreter that imports torch
   and the model, both from the driver's request to the same point of the child.
2. The timed loop around an empty call, over the median timed unit of each test of the smoke suite.
3. On a GPU: the seconds of the profiled section and of the whole child (fork to exit), of the tests of `--suite`.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from torchbenchmark import environment
from torchbenchmark.experiment import Experiment
from torchbenchmark.isolation import ModelSource, Zygote
from torchbenchmark.nursery import ZYGOTE_SCRIPT
from torchbenchmark.planning import DEFAULT_BUDGET_S, MIN_SAMPLES, MIN_UNIT_S, WARMUP_CAP_BUDGETS, RunRequest
from torchbenchmark.records import Record, Status, read_run
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.runner import start_run
from torchbenchmark.terminal import console
from torchbenchmark.worker.timing import Timed

FORK_FLOOR, FORK_AIM = 1 / 5, 1 / 20
LOOP_FLOOR, LOOP_AIM = 0.005, 0.001
PROFILED_AIM = 0.2  # of the whole child
REPEATS = 7
PROFILED = "profiled section"
FIRST_TENSOR = "build"  # the stage that a child enters once it holds a synchronised tensor


class Quiet:
    """A reporter that says nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class Empty:
    batch_size = 1

    def invoke(self) -> tuple:
        return ()


def sources(registry: Registry, names: Iterable[str]) -> list[ModelSource]:
    return [ModelSource(name, registry.model(name).folder) for name in names]


@contextmanager
def ready_zygote(models: list[ModelSource]) -> Iterator[Zygote]:
    """One that has imported the models."""
    with tempfile.TemporaryDirectory() as scratch:
        zygote = Zygote(Path(sys.executable), ZYGOTE_SCRIPT, "bench", Path(scratch), {})
        with zygote:
            zygote.preload(models)
            zygote.wait_ready()
            yield zygote


def time_to_first_tensor(device: str, models: list[ModelSource]) -> dict[str, list[float]]:
    """Seconds from request to first tensor, forked and spawned by turns, from one zygote that imported `models`."""
    seconds: dict[str, list[float]] = {"fork": [], "spawn": []}
    spec = {
        "test": "eval", "device": device, "backend": "eager", "precision": "fp32", "batch_size": None,
        "preset": "tiny", "training_mode": "", "threads": 1, "budget_s": 0.01, "warmup_cap_s": 0.01,
        "min_unit_s": 0.01, "min_samples": 1,
    }  # fmt: skip
    with ready_zygote(models) as zygote:
        for _ in range(REPEATS):
            for start_method in seconds:
                reached: list[float] = []
                began = time.monotonic()

                def note(stage: str, reached: list[float] = reached) -> None:
                    if stage == FIRST_TENSOR:
                        reached.append(time.monotonic())

                outcome = zygote.measure(
                    models[0], spec, start_method=start_method, timeout_s=300, memory_limit=None, on_stage=note
                )
                assert outcome.status == "ok", outcome
                seconds[start_method].append(reached[0] - began)
    return seconds


def profiled_seconds(models: list[ModelSource]) -> dict[str, tuple[float, float]]:
    """Per test of the models on the GPU: seconds of the profiled section, and of the whole child, fork to exit."""
    found: dict[str, tuple[float, float]] = {}
    budget = DEFAULT_BUDGET_S["cuda"]
    spec = {
        "device": "cuda", "backend": "eager", "precision": "fp32", "batch_size": None, "preset": "full",
        "training_mode": "", "threads": 1, "budget_s": budget, "warmup_cap_s": WARMUP_CAP_BUDGETS * budget,
        "min_unit_s": MIN_UNIT_S, "min_samples": MIN_SAMPLES,
    }  # fmt: skip
    with ready_zygote(models) as zygote:
        for model, test in itertools.product(models, ("train", "eval")):
            entered: list[tuple[str, float]] = []

            def note(stage: str, entered: list[tuple[str, float]] = entered) -> None:
                entered.append((stage, time.monotonic()))

            outcome = zygote.measure(
                model, spec | {"test": test}, start_method="fork", timeout_s=300, memory_limit=None, on_stage=note
            )
            assert outcome.status == "ok", outcome
            at = [stage for stage, _ in entered].index(PROFILED)
            found[f"{model.name} {test}"] = (entered[at + 1][1] - entered[at][1], outcome.seconds)
    return found


def smoke_records(device: str) -> list[Record]:
    with tempfile.TemporaryDirectory() as folder:
        request = RunRequest(suite=load_suite("smoke"), device=device, rounds=1, threads=1, budget_s=0.5)
        out = Path(folder) / "smoke.jsonl"
        start_run(request, out, Quiet())
        return [record for record in read_run(out).records if record.status is Status.OK]


def empty_unit_seconds(loops: int) -> float:
    """Median seconds of one timed unit whose iterations do nothing."""
    timed = Timed(Empty(), lambda: None, {"budget_s": 0, "warmup_cap_s": 0, "min_unit_s": 0, "min_samples": 1})
    timed.inner_loops = loops
    return statistics.median(timed.unit()[0] for _ in range(201))


def loop_shares(records: list[Record]) -> dict[str, float]:
    """Per test: the loop around nothing over the median timed unit."""
    shares = {}
    for record in records:
        process = record.processes[0]
        unit = process.channels["latency"].median * process.inner_loops
        shares[record.test] = empty_unit_seconds(process.inner_loops) / unit
    return shares


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--suite", default="v1", help="whose profiled sections are timed on a GPU")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    registry = Registry()
    suite = load_suite("smoke")
    models = sources(registry, suite.models)

    first = {name: statistics.median(values) for name, values in time_to_first_tensor(options.device, models).items()}
    fork_ratio = first["fork"] / first["spawn"]
    shares = loop_shares(smoke_records(options.device))
    worst = max(shares.values())

    interpreter = environment.inspect_interpreter(Path(sys.executable))
    where = environment.machine_class(interpreter, options.device, 1)
    console.print(f"{where}, {interpreter.build.id}, {environment.harness_commit()}")
    table = Table("what", "ratio", "floor", "aim", "reached")
    for what, ratio, floor, aim in (
        (f"first tensor: forked {first['fork']:.3f} s / cold {first['spawn']:.3f} s", fork_ratio, FORK_FLOOR, FORK_AIM),
        (f"empty loop over the median unit, worst of {len(shares)} tests", worst, LOOP_FLOOR, LOOP_AIM),
    ):
        reached = "aim" if ratio <= aim else "floor" if ratio <= floor else "missed"
        table.add_row(what, f"{ratio:.5f}", f"{floor:g}", f"{aim:g}", reached)
    console.print(table)
    for test, share in sorted(shares.items(), key=lambda item: -item[1]):
        console.print(f"  {Experiment.parse(test).id}: {share:.6f}", markup=False)
    told = {"where": where, "first_tensor_s": first, "loop_shares": shares}
    if options.device == "cuda":
        profiled = profiled_seconds(sources(registry, load_suite(options.suite).models))
        sections, children = map(sum, zip(*profiled.values(), strict=True))
        share = sections / children
        console.print(
            f"profiled sections of {len(profiled)} tests of {options.suite}: {sections:.1f} s of {children:.1f} s of "
            f"their children, {share:.1%} ({'aim' if share <= PROFILED_AIM else 'aim missed'}: {PROFILED_AIM:.0%})"
        )
        for test, (section, child) in sorted(profiled.items(), key=lambda item: -item[1][0] / item[1][1]):
            console.print(f"  {test}: {section:.2f} of {child:.2f} s, {section / child:.1%}", markup=False)
        told |= {"profiled_s": profiled}
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))
    return 0 if fork_ratio <= FORK_FLOOR and worst <= LOOP_FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
