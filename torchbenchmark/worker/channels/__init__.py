"""Where the channels come from: one file a source, registered here in the order in which they measure.

A section measures one or more channels: {channel: samples}. A required section that fails fails the test; another one
leaves a note, and the other channels live. A section is left out where its source is not: that leaves no note.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchbenchmark.channels import COUNTING, TIMED_SECTION
from torchbenchmark.worker.channels import dispatch, dynamo, memory, operators, profiler, timers
from torchbenchmark.worker.timing import Timed


@dataclass(frozen=True)
class Section:
    name: str
    measure: Callable[[Timed], dict[str, list[float]]]
    required: bool = False
    devices: tuple[str, ...] = ("cpu", "cuda")
    compiled_only: bool = False
    counts: bool = False  # left out where the driver wants no counts
    on_request: bool = False  # only where the driver asks for a profile

    def applies(self, spec: Mapping[str, Any]) -> bool:
        if self.on_request and spec.get("profile") is None:
            return False
        if self.counts and not spec.get("counting", True):
            return False
        return spec["device"] in self.devices and not (self.compiled_only and spec["backend"] == "eager")


SECTIONS = (
    Section(TIMED_SECTION, timers.measure, required=True),
    Section("memory", memory.measure),  # before the profiling and the counting, whose bookkeeping would raise the peak
    Section("profiled section", profiler.measure, devices=("cuda",)),
    Section(
        "operator profile", operators.measure, on_request=True
    ),  # as the next: what it watches is not compiled anew
    Section("compilation", dynamo.measure, compiled_only=True),  # before the counting, under which frames compile anew
    Section(COUNTING, dispatch.measure, counts=True),
)
