"""A nightly on several machines: the plan that all of them have, and what follows when their shards have come.

Between the two, each machine runs `torchbench run --plan PLAN --shard i/n`.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from baselines.errors import OtherContentError
from baselines.policy import Policy, load_policy
from baselines.runs import list_runs, list_series, load_run, run_key, run_prefix, store_run
from baselines.store import Store, open_store
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.nightly import alone, conclude
from torchbenchmark.errors import SentinelError
from torchbenchmark.records import Run, read_run
from torchbenchmark.registry import Registry, Suite, load_suite
from torchbenchmark.shards import RunPlan, divide, durations, new_run_name, write_plan
from torchbenchmark.terminal import console, print_table

ConfigOption = Annotated[Path, typer.Option(help="YAML of the nightly; docs/nightly.md describes it.")]


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
    chosen = load_config(config)
    suite = load_suite(chosen.suite)
    known = recorded_durations(open_store(chosen.store), suite, chosen.device, machine_class)
    plan = make_plan(chosen, suite, shards, known)
    write_plan(plan, out)
    _print_plan(plan, known)
    console.print(Text(f"plan: {out}"))


def make_plan(config: NightlyConfig, suite: Suite, shards: int, known: Mapping[str, float]) -> RunPlan:
    """A plan of the configured suite; `known` holds the seconds of models that were measured before."""
    registry = Registry(config.models)
    models = {experiment.model for experiment in registry.experiments(suite, [config.device])}
    started = datetime.now(UTC)
    return RunPlan(
        run=new_run_name(started),
        started=started,
        seed=secrets.randbelow(2**31),
        suite=config.suite,
        device=config.device,
        rounds=config.rounds,
        processes=config.processes,
        subject=config.subject,
        threads=config.threads,
        budget_s=config.budget_s,
        timeout_s=config.timeout_s,
        memory_limit_mib=config.memory_limit_mib,
        model_folders=config.models,
        shards=divide({model: known.get(model) for model in models}, shards),
    )


def recorded_durations(store: Store, suite: Suite, device: str, machine_class: str | None) -> dict[str, float]:
    """Seconds of each model in the newest run of the suite on the device; empty if there is none that can be read."""
    classes = [one for name, one in list_series(store) if name == suite.name and machine_class in (None, one)]
    if machine_class is not None and not classes:
        raise BotError(f"{store.location}: no runs of {suite.name} on {machine_class}; see `torchbench baseline list`")
    newest = [runs[-1] for one in classes if (runs := list_runs(store, suite.name, one))]
    for prefix in sorted(newest, key=lambda prefix: prefix.rpartition("/")[2], reverse=True):
        try:
            run = load_run(store, prefix)
        except SentinelError as problem:
            console.print(f"not balanced by {prefix}: {problem}", markup=False, style="yellow")
            continue
        if run.header.device == device:
            return durations(run)
    return {}


def conclude_command(
    shards: Annotated[list[Path], typer.Argument(help="The records of the shards (.jsonl or .jsonl.gz).")],
    config: ConfigOption = Path("nightly.yaml"),
) -> None:
    """Store the shards that have come, compare their night with the nights before it, and file what got slower.

    A shard that comes later is concluded the same way: its night is then judged anew. Exit code 0: clean,
    1: regression, 2: broken, also if a shard is missing and nothing is slower in the others.
    """
    chosen = load_config(config)
    runs = [read_run(path) for path in shards]
    with alone(chosen.work):
        raise typer.Exit(conclude_shards(chosen, open_store(chosen.store), load_policy(chosen.policy), runs))


def conclude_shards(config: NightlyConfig, store: Store, policy: Policy, shards: Sequence[Run]) -> int:
    """Store and judge the night, or nights, of these shards, oldest first. Returns the worst exit code."""
    nights: dict[str, str] = {}
    for shard in sorted(shards, key=lambda shard: shard.header.started):
        if (key := _store_shard(store, shard)) is not None:
            nights[run_prefix(shard.header)] = key
    if not nights:
        raise BotError("no shard is complete: nothing was stored, and there is nothing to compare")
    return max(
        conclude(config, store, policy, load_run(store, prefix), key, time.monotonic())
        for prefix, key in nights.items()
    )


def _store_shard(store: Store, shard: Run) -> str | None:
    """The key of the shard; None if it is not fit to be stored. One that came before stays as it is."""
    header = shard.header
    name = f"shard {header.shard} of run {header.run}"
    if shard.missing:
        delivered, planned = len(shard.records), len(header.plan)
        console.print(
            f"{name} ended early, with {delivered} of {planned} tests: not stored, so that it can still be measured "
            "to its end (torchbench run --resume)",
            markup=False,
            style="yellow",
        )
        return None
    try:
        return store_run(store, shard)
    except OtherContentError:
        key = run_key(header)
        console.print(f"{name} has come before, with other results: those stay, {key}", markup=False, style="yellow")
        return key


def _print_plan(plan: RunPlan, known: Mapping[str, float]) -> None:
    table = Table(box=None)
    for heading in ("shard", "seconds the last time", "models"):
        table.add_column(heading)
    for index, models in enumerate(plan.shards, start=1):
        seconds = sum(known.get(model, 0.0) for model in models)
        new = sum(model not in known for model in models)
        told = f"{seconds:.0f}" + (f" and {new} not measured yet" if new else "")
        table.add_row(Text(f"{index}/{len(plan.shards)}"), Text(told), Text(", ".join(models)))
    print_table(table)
