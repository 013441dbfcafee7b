"""How builds that an address names are made: `builds:` in a configuration; docs/builds.md describes every key."""

import importlib.metadata
import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from torchbenchmark.builds.address import ExtraIndex, Index
from torchbenchmark.builds.pinned import Distribution, ExactRequirement
from torchbenchmark.environment import worker_variables


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _inside(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("must be a folder inside of the checkout")
    return str(path)


def _variables(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith("TORCHBENCH_BUILD_"):
            raise ValueError(f"{name!r} is no name for a variable of a build")
    return variables


class GitSettings(_Settings):
    """How a commit becomes wheels."""

    # A list runs without a shell, {out}, {python}, {source} and {commit} replaced; a line runs in /bin/sh.
    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)] = (
        *("{python}", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "{out}", "{source}"),
    )
    dist: Annotated[str, AfterValidator(_inside)] = "dist"  # where the wheels are looked for if {out} stays empty
    tools: tuple[ExactRequirement, ...] = ()  # what the command needs of Python, in an environment of its own
    variables: Annotated[dict[str, str], AfterValidator(_variables)] = {}
    submodules: bool = True
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4 * 3600.0


class NightlySettings(_Settings):
    """What is taken from an index of nightlies."""

    packages: tuple[Distribution, ...] = ()  # beside the subject, of the same date
    max_age_days: Annotated[int, Field(ge=0)] = 3


class UrlSettings(_Settings):
    """What comes along with a wheel at an address."""

    # Templates with the placeholders of the address, filled with the same date or commit: torchvision, say.
    beside: tuple[Annotated[str, Field(min_length=1)], ...] = ()


def _numpy() -> tuple[str, ...]:
    """What measuring needs and torch does not bring, in the version that this driver has."""
    return (f"numpy=={importlib.metadata.version('numpy')}",)


class BuildSettings(_Settings):
    """What goes into the virtual environment of every build beside its own wheels, and how wheels are made."""

    index: Index | None = None  # None for what pip is configured to use
    extra_index: ExtraIndex | None = None
    requirements: tuple[ExactRequirement, ...] = Field(default_factory=_numpy)
    # Installed as they are: what would not accept the torch of the build, such as torchvision.
    without_dependencies: tuple[ExactRequirement, ...] = ()
    git: GitSettings = GitSettings()
    nightly: NightlySettings = NightlySettings()
    url: UrlSettings = UrlSettings()
    # Where the wheels of dates are: an address without its @date, `url:TEMPLATE` or `nightly:INDEX`.
    dated: Annotated[str, Field(pattern=r"^(url|nightly):")] | None = None


# Variables that would lead git into another repository than the one it is started in.
GIT_ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
GIT_ELSEWHERE += ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_CONFIG_PARAMETERS")


def build_variables(settings: GitSettings) -> dict[str, str]:
    """Environment variables of a build command: this process's, less whatever looks like a secret or belongs to a
    worker, plus those of the configuration."""
    ours = {"HF_HUB_OFFLINE", "OPENBLAS_NUM_THREADS", "JE_ARROW_MALLOC_CONF", "TOKENIZERS_PARALLELISM"}
    kept = {name: value for name, value in worker_variables().items() if name not in ours}
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", *GIT_ELSEWHERE):
        kept.pop(name, None)
    return {**kept, **settings.variables}
