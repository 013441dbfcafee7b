"""The profile of one process: seconds of one iteration by operator and by kernel, as the worker counted them."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from torchbenchmark.foreign_text import one_line
from torchbenchmark.records import Process

LONGEST_NAME = 400  # characters; a kernel's name holds all its template arguments
MOST_NAMES = 4000  # of operators and kernels in one profile

Amount = Annotated[float, Field(ge=0, le=1e12)]


def _cleaned(text: str) -> str:
    return one_line(text)[:LONGEST_NAME]


Name = Annotated[str, AfterValidator(_cleaned)]  # a model or a build made it, or whoever wrote the file


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class KernelUse(_Schema):
    """A kernel or a copy on the GPU, of one operator."""

    name: Name
    launches: Amount
    seconds: Amount
    is_copy: bool = False


class OperatorUse(_Schema):
    """One operator; an empty name is for kernels that none launched."""

    name: Name
    calls: Amount
    host_s: Amount  # without the operators inside it, and without waits
    kernels: tuple[KernelUse, ...] = ()


class ProcessProfile(_Schema):
    """Of one iteration: times of the host by their 20th percentile, kernels and counts as means."""

    iterations: Annotated[int, Field(ge=1)]
    wall_s: Amount
    outside_s: Amount  # in no operator and no wait: Python
    waiting_s: Amount  # in calls that wait for the GPU
    probe_s: Amount | None = None  # of the host probe between the iterations
    operators: Annotated[tuple[OperatorUse, ...], Field(max_length=MOST_NAMES)]

    @model_validator(mode="after")
    def _of_few_names(self) -> "ProcessProfile":
        if sum(1 + len(one.kernels) for one in self.operators) > MOST_NAMES:
            raise ValueError(f"a profile with over {MOST_NAMES} names")
        return self


class ProfiledProcess(Process):
    """A process that was asked for its profile as well."""

    profile: ProcessProfile


def profile_of(plain: dict[str, Any]) -> ProcessProfile:
    """A profile from what a child reported. Raises ValueError if it is none."""
    return ProcessProfile.model_validate(plain)
