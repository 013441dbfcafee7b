"""A nightly on several machines: the plan that all of them have, and what follows when their shards have come.

Between the two, each machine runs `torchbench run --plan PLAN --shard i/n`.
"""

import secrets
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from baselines.errors import OtherContentError
from baselines.history import read_nights
from baselines.policy import Policy, load_policy
from baselines.runs import list_series, load_run, run_key, run_prefix, store_run
from baselines.series import chronological
from baselines.store import Store, open_store
from baselines.stored_builds import store_build
from bot.canary import missing_canaries, require_canaries, store_canaries
from bot.conclusion import Confirm, conclude
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.filing import IssuesOption, issue_file, open_tracker
from bot.github.issue import Tracker
from bot.nightly import alone
from bot.readiness import require_ready
from bot.recovering import recover_alerts
from torchbenchmark.builds.nightly_index import resolve
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.cli import tell_of_canaries
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.records import Run, read_run
from torchbenchmark.registry import Registry, Suite, load_suite
from torchbenchmark.shards import RunPlan, divide, durations, new_run_name, write_plan
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, console, error_console, print_table

# Takes nights by their prefixes, if another machine has to measure something of them first.
Deferring = Callable[[Store, Policy, Sequence[str]], bool]


def register(app: typer.Typer) -> None:
    app.command("plan")(plan_command)
    app.command("conclude")(conclude_command)


def plan_command(
    shards: Annotated[int, typer.Option(min=1, help="How many machines measure.")],
    config: ConfigOption = Path("nightly.yaml"),
    out: Annotated[Path, typer.Option(help="The file of the plan to write.")] = Path("plan.json"),
    machine_class: Annotated[
        str | None, typer.Option("--class", help="Balance by the last run of this class (default: the newest run).")
    ] = None,
) -> None:
    """Plan a run in shards: which machine measures which models, balanced by how long they took the last time."""
    plan_run(load_config(config), shards, out, machine_class)


def plan_run(chosen: NightlyConfig, shards: int, out: Path, machine_class: str | None = None) -> RunPlan:
    """Make a plan of the next run, write it to `out` and print it. No night is planned that could not be judged."""
    require_ready(chosen)
    suite = load_suite(chosen.suite)
    known = recorded_durations(open_store(chosen.store), suite, chosen.device, machine_class)
    plan = make_plan(chosen, suite, shards, known)
    write_plan(plan, out)
    print_plan(plan, known)
    if plan.build is not None:
        console.print(Text(f"build: {plan.build} from {plan.build.index}"))
    console.print(Text(f"plan: {out}"))
    return plan


def make_plan(config: NightlyConfig, suite: Suite, shards: int, known: Mapping[str, float]) -> RunPlan:
    """A plan of the configured suite; `known` holds the seconds of models that were measured before."""
    registry = Registry(config.models)
    models = {experiment.model for experiment in registry.experiments(suite, [config.device])}
    started = datetime.now(UTC)
    return RunPlan(
        run=new_run_name(started),
        started=started,
        seed=secrets.randbelow(2**31),
        suite=str(_from_here(Path(config.suite))),
        device=config.device,
        rounds=config.rounds,
        processes=config.processes,
        subject=config.subject,
        python=None if config.python is None else _from_here(config.python),
        threads=config.threads,
        budget_s=config.budget_s,
        timeout_s=config.timeout_s,
        memory_limit_mib=config.memory_limit_mib,
        model_folders=tuple(_from_here(folder) for folder in config.models),
        build=None if config.build is None else resolve(config.build),
        canary=None if config.canary is None else _canary_from_here(config.canary),
        shards=divide({model: known.get(model) for model in models}, shards),
    )


def _canary_from_here(canary: CanarySettings) -> CanarySettings:
    python = None if canary.python is None else _from_here(canary.python)
    return canary.model_copy(update={"python": python, "suite": str(_from_here(Path(canary.suite)))})


def _from_here(path: Path) -> Path:
    """A path below the working folder, relative to it: on another machine, the same checkout may lie elsewhere."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def recorded_durations(store: Store, suite: Suite, device: str, machine_class: str | None) -> dict[str, float]:
    """Seconds of each model in the newest run of the suite on the device; empty if there is none that can be read."""
    classes = [one for name, one in list_series(store) if name == suite.name and machine_class in (None, one)]
    if machine_class is not None and not classes:
        raise BotError(f"{store.location}: no runs of {suite.name} on {machine_class}; see `torchbench baseline list`")
    tomorrow = datetime.now(UTC) + timedelta(days=1)  # the clock of another machine may be ahead
    nights = [
        night for one in classes for night in read_nights(store, suite.name, one, 1, before=tomorrow, read_only=True)
    ]
    for night in reversed(chronological([night for night in nights if night.device == device])):
        try:
            return durations(load_run(store, night.key))
        except SentinelError as problem:
            console.print(f"not balanced by {night.key}: {problem}", markup=False, style="yellow")
    return {}


def conclude_command(
    shards: Annotated[list[Path], typer.Argument(help="The records of the shards (.jsonl or .jsonl.gz).")],
    config: ConfigOption = Path("nightly.yaml"),
    issues: IssuesOption = None,
) -> None:
    """Store the shards that have come, compare their night with the nights before it, and file what got slower.

    A shard that comes later is concluded the same way: its night is then judged anew. Exit code 0: clean,
    1: regression, 2: broken, also if a shard is missing and nothing is slower in the others.
    """
    chosen = load_config(config)
    tracker = open_tracker(chosen) if issues is None else issue_file(issues, chosen)
    raise typer.Exit(conclude_files(chosen, shards, tracker))


def conclude_files(
    config: NightlyConfig,
    files: Sequence[Path],
    tracker: Tracker,
    plan: RunPlan | None = None,
    deferring: Deferring | None = None,
) -> int:
    """`conclude_shards` of the files that can be read, and are shards of the plan, or their canaries, if there is one.
    Returns the exit code."""
    shards: list[Run] = []
    canaries: list[Run] = []
    codes: list[int] = []
    for path in files:
        try:
            run = read_run(path)
            if run.header.canary is None:
                shards.append(_fit_shard(run, path, config, plan))
            elif _are_fit(run, path, config, plan):
                canaries.append(run)
        except SentinelError as problem:
            codes.append(_told(problem))
    if canaries and not shards:
        codes.append(
            _told(BotError("canaries have come, and no shard to judge; name its file too, even if it is stored"))
        )
    if shards or canaries:
        asked = config.canary if plan is None else plan.canary
        with alone(config.work):
            store = open_store(config.store)
            store_canaries(store, canaries)
            if asked is not None:
                store_canaries(store, missing_canaries(store, asked, [shard.header for shard in shards], canaries))
            if plan is not None and plan.build is not None:  # first: by it another machine installs the build
                codes.append(_store_pin(store, plan.build, shards))
            codes.append(conclude_shards(config, store, load_policy(config.policy), shards, tracker, deferring))
    return max(codes)


def _store_pin(store: Store, pin: PinnedBuild, shards: Sequence[Run]) -> int:
    """Store how the build of the shards was pinned, so that it can be installed again. Returns the exit code."""
    try:
        for build in sorted({shard.header.build.id for shard in shards}):
            store_build(store, build, pin)
    except SentinelError as problem:
        return _told(problem)
    return EXIT_CLEAN


def _are_fit(run: Run, path: Path, config: NightlyConfig, plan: RunPlan | None) -> bool:
    """Canaries that are not are told and left out; the night is none the worse for it."""
    try:
        require_canaries(run, config, plan)
    except SentinelError as problem:
        tell_of_canaries(str(path), [f"{problem}; left out"])
        return False
    return True


def _fit_shard(shard: Run, path: Path, config: NightlyConfig, plan: RunPlan | None) -> Run:
    where = shard.header.machine_class
    if config.classes and where not in config.classes:
        raise BotError(f"{path}: is of class {where}, and `classes` takes {', '.join(config.classes)} only; left out")
    if plan is not None:
        try:
            plan.require(shard.header)
        except SentinelError as problem:
            raise BotError(f"{path}: {problem}; left out") from problem
        if (suite := load_suite(config.suite).name) != shard.header.suite:
            raise BotError(f"{path}: is of suite {shard.header.suite}, and {suite} was planned; left out")
    return shard


def conclude_shards(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    shards: Sequence[Run],
    tracker: Tracker,
    deferring: Deferring | None = None,
) -> int:
    """Store the shards and judge their nights, oldest first. Returns the highest exit code.

    What is wrong with one shard or one night is told, and stops no other: it makes the exit code 2. If `deferring`
    takes the nights, as something of them is to be measured first, they are not judged here.
    """
    nights: dict[str, None] = {}
    codes: list[int] = []
    for shard in sorted(shards, key=lambda shard: (shard.header.started, shard.header.shard.index)):
        try:
            _store_shard(store, shard)
        except SentinelError as problem:
            codes.append(_told(problem))
        else:
            nights[run_prefix(shard.header)] = None
    for suite, machine_class in dict.fromkeys((one.header.suite, one.header.machine_class) for one in shards):
        try:
            recover_alerts(store, tracker, suite, machine_class)  # before a night is judged, here or elsewhere
        except SentinelError as problem:
            codes.append(_told(problem))
    if deferring is not None and nights and deferring(store, policy, list(nights)):
        return max(codes, default=EXIT_CLEAN)
    confirm = _confirm_without_a_bench(config, store, policy, asked_before=deferring is not None)
    codes += conclude_nights(config, store, policy, dict.fromkeys(nights, confirm), tracker)
    return max(codes, default=EXIT_BROKEN)  # nothing was judged


def conclude_nights(
    config: NightlyConfig, store: Store, policy: Policy, nights: Mapping[str, Confirm | None], tracker: Tracker
) -> list[int]:
    """Conclude stored nights, by their prefixes, each with what confirms it. Returns their exit codes.

    Whatever one of them fails of, a full disk or a fault of the bot itself, is told, and the others are concluded.
    """
    codes: list[int] = []
    for prefix, confirm in nights.items():
        try:
            codes.append(conclude(config, store, policy, load_run(store, prefix), tracker, confirm=confirm))
        except SentinelError as problem:
            codes.append(_told(problem))
        except Exception as problem:
            if not isinstance(problem, OSError):  # whose text says all
                traceback.print_exc()
            what = one_line(str(problem)) or "no reason given"
            codes.append(_told(BotError(f"{prefix}: cannot be concluded: {type(problem).__name__}: {what}")))
    return codes


def _confirm_without_a_bench(
    config: NightlyConfig, store: Store, policy: Policy, *, asked_before: bool
) -> Confirm | None:
    """How nights are confirmed where nothing can be measured: those that have nothing to measure, if that was
    `asked_before`, and else those that were confirmed already."""
    if not config.confirm:
        return None
    from bot.elsewhere.deciding import (  # numpy and scipy take longer than most commands do
        confirm_without,
        confirmed_already,
    )

    return partial(confirm_without, config, store, policy) if asked_before else partial(confirmed_already, store)


def _store_shard(store: Store, shard: Run) -> None:
    """Raises BotError if the shard is not fit to be stored. One that came before stays as it is."""
    header = shard.header
    name = f"shard {header.shard} of run {header.run}"
    if shard.missing:
        delivered, planned = len(shard.records), len(header.plan)
        raise BotError(
            f"{name} ended early, with {delivered} of {planned} tests: not stored, so that it can still be measured "
            "to its end (torchbench run --resume)"
        )
    try:
        store_run(store, shard)
    except OtherContentError:
        key = run_key(header)
        console.print(f"{name} has come before, with other results: those stay, {key}", markup=False, style="yellow")


def _told(problem: SentinelError) -> int:
    error_console.print(f"error: {problem}", markup=False, style="red")
    return EXIT_BROKEN


def print_plan(plan: RunPlan, known: Mapping[str, float]) -> None:
    table = Table(box=None)
    for heading in ("shard", "seconds the last time", "models"):
        table.add_column(heading)
    for index, models in enumerate(plan.shards, start=1):
        table.add_row(Text(f"{index}/{len(plan.shards)}"), Text(_last_time(models, known)), Text(", ".join(models)))
    print_table(table)


def _last_time(models: Sequence[str], known: Mapping[str, float]) -> str:
    """How long the models of a shard took together; some of them, or all, may never have been measured."""
    new = sum(model not in known for model in models)
    if new == len(models):
        return "not measured yet"
    seconds = f"{sum(known.get(model, 0.0) for model in models):.0f}"
    return f"{seconds}, without {new} {'model' if new == 1 else 'models'} not measured yet" if new else seconds
