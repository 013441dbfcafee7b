"""The watchdog: speaks when a nightly has not come, or has come without data.

It needs the store and the tracker only, so that it can be called from anywhere, also from outside of what it watches.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from baselines.history import read_nights
from baselines.runs import list_series
from baselines.series import NightSummary
from baselines.store import Store, open_store
from bot.config import NightlyConfig, load_config
from bot.github.issue import Issue
from bot.nightly import open_tracker
from torchbenchmark.registry import load_suite
from torchbenchmark.terminal import EXIT_CLEAN, EXIT_REGRESSION, console

HOURS = 26.0  # a night and some delay
RETIRED = timedelta(days=30)  # a class that was silent for so long is not watched any more
ANY_CLASS = "any class"  # named where there is none
LABELS = ("torchbench", "nightly missing")


@dataclass(frozen=True)
class Watched:
    """One class of the suite, its newest night, and what is wrong; empty if nothing is."""

    suite: str
    machine_class: str
    newest: NightSummary | None
    problem: str


def register(app: typer.Typer) -> None:
    app.command("watchdog")(watchdog_command)


def watchdog_command(
    config: Annotated[Path, typer.Option(help="YAML of the nightly; docs/nightly.md describes it.")] = Path(
        "nightly.yaml"
    ),
    hours: Annotated[float, typer.Option(min=1.0, help="How old the newest night may be.")] = HOURS,
    machine_class: Annotated[
        str | None, typer.Option("--class", help="Watch this class only (default: all of the last 30 days).")
    ] = None,
) -> None:
    """Say, and file an issue, when no night or no data has come. Exit code 0: all is well, 1: something is missing."""
    chosen = load_config(config)
    name = load_suite(chosen.suite).name
    watched = look(open_store(chosen.store), name, machine_class, timedelta(hours=hours), datetime.now(UTC))
    for one in watched:
        console.print(Text(f"{one.suite} on {one.machine_class}: {one.problem or _well(one)}"))
    file(chosen, watched)
    raise typer.Exit(EXIT_REGRESSION if any(one.problem for one in watched) else EXIT_CLEAN)


def look(store: Store, suite: str, machine_class: str | None, limit: timedelta, now: datetime) -> list[Watched]:
    """Every watched class of the suite. Where there is none at all, that is what is wrong."""
    classes = [one for name, one in list_series(store) if name == suite and machine_class in (None, one)]
    found = [_look_at(store, suite, one, limit, now) for one in classes]
    watched = [one for one in found if one.newest is None or now - one.newest.started <= RETIRED or machine_class]
    if not watched:
        since = f" in {RETIRED.days} days" if found else ""
        return [Watched(suite, machine_class or ANY_CLASS, None, f"there has been no night{since}")]
    return watched


def _look_at(store: Store, suite: str, machine_class: str, limit: timedelta, now: datetime) -> Watched:
    # A night ahead of our clock by some minutes is a night.
    nights = read_nights(store, suite, machine_class, 1, before=now + timedelta(days=1))
    newest = nights[-1] if nights else None
    if newest is None:
        return Watched(suite, machine_class, None, "there is no night that can be read")
    age = now - newest.started
    if age > limit:
        return Watched(suite, machine_class, newest, f"no night for {age.total_seconds() / 3600:.0f} hours")
    if not newest.ok_tests:
        return Watched(suite, machine_class, newest, "the newest night has no data: no test ended ok")
    return Watched(suite, machine_class, newest, "")


def file(config: NightlyConfig, watched: Sequence[Watched]) -> None:
    """One issue per class: open while something is missing, closed when it has come."""
    tracker = open_tracker(config)
    if all(one.machine_class != ANY_CLASS for one in watched):
        watched = [*watched, Watched(watched[0].suite, ANY_CLASS, watched[0].newest, "")]  # there is a night by now
    for one in watched:
        filed = tracker.put(_issue(one, config))
        if filed is not None and filed.effect != "unchanged":
            console.print(Text(f"issue {filed.effect}: {filed.title}\n  {filed.where}"))


def _issue(one: Watched, config: NightlyConfig) -> Issue:
    newest = one.newest
    last = (
        f"The newest one is of {newest.started:%Y-%m-%d %H:%M} UTC, {newest.build.subject} {newest.build.version}, "
        f"run `{newest.run}`, {len(newest.ok_tests)} of {len(newest.tests)} tests ok."
        if newest
        else "The store has none."
    )
    said = (
        f"**{one.problem[0].upper()}{one.problem[1:]}.** {last}\n\n"
        "While no night comes, no regression can be seen. Look at the last runs of the nightly workflow: "
        "is it enabled, is a runner online, did the measuring or the upload fail?\n\n"
        "`torchbench watchdog` wrote this, and closes it when a night with data has come."
        if one.problem
        else f"A night with data has come. {last}"
    )
    owners = f"\n\ncc {' '.join(config.owners)}" if config.owners and one.problem else ""
    return Issue(
        key=hashlib.sha256(f"watchdog|{one.suite}|{one.machine_class}".encode()).hexdigest()[:16],
        title=f"No nightly of {one.suite} on {one.machine_class}",
        body=said + owners,
        labels=LABELS,
        is_open=bool(one.problem),
    )


def _well(one: Watched) -> str:
    assert one.newest is not None
    return f"well, the newest night is of {one.newest.started:%Y-%m-%d %H:%M} UTC"
