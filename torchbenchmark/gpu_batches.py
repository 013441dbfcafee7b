"""The default batch size of a model on a named GPU: at the preset `head`, whose shapes were tuned by hand for some
GPUs.

A GPU is named as far as it needs to be: `NVIDIA A100` means every card whose name begins with these words, so no
A1000, and of several such names the longest counts. Cards are compared as a machine's class writes them, for that is
in the header of every file.
"""

import re
from collections.abc import Mapping

from torchbenchmark.experiment import Experiment

PRESET = "head"
_GPU_CLASS = re.compile(r"cuda-(.+)-x[0-9]+-t[0-9]+")


def class_slug(name: str) -> str:
    """A card's name as one segment of a path: NVIDIA A100-SXM4-40GB is nvidia-a100-sxm4-40gb."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", name.lower())).strip("-")


def gpu_of_class(machine_class: str) -> str | None:
    """The card of a class, as its slug; None of a class of CPUs."""
    found = _GPU_CLASS.fullmatch(machine_class)
    return found[1] if found else None


def batch_on_gpu(
    batches: Mapping[str, Mapping[str, int]], experiment: Experiment, machine_class: str | None
) -> int | None:
    """The batch size that `batches` (GPU -> test -> size) give an experiment where it is measured. None if they have
    nothing to say, or the experiment says its batch size itself."""
    gpu = gpu_of_class(machine_class or "")
    if gpu is None or experiment.device != "cuda" or experiment.preset != PRESET or experiment.batch_size is not None:
        return None
    named = {class_slug(name): sizes for name, sizes in batches.items()}
    fitting = [name for name in named if f"{gpu}-".startswith(f"{name}-") and experiment.test in named[name]]
    return named[max(fitting, key=len)][experiment.test] if fitting else None
