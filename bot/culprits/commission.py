"""What is asked of a bisection of an alert. It is stored when it is first asked: the nights after may add tests and
pairs to the alert, and the bisection that was begun goes on all the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baselines.store import Store
from bot.bisection.document import PREFIX, Asked
from bot.bisection.git_range import GitRange
from bot.config import NightlyConfig
from bot.culprits.commits_of_builds import commit_of
from bot.culprits.signal_range import SignalRange
from bot.culprits.tests_of_suite import digest, with_command
from bot.errors import BotError
from bot.github.alert import Alert
from torchbenchmark.errors import SentinelError
from torchbenchmark.registry import load_suite
from torchbenchmark.yaml_files import first_problem

SCHEMA = 1


class Commission(BaseModel):
    """The stored object, which is written once."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["bisection of an alert"] = "bisection of an alert"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    alert: str
    episode: int
    machine_class: str = Field(alias="class")
    asked: Asked
    environment: tuple[str, ...] = ()
    named_ends: bool = False  # by a person: asked beside what the nights ask of the alert, and not kept as that


def commission(store: Store, alert: Alert, make: Callable[[], Commission]) -> Commission:
    """What was asked of this time of the alert, or now is."""
    if (known := known_commission(store, alert)) is None:
        content = make().model_dump_json(by_alias=True, indent=1).encode() + b"\n"
        store.write_if(_key(alert), content, None)
        known = known_commission(store, alert)
    assert known is not None
    return known


def known_commission(store: Store, alert: Alert) -> Commission | None:
    """What was asked of this time of the alert, if anything was."""
    if (content := store.read_if_present(_key(alert))) is None:
        return None
    try:
        return Commission.model_validate_json(content)
    except ValidationError as error:
        raise BotError(
            f"{store.location}: {_key(alert)}: {first_problem(error)}; mend it, or remove it to bisect this alert anew"
        ) from error


def _key(alert: Alert) -> str:
    return f"{PREFIX}/of-alerts/{alert.key}-{len(alert.earlier)}.json"


def commissioned(
    signal: SignalRange,
    config: NightlyConfig,
    repository: Path,
    build: str | None,
    build_timeout_s: float,
    most_builds: int | None,
    most_pairs: int | None,
    named: tuple[str, str] | None = None,
) -> Commission:
    """What the configuration asks of an alert, between the commits of its nights or the ends that a person has `named`.
    Raises BotError where they make no range of the repository."""
    ends = GitRange(repository, *ends_in(repository, signal, *(named or ())))
    settings = with_command(config.builds, build, build_timeout_s)
    measuring = signal.bad.measuring
    asked = Asked(
        good=ends.good,
        bad=ends.bad,
        build=build,
        tests=signal.tests,
        suite=suite_of(signal.alert, config),
        device=signal.bad.device,
        channel=signal.channel,
        compared=signal.compared,
        subject=signal.subject,
        threads=measuring.threads,
        budget_s=measuring.budget_s,
        builds=digest(settings, config.models),
        beyond=signal.beyond,
        most_builds=most_builds,
        most_pairs=most_pairs,
    )
    alert = signal.alert
    return Commission(
        alert=alert.key,
        episode=len(alert.earlier),
        machine_class=alert.machine_class,
        asked=asked,
        environment=signal.environment,
        named_ends=named is not None,
    )


def ends_in(repository: Path, signal: SignalRange, good: str | None = None, bad: str | None = None) -> tuple[str, str]:
    """Both ends: those that a person has named, else the commits of the nights. Raises BotError if they are one."""
    good = good or commit_of(signal.good.build, repository, "good")
    bad = bad or commit_of(signal.bad.build, repository, "bad")
    if good == bad:
        differs = "; ".join(signal.environment) or "nothing"
        raise BotError(
            f"alert {signal.alert.key}: the builds of both nights are of one commit, {good[:12]}, so no commit "
            f"made the difference; beside it differ: {differs}"
        )
    return good, bad


def suite_of(alert: Alert, config: NightlyConfig) -> str:
    """What the suite of an alert is loaded by: the configuration's, where that is the one; else its name."""
    try:
        return config.suite if load_suite(config.suite).name == alert.suite else alert.suite
    except SentinelError:
        return alert.suite
