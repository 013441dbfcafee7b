"""The command `confirm`: a night that is stored and not concluded is measured again where it stands, and concluded."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from baselines.confirming.stored_state import read_state
from baselines.history import read_nights
from baselines.policy import load_policy
from baselines.runs import list_runs, list_series, load_run, run_prefix
from baselines.series import chronological
from baselines.store import Store, open_store
from bot.conclusion import conclude
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.filing import IssuesOption, issue_file, open_tracker
from bot.nightly import alone
from torchbenchmark.cli import end_children_on_termination
from torchbenchmark.quantity import few
from torchbenchmark.records import Run
from torchbenchmark.registry import load_suite

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLOCK_AHEAD = timedelta(days=1)  # of the machine that measured the night


def register(app: typer.Typer) -> None:
    app.command("confirm")(confirm_command)


def confirm_command(
    config: ConfigOption = Path("nightly.yaml"),
    night: Annotated[
        str | None, typer.Option(help="The night: its date, such as 2026-11-28, or its run (default: the newest).")
    ] = None,
    machine_class: Annotated[
        str | None, typer.Option("--class", help="The class of the night, if the store has nights of several.")
    ] = None,
    issues: IssuesOption = None,
) -> None:
    """Measure again, on this machine, what a stored night suspects, and conclude it with what that shows.

    For a night that was stored and not confirmed: one of `confirm: false`, or whose nightly or workflow was killed. A
    start after a kill goes on. Exit code 0: clean, 1: regression, 2: broken.
    """
    end_children_on_termination()
    chosen = load_config(config)
    with alone(chosen.work):
        raise typer.Exit(confirm_stored(chosen, night, machine_class, issues))


def confirm_stored(config: NightlyConfig, night: str | None, machine_class: str | None, issues: Path | None) -> int:
    """Confirm and conclude a stored night. Returns the exit code; raises BotError if it was concluded already."""
    from bot.attributing import attribute_here
    from bot.confirming.bench import ASKS
    from bot.confirming.confirmation import (
        confirm_closings_here,
        confirm_here,
    )  # numpy and scipy take longer than most commands do

    store, policy = open_store(config.store, must_exist=True), load_policy(config.policy)
    run = load_run(store, _find(store, load_suite(config.suite).name, night, machine_class))
    _require_not_overtaken(store, run)
    tracker = open_tracker(config) if issues is None else issue_file(issues, config)
    confirm, closings = partial(confirm_here, config, store, policy), partial(confirm_closings_here, config, store)
    attribute = partial(attribute_here, config, store)
    code = conclude(
        config, store, policy, run, tracker, confirm=confirm, confirm_closings=closings, attribute=attribute
    )
    shutil.rmtree(config.work / ASKS / run.header.run, ignore_errors=True)
    return code


def _find(store: Store, suite: str, night: str | None, machine_class: str | None) -> str:
    """The prefix of the night that is meant."""
    classes = [one for name, one in list_series(store) if name == suite and machine_class in (None, one)]
    where = suite if machine_class is None else f"{suite} on {machine_class}"
    if not classes:
        raise BotError(f"{store.location}: no nights of {where}; see `torchbench baseline list`")
    if night is None:
        tomorrow = datetime.now(UTC) + _CLOCK_AHEAD
        newest = [one for each in classes for one in read_nights(store, suite, each, 1, before=tomorrow)]
        if not newest:
            raise BotError(f"{store.location}: no nights of {where} that can be read; see `torchbench baseline list`")
        return chronological(newest)[-1].key
    found = [prefix for one in classes for prefix in list_runs(store, suite, one) if _is(prefix, night)]
    if not found:
        raise BotError(f"{store.location}: no night {night} of {where}; see `torchbench baseline history`")
    if len(found) > 1:
        raise BotError(f"{night} is {len(found)} nights of {where}, so name the run or the --class: {few(found)}")
    return found[0]


def _is(prefix: str, night: str) -> bool:
    name = prefix.rpartition("/")[2]  # <date>-<build>-<run>
    return name.startswith(f"{night}-") if _DATE.fullmatch(night) else name.endswith(f"-{night}")


def _require_not_overtaken(store: Store, run: Run) -> None:
    header = run.header
    state, _ = read_state(store, header.suite, header.machine_class)
    if state.last_night is None or header.started > state.last_night:
        return
    if state.last_night > header.started:
        raise BotError(
            f"{run_prefix(header)}: is no night to confirm any more: that of {state.last_night:%Y-%m-%d %H:%M} UTC was "
            "confirmed since, and what came before it is told in its levels"
        )
    if state.concluded == header.started:
        raise BotError(f"{run_prefix(header)}: was confirmed already; what it came to stands, with what it filed")
