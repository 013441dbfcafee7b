"""The canaries of a nightly: `canary:` in its configuration and in plans; docs/configuration.md has its keys."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from torchbenchmark.builds.address import ExtraIndex, Index
from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.pinned import ExactRequirement
from torchbenchmark.builds.venv import VenvAddress
from torchbenchmark.errors import BenchmarkError

SUITE = "canary"
SUBJECT = "torch"  # of a frozen build, whatever the nightly's own subject is


def _address(text: str) -> str:
    try:
        address = parse_address(text, SUBJECT)
    except BenchmarkError as error:
        raise ValueError(str(error)) from error
    if isinstance(address, VenvAddress):
        raise ValueError("names an interpreter, which belongs under `python`")
    return str(address)


class CanarySettings(BaseModel):
    """The frozen build and the suite that is measured on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    build: Annotated[str, AfterValidator(_address)] | None = None  # an address that means the same build for ever
    python: Path | None = None  # instead of `build`: an interpreter that nobody changes
    suite: str = SUITE
    requirements: tuple[ExactRequirement, ...] = ()  # with `build`: what is installed beside it
    index: Index | None = None  # with `build`: None for what pip is configured to use
    extra_index: ExtraIndex | None = None
    lock: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] | None = None  # the fingerprint that it must have

    @model_validator(mode="after")
    def _one_build(self) -> "CanarySettings":
        if (self.build is None) == (self.python is None):
            raise ValueError("set either `build`, the address of the frozen build, or `python`, its interpreter")
        if self.python is not None and (self.requirements or self.index or self.extra_index):
            raise ValueError("`requirements` and indexes belong to `build`; what `python` names is measured as it is")
        if self.build is not None and not self.requirements:
            raise ValueError(
                "`build` needs `requirements`: the exact versions of what the canaries need beside torch, such as "
                "[numpy==2.4.6, timm==1.0.31, transformers==5.24.0]"
            )
        return self
