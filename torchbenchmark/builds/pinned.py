"""A pinned build: the exact wheels that a provider chose, as they stand in a plan and beside what was installed."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from torchbenchmark.builds.address import ExtraIndex, Index
from torchbenchmark.environment import normalised_name
from torchbenchmark.errors import BenchmarkError


def _exact(text: str) -> str:
    """A requirement that only one version meets, so that every machine gets the same."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is not a requirement such as timm==1.0.31") from error
    exact = [one for one in requirement.specifier if one.operator == "==" and not one.version.endswith("*")]
    if requirement.url or len(requirement.specifier) != 1 or not exact:
        raise ValueError(f"{text!r} does not pin one version, as timm==1.0.31 does")
    return str(requirement)


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise ValueError(f"{text!r} is not a version") from error


Distribution = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=100), AfterValidator(normalised_name)
]
ExactRequirement = Annotated[str, AfterValidator(_exact)]
PythonVersion = Annotated[str, Field(pattern=r"^3\.[1-9][0-9]?$")]


class _Pin(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PinnedWheel(_Pin):
    """One wheel of a pinned build."""

    name: Distribution
    version: Annotated[str, AfterValidator(_version)]
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+!-]{1,255}\.whl$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None  # None where the index does not tell it

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


class PinnedBuild(_Pin):
    """What `torchbench build` installs: the same on every machine and at every hour."""

    provider: Literal["nightly"] = "nightly"
    index: Index
    extra_index: ExtraIndex | None = None
    date: date
    python: PythonVersion  # of the interpreter that the wheels are for
    wheels: Annotated[tuple[PinnedWheel, ...], Field(min_length=1)]  # the subject first
    requirements: tuple[ExactRequirement, ...] = ()  # installed beside, from either index

    @property
    def subject(self) -> PinnedWheel:
        return self.wheels[0]

    def __str__(self) -> str:
        return " ".join(wheel.requirement for wheel in self.wheels)

    def require(self, distributions: Mapping[str, str], python: Path | str) -> None:
        """Raises BenchmarkError unless these are the versions that `python`, which has `distributions`, holds."""
        for wheel in self.wheels:
            found = distributions.get(wheel.name)
            if found is None or not _same_version(found, wheel.version):
                raise BenchmarkError(
                    f"{python}: holds {f'{wheel.name} {found}' if found else f'no {wheel.name}'}, but the build is "
                    f"pinned to {wheel.requirement}; install it with `torchbench build --plan PLAN --into FOLDER` and "
                    "measure with --python FOLDER/bin/python"
                )


def _same_version(found: str, pinned: str) -> bool:
    try:
        return Version(found) == Version(pinned)
    except InvalidVersion:
        return False
