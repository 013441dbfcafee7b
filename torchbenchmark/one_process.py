"""Measures one test once: a child of a zygote is told what to do, watched, and read back as a Process of a record."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from torchbenchmark.channels import COUNTING, TIMED_SECTION
from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import one_line, printable
from torchbenchmark.gpu_watch import GpuWatch
from torchbenchmark.isolation import ChildOutcome, ModelSource, Zygote, ZygoteDied
from torchbenchmark.nursery import Nursery
from torchbenchmark.places import Place
from torchbenchmark.profiles.process_profile import ProfiledProcess, profile_of
from torchbenchmark.records import Channel, GpuState, Measuring, Process, Status
from torchbenchmark.registry import Registry
from torchbenchmark.yaml_files import first_problem

_CHANNEL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")


@dataclass(frozen=True)
class Measured:
    """What came of one process."""

    process: Process
    batch_size: int | None  # as the model had it; None if it never got that far
    gpu: GpuState | None  # while it was timed
    zygote_lost: bool


class Measurer:
    """Measures the tests of one build in one way."""

    def __init__(
        self,
        registry: Registry,
        measuring: Measuring,
        machine_class: str,
        caches: CompileCaches,
        watches: Mapping[str, GpuWatch],
    ) -> None:
        """`watches` are of the GPUs by their names in a Place."""
        self.registry = registry
        self.machine_class = machine_class
        self.measuring = measuring
        self.caches = caches
        self.watches = watches

    def measure(
        self,
        nursery: Nursery,
        zygote: Zygote,
        experiment: Experiment,
        *,
        round: int,
        index: int,
        profile: Mapping[str, Any] | None = None,
    ) -> Measured:
        """One process of the experiment, as a child of the zygote that the nursery gave for this round.

        `profile` asks for a profile of its operators as well: {"trace": a path or None}.
        """
        start_method = "spawn" if nursery.spawns(experiment.model) else "fork"
        started, began, lost = datetime.now(UTC), time.monotonic(), False
        stages: dict[str, float] = {}
        try:
            outcome = zygote.measure(
                ModelSource(experiment.model, self.registry.model(experiment.model).folder),
                self._spec(experiment)
                | {"compile_cache": self.caches.turn(experiment, round, index)}
                | ({} if profile is None else {"profile": dict(profile)}),
                start_method=start_method,
                timeout_s=self.measuring.timeout_s,
                memory_limit=self.measuring.memory_limit_bytes,
                on_stage=lambda stage: stages.setdefault(stage, time.monotonic()),
            )
        except ZygoteDied as death:
            lost = True
            outcome = ChildOutcome(None, death.status, death.reason, "", time.monotonic() - began)
        if outcome.status == Status.OK:
            self.caches.ended(experiment, round)
        if outcome.result and outcome.result.get("imported_dynamo"):
            nursery.dynamo = True  # every child would: let the next zygotes do it once
        gpu = self._gpu_while_timed(nursery.place, stages)
        process = process_of(
            outcome,
            round=round,
            index=index,
            zygote=zygote.name,
            start_method=start_method,
            started=started,
            device_index=nursery.place.device_index,
            gpu=gpu,
        )
        batch_size = outcome.result.get("batch_size") if outcome.result else None
        return Measured(process, batch_size if isinstance(batch_size, int) else None, gpu, lost)

    def _gpu_while_timed(self, place: Place, stages: Mapping[str, float]) -> GpuState | None:
        """What the GPU said between the start of the timed section and the counting; the rest moves no number."""
        if place.gpu is None or TIMED_SECTION not in stages:
            return None
        return self.watches[place.gpu].between(stages[TIMED_SECTION], stages.get(COUNTING, time.monotonic()))

    def _spec(self, experiment: Experiment) -> dict[str, Any]:
        measuring = self.measuring
        return {
            "test": experiment.test,
            "device": experiment.device,
            "backend": experiment.backend,
            "precision": experiment.precision,
            "batch_size": self.registry.model(experiment.model).batch_size(experiment, self.machine_class),
            "preset": experiment.preset,
            "training_mode": experiment.training_mode,
            "threads": measuring.threads,
            "budget_s": measuring.budget_s,
            "warmup_cap_s": measuring.warmup_cap_s,
            "min_unit_s": measuring.min_unit_s,
            "min_samples": measuring.min_samples,
            "counting": measuring.counting,
        }


def process_of(outcome: ChildOutcome, *, notes: Sequence[str] = (), **where: Any) -> Process:
    """The process as the schema knows it; a result that does not validate is an error of the test, not of the run."""
    result = outcome.result or {}
    common = {**where, "seconds": round(outcome.seconds, 4)}
    try:
        found = Process(
            **common,
            status=Status(outcome.status),
            reason=one_line(outcome.reason),
            detail=printable(outcome.detail) if outcome.status != "ok" else "",
            threads=result.get("threads"),
            inner_loops=result.get("inner_loops"),
            warmup_iterations=result.get("warmup_iterations"),
            steady=result.get("steady"),
            channels={_name(name): Channel.model_validate(value) for name, value in result.get("channels", {}).items()},
            notes=tuple(map(one_line, [*notes, *result.get("notes", ())])),
            reasons={_name(name): tuple(map(one_line, lines)) for name, lines in result.get("reasons", {}).items()},
        )
        if result.get("profile") is None:
            return found
        return ProfiledProcess(**dict(found), profile=profile_of(result["profile"]))
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        return Process(
            **common, status=Status.ERROR, reason=one_line(f"the child's result does not validate: {problem}")
        )


def _name(name: str) -> str:
    """The name of a channel, as it may stand in a file; the child runs the code of a model and of a build."""
    if not _CHANNEL_NAME.fullmatch(name):
        raise ValueError(f"{name[:40]!a} is no name of a channel")
    return name
