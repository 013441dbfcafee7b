"""The declared rules of the grid: which combinations no model can run, and why; its metadata has what one model cannot.

A combination that a rule names is planned like every other and gets its record, `unsupported` with the rule's reason,
without a process being started for it.
"""

from dataclasses import dataclass

from torchbenchmark.backends import BACKENDS
from torchbenchmark.experiment import Experiment


@dataclass(frozen=True)
class Rule:
    """An empty field matches everything."""

    reason: str
    tests: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()

    def matches(self, experiment: Experiment) -> bool:
        return all(
            not named or value in named
            for named, value in (
                (self.tests, experiment.test),
                (self.devices, experiment.device),
                (self.backends, experiment.backend),
                (self.precisions, experiment.precision),
            )
        )


RULES = (
    Rule("TF32 is a mode of NVIDIA's tensor cores; the CPU has none", devices=("cpu",), precisions=("tf32",)),
    Rule(
        "weights and moments in fp16 alone do not train: what Adam divides by becomes 0; amp_fp16 trains",
        tests=("train",),
        precisions=("fp16",),
    ),
    Rule(
        "the backward pass that TorchScript derives under autocast multiplies fp16 with other types, and fails",
        tests=("train",),
        backends=("jit",),
        precisions=("amp_fp16",),
    ),
    Rule(
        "the convolution, sum and ReLU that TorchScript fuses for inference find no cuDNN engine in amp_fp16",
        tests=("eval",),
        devices=("cuda",),
        backends=("jit",),
        precisions=("amp_fp16",),
    ),
)


def ruled_out(experiment: Experiment) -> str | None:
    """The reason of the first rule against `experiment`, or None."""
    backend = BACKENDS.get(experiment.backend)
    if backend is None:
        return f"there is no backend {experiment.backend!r} (there are: {', '.join(BACKENDS)})"
    if experiment.device not in backend.devices:
        return backend.why_not_elsewhere
    return next((rule.reason for rule in RULES if rule.matches(experiment)), None)
