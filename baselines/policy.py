"""The numbers of the regression rule, from the YAML files in policies/ or one of the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from baselines.errors import BaselineError
from baselines.screening import KnobName
from baselines.series import Statistic
from torchbenchmark.channels import CHANNELS
from torchbenchmark.yaml_files import read_yaml

POLICIES = Path(__file__).parent / "policies"
SEED_PER_TEST = 0.07  # TorchBench's limits, reported whatever the policy says
SEED_TOTAL = 0.01


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Judged(_Schema):
    channel: str
    statistic: Statistic

    @property
    def pair(self) -> tuple[str, Statistic]:
        return self.channel, self.statistic


def _form(value: object) -> str:
    return "[keys]" if isinstance(value, Mapping | Policy) else "[name]"


class Policy(_Schema):
    """The rule's numbers; baselines/policies/*.yaml."""

    name: str
    description: str = ""
    per_test: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] = SEED_PER_TEST
    total: Annotated[float, Field(gt=0, lt=1, strict=True)] = SEED_TOTAL
    nights: Annotated[int, Field(ge=1, strict=True)] = 7
    min_coverage: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.8
    screen: KnobName = "default"  # how sure a level shift is before it is reported
    judged: dict[Literal["cpu", "cuda"], tuple[Judged, ...]]  # per device the first that tonight has

    @model_validator(mode="after")
    def _measurable(self) -> "Policy":
        for device, judged in self.judged.items():
            # Channels to come may be named, but one that is measured today has to stand in for them.
            if not any(one.channel in CHANNELS for one in judged):
                raise ValueError(f"judged.{device}: none of its channels is measured; known: {', '.join(CHANNELS)}")
        return self

    def for_device(self, device: str) -> tuple[Judged, ...]:
        if device not in self.judged:
            raise BaselineError(f"policy {self.name}: names no channel for the device {device!r}; add judged.{device}")
        return self.judged[device]


# What a configuration may say: the name or path of a policy, or its keys.
GivenPolicy = Annotated[Annotated[str, Tag("[name]")] | Annotated[Policy, Tag("[keys]")], Discriminator(_form)]


def load_policy(name_or_path: str | Policy) -> Policy:
    """A policy of this project by name, or any by the path of its YAML. One that is there already stays as it is."""
    if isinstance(name_or_path, Policy):
        return name_or_path
    if name_or_path.endswith((".yaml", ".yml")):
        return read_yaml(Path(name_or_path), Policy, BaselineError)
    known = sorted(path.stem for path in POLICIES.glob("*.yaml"))
    if name_or_path not in known:
        raise BaselineError(f"unknown policy {name_or_path!r}; known: {', '.join(known)}, or give a .yaml file")
    return read_yaml(POLICIES / f"{name_or_path}.yaml", Policy, BaselineError)
