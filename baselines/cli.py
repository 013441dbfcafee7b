"""`torchbench baseline`: what a store holds, pins, and the history."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.text import Text

from baselines.confirming.rates import rates_of
from baselines.confirming.stored_state import read_state
from baselines.errors import BaselineError
from baselines.history import read_nights, rebuild_history
from baselines.kept_wheels import kept_builds, needed_builds, remove_wheels
from baselines.needed_nights import KEEP_NIGHTS, NightsOf, no_others
from baselines.night_tables import EARLIER, new_table, night_table, require_channel, series_table, shown_value, texts
from baselines.pins import read_pins, remove_pin, set_pin
from baselines.retention import KEEP_DAYS, LEAST_DAYS, outdated_runs, remove_runs
from baselines.runs import list_runs, list_series, load_run
from baselines.series import NightSummary, Statistic, summarise
from baselines.store import Store, open_store
from torchbenchmark.quantity import counted, quantity
from torchbenchmark.terminal import EXIT_BROKEN, console, new_app, print_table

USUAL_CHANNEL = "cpu_time"  # of every device

StoreOption = Annotated[str, typer.Option("--store", help="The store: a folder, or s3://bucket/prefix.")]
SuiteArgument = Annotated[str, typer.Argument(help="Name of the suite.")]
ClassArgument = Annotated[str, typer.Argument(metavar="CLASS", help="The machine class, as `list` shows it.")]
RunArgument = Annotated[str, typer.Argument(help="Key of the run, runs/SUITE/CLASS/NIGHT, as `history` shows it.")]


def register(app: typer.Typer, others: NightsOf = no_others) -> None:
    """`others`: more nights that stay whole, however old they are."""
    baseline = new_app("What a store of baselines holds: runs, their history, pins.")
    for name, command in (
        ("list", list_baselines),
        ("history", show_history),
        ("show", show_run),
        ("pin", pin_run),
        ("unpin", unpin),
        ("rates", show_rates),
        ("rebuild", rebuild),
        ("gc", _collecting_garbage(others)),
    ):
        baseline.command(name)(command)
    app.add_typer(baseline, name="baseline")


def list_baselines(store: StoreOption) -> None:
    """Suites and classes, their nights and pins."""
    opened = open_store(store, must_exist=True)
    table = new_table("suite", "class", "nights", "first", "last", "pins")
    for suite, machine_class in list_series(opened):
        dates = [prefix.rpartition("/")[2][:10] for prefix in list_runs(opened, suite, machine_class)]
        pins = ", ".join(read_pins(opened, suite, machine_class))
        table.add_row(*texts(suite, machine_class, str(len(dates)), dates[0], dates[-1], pins))
    if not table.rows:
        console.print("no runs yet")
        return
    print_table(table)


def show_history(
    store: StoreOption,
    suite: SuiteArgument,
    machine_class: ClassArgument,
    nights: Annotated[int, typer.Option(min=1, help="How many, from the newest back.")] = 14,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", help="Night by night, only these tests or models (a glob; may be repeated)."),
    ] = None,
    channel: Annotated[
        str | None, typer.Option(help=f"The channel that is compared and shown (default: {USUAL_CHANNEL}).")
    ] = None,
    statistic: Annotated[Statistic, typer.Option(help="p20, median or mean of a night's samples.")] = "p20",
) -> None:
    """The last nights of a suite in a class, each against the median of the nights before it. Verdicts are not kept."""
    opened = open_store(store, must_exist=True)
    found = _newest_nights(opened, suite, machine_class, nights + EARLIER)
    if channel is not None:
        require_channel(found[-nights:], channel)
    compared = channel or USUAL_CHANNEL
    if test:
        print_table(series_table(found, nights, test, compared, statistic))
    else:
        print_table(night_table(found, nights, compared, statistic))


def show_run(store: StoreOption, run: RunArgument) -> None:
    """One night: its build, environment and every test."""
    night = summarise(load_run(open_store(store, must_exist=True), run))
    for name, value in (
        ("run", night.run),
        ("started", f"{night.started:%Y-%m-%d %H:%M:%S} UTC"),
        ("build", f"{night.build.subject} {night.build.version} {night.build.commit or ''} ({night.build.id})"),
        ("environment", night.environment.fingerprint),
        ("coverage", f"{night.coverage:.0%}"),
    ):
        console.print(Text(f"{name:<12} {value}"))
    table = new_table("test", "status", "medians of its processes")
    for test, summary in night.tests.items():
        values = ", ".join(f"{name} {shown_value(channel, 'median')}" for name, channel in summary.channels.items())
        table.add_row(*texts(test, str(summary.status or "no record"), values or summary.reason))
    print_table(table)


def show_rates(store: StoreOption) -> None:
    """How often each class screens, confirms and files, and how often a build against itself is taken for slower."""
    from baselines.confirming.margins import estimated_margins  # numpy takes longer than most commands do
    from baselines.confirming.rules import Rules

    opened = open_store(store, must_exist=True)
    table = new_table(
        "suite",
        "class",
        "nights",
        "screened",
        "candidates",
        "confirmed",
        "filed",
        "itself",
        "false",
        "holds 0",
        "margins",
    )
    for suite, machine_class in list_series(opened):
        state, _ = read_state(opened, suite, machine_class)
        rates = rates_of(state.accounts)
        if not rates.nights:
            continue
        held = f"{rates.aa_covered / rates.aa_tries:.0%}" if rates.aa_tries else ""
        margins = estimated_margins(state.accounts, Rules())
        table.add_row(
            *texts(suite, machine_class, str(rates.nights), f"{rates.screened:,.0f}"),
            *texts(*(f"{rate:.1f}" for rate in (rates.candidates, rates.confirmed, rates.filed))),
            *texts(str(rates.aa_tries), str(rates.aa_confirmed), held),
            *texts(", ".join(f"{channel} {math.expm1(margin):.2%}" for channel, margin in margins.items())),
        )
    if not table.rows:
        console.print("no night was confirmed yet")
        return
    print_table(table)
    console.print("screened to filed: in 30 nights, or in all of fewer")
    console.print(
        "itself: how often tonight's build was compared with itself; false: how often that would have been confirmed"
    )


def pin_run(
    store: StoreOption,
    name: Annotated[str, typer.Argument(help="The pin, such as release.")],
    run: RunArgument,
) -> None:
    """Give a run a name; every later report shows the change against it."""
    set_pin(open_store(store, must_exist=True), name, run)
    console.print(Text(f"{name} is {run}"))


def unpin(
    store: StoreOption,
    name: Annotated[str, typer.Argument(help="The pin.")],
    suite: SuiteArgument,
    machine_class: ClassArgument,
) -> None:
    """Take a pin away. The run stays."""
    remove_pin(open_store(store, must_exist=True), suite, machine_class, name)
    console.print(Text(f"{name} is no pin of {suite} on {machine_class} any more"))


def rebuild(
    store: StoreOption,
    suite: Annotated[str | None, typer.Argument(help="Only this suite.")] = None,
    machine_class: Annotated[str | None, typer.Argument(metavar="CLASS", help="Only this class.")] = None,
) -> None:
    """Make the history again from the runs. A run that cannot be read is told and left out (exit code 2)."""
    opened = open_store(store, must_exist=True)
    chosen = [
        (one, other) for one, other in list_series(opened) if suite in (None, one) and machine_class in (None, other)
    ]
    if not chosen:
        raise BaselineError(f"{store}: no such runs; see `torchbench baseline list`")
    left_out = 0
    for one, other in chosen:
        rebuilt = rebuild_history(opened, one, other)
        left_out += len(rebuilt.left_out)
        console.print(Text(f"{one} on {other}: {rebuilt.nights} nights in {len(rebuilt.months)} months"))
        for problem in rebuilt.left_out:
            console.print(Text(f"left out: {problem}"), style="red")
    if left_out:
        raise typer.Exit(EXIT_BROKEN)


def _collecting_garbage(others: NightsOf) -> Callable[..., None]:
    def collect_garbage(
        store: StoreOption,
        keep_days: Annotated[
            int, typer.Option(min=LEAST_DAYS, max=36500, help="Runs of so many days back are kept.")
        ] = KEEP_DAYS,
        keep_nights: Annotated[
            int, typer.Option(min=1, max=36500, help="Wheels of the builds of so many nights of each class are kept.")
        ] = KEEP_NIGHTS,
        remove: Annotated[
            bool, typer.Option("--remove", help="Remove them; without it they are only counted.")
        ] = False,
    ) -> None:
        """Remove the records of old runs, and the wheels of builds, that neither a pin nor a late night needs, and that
        nothing looks back to: no segment, no open alert, nothing that waits to be confirmed. The nights of the runs
        stay in the history, and so does every alert.

        A run that cannot be read stays, and is told (exit code 2).
        """
        opened = open_store(store, must_exist=True)
        before = datetime.now(UTC) - timedelta(days=keep_days)
        table, left = new_table("suite", "class", "runs removed" if remove else "runs to remove", "first", "last"), []
        for suite, machine_class in list_series(opened):
            runs = outdated_runs(opened, suite, machine_class, before, others)
            if remove:
                done = remove_runs(opened, runs)
                runs = list(done.runs)
                left += done.left
            if runs:
                dates = [run.rpartition("/")[2][:10] for run in runs]
                table.add_row(*texts(suite, machine_class, str(len(runs)), dates[0], dates[-1]))
        if table.rows:
            print_table(table)
        else:
            console.print(f"no run that may go began before {before:%Y-%m-%d}")
        wheels = remove_wheels(opened, needed_builds(opened, kept_builds(opened), keep_nights, others), remove=remove)
        if wheels.wheels:
            what = f"{counted(len(wheels.wheels), 'wheel')} of {counted(len(wheels.builds), 'build')}"
            console.print(f"{what} {'removed' if remove else 'to remove'}: {quantity(wheels.bytes, 'B')}")
        if (table.rows or wheels.wheels) and not remove:
            console.print("nothing was removed; add --remove to do so")
        for problem in left:
            console.print(Text(f"stays: {problem}"), style="red")
        if left:
            raise typer.Exit(EXIT_BROKEN)

    return collect_garbage


def _newest_nights(store: Store, suite: str, machine_class: str, count: int) -> list[NightSummary]:
    runs = list_runs(store, suite, machine_class)
    if not runs:
        raise BaselineError(f"{store.location}: no runs of {suite} on {machine_class}; see `torchbench baseline list`")
    last_day = datetime.fromisoformat(runs[-1].rpartition("/")[2][:10]).replace(tzinfo=UTC)
    return read_nights(store, suite, machine_class, count, before=last_day + timedelta(days=1))
