"""The watchdog: speaks when a nightly has not come, or has come without data.

It needs the store and the tracker only, so that it can be called from anywhere, also from outside of what it watches.
"""

from collections import Counter
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
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.filing import IssuesOption, open_tracker, tell
from bot.github.issue import BOT_LABEL, Issue, Tracker, key_of
from bot.github.issue_file import IssueFile
from bot.owners import owners_of
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.registry import load_suite
from torchbenchmark.terminal import EXIT_CLEAN, EXIT_REGRESSION, console

HOURS = 26.0  # a night and some delay
RETIRED = timedelta(days=30)  # a class that was silent for so long is not watched any more
ANY_CLASS = "any class"  # named where there is none
MOST_REASONS = 3  # in an issue, of the tests of a night without data
LABELS = (BOT_LABEL, "nightly missing")


@dataclass(frozen=True)
class Watched:
    """One class of the suite, its newest night, and what is wrong; empty if nothing is."""

    suite: str
    machine_class: str
    newest: NightSummary | None
    problem: str
    came_empty: bool = False  # the newest night has come in time, but none of its tests ended ok
    retired: bool = False  # silent for so long that nobody waits for it
    last_good: str = ""  # run of the newest night with data: while that stays, it is one outage


def register(app: typer.Typer) -> None:
    app.command("watchdog")(watchdog_command)


def watchdog_command(
    config: ConfigOption = Path("nightly.yaml"),
    hours: Annotated[float, typer.Option(min=1.0, max=8760.0, help="How old the newest night may be.")] = HOURS,
    machine_class: Annotated[
        str | None, typer.Option("--class", help="Watch this class only (default: all of the last 30 days).")
    ] = None,
    issues: IssuesOption = None,
) -> None:
    """Say, and file an issue, when no night or no data has come. Exit code 0: all is well, 1: something is missing."""
    chosen = load_config(config)
    tracker = open_tracker(chosen) if issues is None else IssueFile(issues)
    watched = watch(chosen, tracker, timedelta(hours=hours), machine_class)
    raise typer.Exit(EXIT_REGRESSION if any(one.problem for one in watched) else EXIT_CLEAN)


def watch(
    config: NightlyConfig, tracker: Tracker, limit: timedelta = timedelta(hours=HOURS), machine_class: str | None = None
) -> list[Watched]:
    """Look at every class, say how it is, and file that."""
    name = load_suite(config.suite).name
    now = datetime.now(UTC)
    watched = look(open_store(config.store), name, machine_class, limit, now, config.classes)
    for one in watched:
        console.print(Text(f"{one.suite} on {one.machine_class}: {one.problem or _well(one)}"))
    file(config, watched, tracker, now)
    return watched


def look(
    store: Store,
    suite: str,
    machine_class: str | None,
    limit: timedelta,
    now: datetime,
    expected: Sequence[str] = (),
) -> list[Watched]:
    """Every class of the suite that has nights or is expected, or the one that is named. Where none is watched at all,
    that is what is wrong."""
    classes = [one for name, one in list_series(store) if name == suite]
    if machine_class is not None and (classes or expected):
        _require_known(store, suite, machine_class, [*classes, *expected])
        return [_look_at(store, suite, machine_class, limit, now, may_retire=False)]
    found = [
        _look_at(store, suite, one, limit, now, may_retire=one not in expected) for one in sorted({*classes, *expected})
    ]
    if all(one.retired for one in found):
        since = f" in {RETIRED.days} days" if found else ""
        found.append(Watched(suite, ANY_CLASS, None, f"there has been no night{since}"))
    return found


def _require_known(store: Store, suite: str, machine_class: str, classes: Sequence[str]) -> None:
    """A misspelt class has no night, and never will: that is a mistake, and no outage."""
    if machine_class in classes:
        return
    # The history knows a class also if the records of its runs were removed.
    known = {*classes, *(key.split("/")[2] for key in store.list(f"history/{suite}/"))}
    if machine_class not in known:
        raise BotError(f"--class {machine_class}: there is no run of {suite} on it; known: {', '.join(sorted(known))}")


def _look_at(
    store: Store, suite: str, machine_class: str, limit: timedelta, now: datetime, may_retire: bool
) -> Watched:
    # A night ahead of our clock by some hours is a night.
    nights = read_nights(
        store, suite, machine_class, 1, before=now + timedelta(days=1), wanted=_has_data, read_only=True
    )
    newest = nights[-1] if nights else None
    if newest is None:
        return Watched(suite, machine_class, None, "there is no night that can be read")
    age = now - newest.started
    if age > RETIRED and may_retire:
        return Watched(suite, machine_class, newest, "", retired=True)
    problem, came_empty = "", False
    if age > limit:
        problem = f"no night for {age.total_seconds() / 3600:.0f} hours"
    elif not _has_data(newest):
        problem, came_empty = "the newest night has no data: no test ended ok", True
    last_good = next((night.run for night in reversed(nights) if _has_data(night)), "")
    return Watched(suite, machine_class, newest, problem, came_empty=came_empty, last_good=last_good)


def _has_data(night: NightSummary) -> bool:
    return bool(night.ok_tests)


def file(config: NightlyConfig, watched: Sequence[Watched], tracker: Tracker, now: datetime) -> None:
    """One issue per class: open while something is missing, closed when it has come."""
    if any(_is_well(one) for one in watched) and all(one.machine_class != ANY_CLASS for one in watched):
        watched = [*watched, Watched(watched[0].suite, ANY_CLASS, None, "")]
    for one in watched:
        filed = tracker.put(_issue(one, config, now))
        if filed is not None and filed.effect != "unchanged":
            tell(filed)


def _is_well(one: Watched) -> bool:
    return not one.problem and not one.retired


def _issue(one: Watched, config: NightlyConfig, now: datetime) -> Issue:
    return Issue(
        key=key_of("watchdog", one.suite, one.machine_class),
        title=f"No nightly of {one.suite} on {one.machine_class}",
        body=_missing(one, config) if one.problem else _over(one),
        labels=LABELS,
        is_open=bool(one.problem),
        # A person who closes it has seen this outage, and not the next.
        occasion=f"after {one.last_good or 'nothing'}" if one.problem else "",
        revision=int(now.timestamp()),
    )


def _missing(one: Watched, config: NightlyConfig) -> str:
    newest = one.newest
    last = (
        f"The newest one is of {newest.started:%Y-%m-%d %H:%M} UTC, {newest.build.subject} {newest.build.version}, "
        f"run `{newest.run}`, {len(newest.ok_tests)} of {len(newest.tests)} tests ok."
        if newest
        else "The store has none."
    )
    told = owners_of(config.owners)
    owners = f"\n\ncc {' '.join(told)}" if told else ""
    return (
        f"**{one.problem[0].upper()}{one.problem[1:]}.** {last}\n\n"
        f"{_advice(one, config)}\n\n"
        "`torchbench watchdog` wrote this, and closes it when a night with data has come." + owners
    )


def _advice(one: Watched, config: NightlyConfig) -> str:
    if one.newest is None or not one.came_empty:
        return (
            "While no night comes, no regression can be seen. Look at the last runs of the nightly workflow: "
            "is it enabled, is a runner online, did the measuring or the upload fail?"
        )
    reasons = Counter(
        f"{test.status or 'no record'}: {test.reason}" if test.reason else str(test.status or "no record")
        for test in one.newest.tests.values()
    )
    most = "\n".join(
        f"- {count} test{'' if count == 1 else 's'}: {inline_code(reason)}"
        for reason, count in reasons.most_common(MOST_REASONS)
    )
    show = inline_code(f"torchbench baseline show --store {config.store} {one.newest.key}")
    return (
        "While no test ends ok, no regression can be seen. The night was measured and stored, so look at why its tests "
        f"failed:\n\n{most}\n\n"
        f"{show} has the reason of every test. Tests that all fail in one way mostly have one cause: "
        "a build that cannot be imported, a package that the models need and the build lacks (`torchbench install` "
        "names it), a device that is not there."
    )


def _over(one: Watched) -> str:
    """The same on every night that is well, so that a closed issue is left alone."""
    if one.retired:
        return f"There has been no night for {RETIRED.days} days: this class is not watched any more."
    return "A night with data has come."


def _well(one: Watched) -> str:
    assert one.newest is not None
    if one.retired:
        return f"not watched, the newest night is of {one.newest.started:%Y-%m-%d}"
    return f"well, the newest night is of {one.newest.started:%Y-%m-%d %H:%M} UTC"
