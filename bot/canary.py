"""The command `canary`, which freezes the build of the canaries; and what a nightly does with their records."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from baselines.canaries import CanaryMove, moved, read_canaries
from baselines.errors import OtherContentError
from baselines.history import add_night
from baselines.policy import Policy
from baselines.runs import run_prefix, store_run
from baselines.series import NightSummary
from baselines.store import Store
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.readiness import require_ready
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.cli import CacheOption, LimitOption
from torchbenchmark.canaries.frozen import Frozen, frozen_build
from torchbenchmark.canaries.measuring import FEWEST, completed, not_measured, planned_canaries, problems
from torchbenchmark.canaries.settings import SUBJECT, CanarySettings
from torchbenchmark.cli import end_children_on_termination, tell_of_canaries
from torchbenchmark.errors import SentinelError
from torchbenchmark.experiment import Experiment
from torchbenchmark.records import WHOLE, Run, RunHeader
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.requirements import unmet
from torchbenchmark.shards import RunPlan
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, console

NOT_COME = "the run of canaries has not come"


def register(app: typer.Typer) -> None:
    app.command("canary")(canary_command)


def canary_command(
    config: ConfigOption = Path("nightly.yaml"),
    anew: Annotated[
        bool, typer.Option("--anew", help="Freeze what is there now; the canaries then begin again.")
    ] = False,
    cache: CacheOption = None,
    max_gib: LimitOption = None,
) -> None:
    """Make and freeze the build of the canaries, or check that it is still what was frozen. The last line of the output
    is its interpreter. Exit code 2: it is not, it cannot be had, or it can measure too few canaries."""
    end_children_on_termination()
    chosen = load_config(config)
    if chosen.canary is None:
        raise BotError(f"{config}: has no key canary, which says what the frozen build is")
    require_ready(chosen)
    with frozen_build(chosen.canary, BuildCache.open(cache, max_gib), anew=anew) as frozen:
        code = _print_frozen(chosen, chosen.canary, frozen)
        print(frozen.interpreter)
    raise typer.Exit(code)


def _print_frozen(config: NightlyConfig, canary: CanarySettings, frozen: Frozen) -> int:
    console.print(f"build id: {frozen.build.id}", markup=False)
    console.print(f"lock: {frozen.lock} (frozen {frozen.since:%Y-%m-%d %H:%M} UTC)", markup=False)
    lock = " ".join(f"{name}=={version}" for name, version in sorted(frozen.distributions.items()))
    console.print(f"holds: {lock}", markup=False)
    registry, able = Registry(config.models), 0
    for planned in planned_canaries(canary, config.device, config.models):
        entry = registry.model(Experiment.parse(planned.test).model)
        missing = unmet(entry.metadata.requires, frozen.distributions)
        reason = planned.skip or entry.unsupported_reason(Experiment.parse(planned.test))
        reason = reason or (f"needs {', '.join(map(str, missing))}" if missing else "")
        able += not reason
        console.print(
            f"  {planned.test}: {f'cannot be measured: {reason}' if reason else 'can be measured'}", markup=False
        )
    if able >= FEWEST:
        return EXIT_CLEAN
    console.print(
        f"{able} canaries can be measured on it, and at least {FEWEST} should be; add what they need to "
        "`canary.requirements`, or to the interpreter and freeze it --anew",
        markup=False,
        style="bold yellow",
    )
    return EXIT_BROKEN


def require_canaries(run: Run, config: NightlyConfig, plan: RunPlan | None) -> None:
    """Raises BotError unless this is a run of the canaries that are configured and, if there is a plan, of one of its
    shards, measured as planned."""
    header, canary = run.header, run.header.canary
    settings = config.canary if plan is None else plan.canary
    if canary is None or settings is None:
        raise BotError(f"run {header.run}: canaries, and none are asked for")
    shards = canary.shard.count if plan is None else len(plan.shards)
    folders = config.models if plan is None else plan.model_folders
    wanted: list[tuple[str, object, object]] = [
        ("name", canary.name, header.run),
        ("suite", load_suite(settings.suite).name, header.suite),
        ("subject", SUBJECT, header.build.subject),
        ("selection", (), header.selection),
        ("shard", WHOLE, header.shard),
        ("number of shards", shards, canary.shard.count),
        ("tests", planned_canaries(settings, header.device, folders, header.machine_class), header.plan),
    ]
    if settings.lock is not None and canary.lock:
        wanted.append(("lock", settings.lock, canary.lock))
    if plan is not None:
        wanted += [
            ("night", plan.run, canary.run),
            ("start", plan.started, header.started),
            ("device", plan.device, header.device),
            ("rounds", plan.rounds, header.rounds),
            ("processes", plan.processes, header.processes),
        ]
    for name, planned, found in wanted:
        if planned != found:
            raise BotError(f"run {header.run}: canaries whose {name} is not what was planned")
    if config.classes and header.machine_class not in config.classes:
        raise BotError(f"run {header.run}: is of class {header.machine_class}, which `classes` does not take")


def store_canaries(store: Store, runs: Sequence[Run]) -> list[str]:
    """Store runs of canaries, each with a record for every planned one. Returns the names of those that could not be,
    which is told and stops nothing."""
    failed = []
    for run in runs:
        whole = completed(run, "the run ended before this canary")
        try:
            try:
                store_run(store, whole)
            except OtherContentError:
                console.print(f"{run.header.canary} have come before, with other results: those stay", markup=False)
            add_night(store, run_prefix(run.header))
        except SentinelError as problem:
            tell_of_canaries(str(run.header.canary), [f"not stored: {problem}"])
            failed.append(run.header.run)
    return failed


def missing_canaries(
    store: Store, settings: CanarySettings, shards: Sequence[RunHeader], come: Sequence[Run]
) -> list[Run]:
    """For every shard that is stored, the runs of canaries that have not come with it nor before: errors."""
    have = {run.header.run for run in come}
    suite = load_suite(settings.suite).name
    found: list[Run] = []
    for shard in shards:
        _, night = read_canaries(store, suite, shard.machine_class, shard.run, shard.started, nights=1)
        stored = {run.run for run in night.runs} if night is not None else set()
        for turn in ("first", "last"):
            missing = not_measured(settings, shard, turn, NOT_COME)
            if missing.header.run not in have | stored:
                tell_of_canaries(str(missing.header.canary), problems(missing))
                found.append(missing)
    return found


def look_at_canaries(
    config: NightlyConfig, store: Store, policy: Policy, tonight: NightSummary, since: datetime | None = None
) -> CanaryMove | None:
    """What the frozen build did in a night; None without canaries. What is wrong with them stops nothing. `since`: the
    first night of the present environment, where one is known to have changed."""
    if config.canary is None:
        return None
    try:
        suite = load_suite(config.canary.suite).name
        history, night = read_canaries(store, suite, tonight.machine_class, tonight.run, tonight.started)
        if night is None:
            raise BotError(f"the night has no canaries in class {tonight.machine_class}")
        for other in night.left_out:
            told = f"measured on another frozen build ({other.build.id}) than those before, and left out"
            tell_of_canaries(str(other.canary), [f"{told}; write `canary.lock` into the configuration"])
        channels = {channel for run in night.measured for test in run.ok_tests for channel in run.tests[test].channels}
        judged = policy.for_device(tonight.device)
        chosen = next((one for one in judged if one.channel in channels), judged[0])
        return moved(history, night, chosen.channel, chosen.statistic, since)
    except SentinelError as problem:
        tell_of_canaries("canaries", [f"say nothing: {problem}"])
        return None
