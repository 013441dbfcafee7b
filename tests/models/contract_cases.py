"""Built-in models as cases for the contracts."""

import dataclasses
import importlib

import pytest

from torchbenchmark.check_models import declared
from torchbenchmark.contracts.contract import Case, Declared
from torchbenchmark.contracts.judging import judge
from torchbenchmark.experiment import Experiment
from torchbenchmark.registry import Registry

ON_A_GPU_ALONE = {"places", "copies"}  # where the device meta cannot do what the model does


def case_of(name: str, test: str, device: str, preset: str, *, full_too: bool = False) -> Case:
    """`full_too`: look at the size `full` on the device meta as well, which takes some models ten seconds.

    Skips, with the reason of the metadata, where there is no such test.
    """
    entry = Registry().model(name)
    reason = entry.unsupported_reason(Experiment(name, test, device, preset=preset))
    if reason is not None:
        pytest.skip(reason)
    make = importlib.import_module(f"torchbenchmark.models.{name}").Model
    told = Declared(**declared(entry.metadata, test))
    if not full_too:
        told = dataclasses.replace(told, presets=(preset,))
    return Case(make, test, device, preset, declared=told)


def what_is_broken(case: Case) -> dict[str, object]:
    """Contract -> its breaches, or why it was not judged."""
    return {
        one.contract: one.breaches or one.not_judged
        for one in judge(case)
        if one.breaches or (one.not_judged and not (case.device == "cpu" and one.contract in ON_A_GPU_ALONE))
    }
