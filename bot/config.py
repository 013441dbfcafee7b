"""The configuration of a nightly, from its YAML; docs/configuration.md describes every key."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from baselines.policy import GivenPolicy
from bot.alert_settings import AlertSettings, NotifySettings
from bot.bisect_settings import BisectSettings
from bot.errors import BotError
from bot.filing_rules import FilingRules
from bot.forms import of_form
from bot.inside import AttributeSettings
from bot.owners import OwnersOrGlobs
from bot.pull_request_settings import PullRequestSettings
from bot.runner_settings import RunnerSettings
from torchbenchmark.builds.nightly_index import NightlyBuild
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.environment import normalised_name
from torchbenchmark.yaml_files import read_yaml

ConfigOption = Annotated[Path, typer.Option(help="YAML of the nightly; docs/configuration.md describes it.")]

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


def _from_environment(value: object) -> object:
    """The variable of the environment that a value `$NAME` names: what differs between installations of one file."""
    named = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if named is None:
        return value
    if not (found := os.environ.get(named[1], "").strip()):
        raise ValueError(f"the environment has no {named[1]}; set it, or write the value here instead of {value}")
    return found


PerInstallation = Annotated[str, Field(min_length=1), BeforeValidator(_from_environment)]
Repository = Annotated[PerInstallation, AfterValidator(of_form(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", "OWNER/NAME"))]
PackageName = Annotated[
    str, AfterValidator(of_form(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "the name of one package, as pip has it"))
]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class NightlyConfig(BaseModel):
    """What is measured on which build, against which store, and where alerts go. Paths are relative to the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str = "smoke"
    device: Literal["cpu", "cuda"] = "cpu"
    models: tuple[Path, ...] = ()
    python: Path | None = None  # interpreter of tonight's build; None for the one that runs the bot
    build: NightlyBuild | None = None  # instead of `python`: what to install tonight
    keep_wheels: bool = True  # of `build`, in the store
    builds: BuildSettings = BuildSettings()  # how builds that an address names are made
    subject: PackageName = "torch"
    canary: CanarySettings | None = None  # the frozen build that is measured first and last; None for none

    rounds: Count = 3
    processes: Count = 1
    threads: Count | None = None
    budget_s: Positive | None = None
    timeout_s: Positive = 600.0
    memory_limit_mib: Count | None = None

    store: PerInstallation = ".nightly/store"
    work: Path = Path(".nightly/work")
    outbox: Path = Path(".nightly/outbox")
    github: Repository | None = None  # instead of the outbox
    github_login: str | None = None  # whom GITHUB_TOKEN writes as; None asks GitHub
    policy: GivenPolicy = "default"
    confirm: bool = True  # measure suspects again on this machine, and file only what is confirmed twice
    file: FilingRules = FilingRules()  # what becomes an issue, and when
    attribute: AttributeSettings = AttributeSettings()  # how much of what is filed is profiled
    bisect: BisectSettings | None = None  # find the commit of what is filed; None for not
    pull_requests: PullRequestSettings = PullRequestSettings()  # what `/benchmark` may, and who may say it
    runners: RunnerSettings = RunnerSettings()  # that the workflows of GitHub Actions use
    reference: str | None = None  # for the score; None for the first valid night of the store
    owners: OwnersOrGlobs = ()  # by glob of a model, or of a path that a culprit touched
    alerts: AlertSettings = AlertSettings()  # what is done with alerts beside their issues
    notify: NotifySettings | None = None  # who else is told of them; None for nobody
    classes: tuple[str, ...] = ()  # of the machines whose runs are taken; empty for any

    @model_validator(mode="after")
    def _one_build(self) -> "NightlyConfig":
        if self.build is None:
            return self
        if self.python is not None:
            raise ValueError("both `build` and `python` are set, and each says what is measured: keep one")
        if (first := self.build.packages[0]) != normalised_name(self.subject):
            raise ValueError(f"`subject` is {self.subject}, but `build.packages` begins with {first}: name the same")
        return self


def load_config(path: Path) -> NightlyConfig:
    """The configuration in a YAML file, its paths made absolute. Raises BotError naming file and key."""
    config = read_yaml(path, NightlyConfig, BotError)
    base = path.resolve().parent
    changes: dict[str, object] = {
        "models": tuple(_joined(base, folder) for folder in config.models),
        "work": _joined(base, config.work),
        "outbox": _joined(base, config.outbox),
    }
    if "://" not in config.store:
        changes["store"] = str(_joined(base, Path(config.store)))
    if config.python is not None and config.python.parent != Path():
        changes["python"] = _joined(base, config.python)
    if config.canary is not None:
        changes["canary"] = _canary_from(base, config.canary)
    if config.bisect is not None:
        changes["bisect"] = config.bisect.model_copy(update={"repo": _joined(base, config.bisect.repo)})
    if (suite := config.pull_requests.suite) is not None and suite.endswith((".yaml", ".yml")):
        named = {"suite": str(_joined(base, Path(suite)))}
        changes["pull_requests"] = config.pull_requests.model_copy(update=named)
    for key in ("suite", "policy"):
        value = getattr(config, key)
        if isinstance(value, str) and value.endswith((".yaml", ".yml")):
            changes[key] = str(_joined(base, Path(value)))
    if config.reference is not None and (base / config.reference).exists():
        changes["reference"] = str(_joined(base, Path(config.reference)))
    return config.model_copy(update=changes)


def _canary_from(base: Path, canary: CanarySettings) -> CanarySettings:
    changes: dict[str, object] = {}
    if canary.python is not None and canary.python.parent != Path():
        changes["python"] = _joined(base, canary.python)
    if canary.suite.endswith((".yaml", ".yml")):
        changes["suite"] = str(_joined(base, Path(canary.suite)))
    return canary.model_copy(update=changes)


def _joined(base: Path, path: Path) -> Path:
    """The path from `base`, without `..`; links stay, as that of a virtual environment's interpreter must."""
    return Path(os.path.normpath(base / path))
