"""What a contract is given and what it answers: a way to build the model, what its metadata declares, and sentences."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torchbenchmark.contracts.held import same_to_the_bit
from torchbenchmark.model import BenchmarkModel

BOTH = ("train", "eval")


class NotJudged(Exception):
    """This contract cannot be judged of this test here: the message says why. It is neither kept nor broken."""


@dataclass(frozen=True)
class Declared:
    """What the metadata says of one test, as plain data."""

    draws: tuple[str, ...] = ()
    waits_for_device: str | None = None
    loss_need_not_fall: str | None = None
    untrained: Mapping[str, str] = field(default_factory=dict)
    deterministic: bool = True
    rtol: float = 1e-3
    atol: float = 1e-5
    presets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One test of one model, at one size on one device."""

    make: Callable[..., BenchmarkModel]
    test: str
    device: str
    preset: str
    batch_size: int | None = None
    declared: Declared = Declared()
    watched: dict[Any, Any] = field(
        default_factory=dict, compare=False, repr=False
    )  # what was seen, once it was looked at

    def build(self, **other: Any) -> BenchmarkModel:
        """A fresh instance; `other` replaces device, preset or batch_size."""
        asked = {"device": self.device, "preset": self.preset, "batch_size": self.batch_size, **other}
        return self.make(test=self.test, **asked)

    def agree(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """True if two outputs of the same work are the same: to the bit on the CPU if the test is deterministic, else
        within the declared tolerance, as on a GPU sums may be taken in any order; whole numbers always to the bit.
        """
        if (self.device == "cpu" and self.declared.deterministic) or not (one.is_floating_point() or one.is_complex()):
            return same_to_the_bit(one, other)
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        wide = [
            (tensor if tensor.layout == torch.strided else tensor.to_dense()).to(
                torch.complex128 if tensor.is_complex() else torch.float64
            )
            for tensor in (one, other)
        ]
        return torch.allclose(*wide, rtol=self.declared.rtol, atol=self.declared.atol, equal_nan=True)


@dataclass(frozen=True)
class Contract:
    """One demand on a model. `breaches` gives a sentence for each breach: what was seen, and what to do."""

    name: str
    demand: str  # one line
    breaches: Callable[[Case], list[str]]
    tests: tuple[str, ...] = BOTH
    presumes: tuple[str, ...] = ()  # contracts without which this one would only say again what they say
