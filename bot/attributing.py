"""The attributing step of a night: the builds of what it filed as slower are profiled by turns, and the issue tells
which operators and kernels differ. Within a budget of tests; an alert is profiled once each time that it is opened."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from baselines.confirming.state import Interval
from baselines.history import read_nights
from baselines.report import Report
from baselines.runs import series_prefix
from baselines.screening import WINDOW
from baselines.series import NightSummary
from baselines.store import Store
from bot.config import NightlyConfig
from bot.confirming.bench import TerminalRounds, bench_of_night
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.alert_store import change_alerts
from bot.inside import AttributeSettings, Inside
from torchbenchmark.builds.cache import kept
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import inline_code, one_line
from torchbenchmark.paired.pairs_file import SideName
from torchbenchmark.profiles.attribution import Attribution
from torchbenchmark.profiles.measuring import profile_interpreters
from torchbenchmark.profiles.tables import first_account, how_judged, in_brief, markdown_of
from torchbenchmark.quantity import counted
from torchbenchmark.terminal import console

Show = Callable[[Alert], str]  # the evidence of an alert


@dataclass(frozen=True)
class Wanted:
    """What is to be profiled for an alert."""

    alert: Alert
    tests: tuple[str, ...]
    base: datetime  # the nights of both builds
    head: datetime


@dataclass(frozen=True)
class Profiled:
    """What was, with the ids of the builds."""

    base: str
    head: str
    attribution: Attribution


Profile = Callable[[Wanted], Profiled]


def attribute_here(
    config: NightlyConfig,
    store: Store,
    tonight: NightSummary,
    report: Report,
    alerts: Sequence[Alert],
    show: Show,
) -> tuple[Alert, ...]:
    """The alerts after the step, profiled on this machine. A start after a kill goes on with what is there."""

    def profile(wanted: Wanted) -> Profiled:
        return profile_on_machine(config, store, tonight, wanted)

    return attribute_alerts(config.attribute, store, tonight, report, alerts, show, profile)


def attribute_alerts(
    settings: AttributeSettings,
    store: Store,
    tonight: NightSummary,
    report: Report,
    alerts: Sequence[Alert],
    show: Show,
    profile: Profile,
) -> tuple[Alert, ...]:
    """Profile what is filed tonight and has not been, and keep that with the alerts. What cannot be profiled is told
    there in a sentence; nothing of it stops the night."""
    found: dict[str, Inside] = {}
    left = settings.tests
    for wanted in wanted_of(report, alerts) if settings.tests else ():
        chosen = dataclasses.replace(wanted, tests=wanted.tests[:left])
        left -= len(chosen.tests)
        found[wanted.alert.key] = _inside(store, tonight, chosen, profile, settings.tests)
    if not found:
        return tuple(alerts)

    def change(before: tuple[Alert, ...]) -> tuple[Alert, ...]:
        return tuple(_with_inside(alert, found.get(alert.key), tonight, show) for alert in before)

    return change_alerts(store, tonight.suite, tonight.machine_class, change)


def wanted_of(report: Report, alerts: Sequence[Alert]) -> list[Wanted]:
    """By alert that has something filed tonight, the largest change first: its tests, the largest changes first too, as
    far as their pairs were of the same two builds."""
    filed = report.confirmation.filed if report.confirmation is not None else ()
    shown = [interval for one in filed if one.kind == "regression" for interval in one.intervals]
    found = []
    for alert in alerts:
        mine = [one for one in shown if one.test in alert.tests]
        if alert.kind != "regression" or not alert.is_open or alert.inside is not None or not mine:
            continue
        mine.sort(key=_largest_first)
        tests = [one.test for one in mine if (one.base, one.head) == (mine[0].base, mine[0].head)]
        found.append((mine[0], Wanted(alert, tuple(dict.fromkeys(tests)), mine[0].base, mine[0].head)))
    return [wanted for _, wanted in sorted(found, key=lambda one: _largest_first(one[0]))]


def _largest_first(one: Interval) -> tuple[float, str]:
    return -one.effect, one.test


def _inside(store: Store, tonight: NightSummary, wanted: Wanted, profile: Profile, budget: int) -> Inside:
    episode = len(wanted.alert.earlier)
    if not wanted.tests:
        return Inside(
            episode=episode, reason=f"the budget of the night, {counted(budget, 'test')}, was spent on others"
        )
    console.print(Text(f"profiling both builds by turns: {', '.join(wanted.tests)}"))
    try:
        profiled = profile(wanted)
        _keep(store, tonight, wanted.alert, profiled.attribution)
    except Exception as problem:  # also one that nobody thought of: it would keep this issue, and every later one, back
        reason = one_line(problem if isinstance(problem, (SentinelError, OSError)) else repr(problem))
        console.print(Text(f"not profiled: {reason}"), style="yellow")
        return Inside(episode=episode, reason=reason)
    tests = profiled.attribution.tests
    told = tuple(in_brief(test) for test in tests)
    for said in told:
        console.print(Text(said))
    lines = [line for test in tests for line in (f"{inline_code(test.test)}:", "", *markdown_of(first_account(test)))]
    pairs = max((test.pairs for test in tests), default=0)
    return Inside(
        episode=episode,
        base=profiled.base,
        head=profiled.head,
        told=told,
        tables="\n".join([*lines, f"- {how_judged(profiled.attribution, pairs)}"]),
    )


def _keep(store: Store, tonight: NightSummary, alert: Alert, attribution: Attribution) -> None:
    """All of it, for whoever asks later; the alert has what people read."""
    series = series_prefix("attributions", tonight.suite, tonight.machine_class)
    content = attribution.model_dump_json(indent=1).encode() + b"\n"
    store.write_if(f"{series}/{alert.key}-{len(alert.earlier)}.json", content, None)


def _with_inside(alert: Alert, inside: Inside | None, tonight: NightSummary, show: Show) -> Alert:
    if inside is None or alert.inside is not None:
        return alert
    alert = alert.model_copy(update={"attribution": inside, "revision": alert.revision + 1})
    newest = alert.newest_finding
    if newest is None or newest.run != tonight.run:
        return alert
    return alert.model_copy(update={"evidence": show(alert)})


def profile_on_machine(config: NightlyConfig, store: Store, tonight: NightSummary, wanted: Wanted) -> Profiled:
    """Profile on the builds that the night's pairs were of."""
    history = read_nights(store, tonight.suite, tonight.machine_class, WINDOW, before=tonight.started)
    bench = bench_of_night(config, store, tonight, history)
    builds = {night.started: night.build.id for night in (*history, tonight)}
    nights: Mapping[SideName, datetime] = {"base": wanted.base, "head": wanted.head}
    ids: dict[SideName, str] = {}
    with ExitStack() as leases:
        pythons = {}
        for side, night in nights.items():
            ids[side] = builds.get(night, "")
            python = bench.builds.interpreter(ids[side]) if ids[side] else None
            if python is None:
                why = bench.builds.why_not(ids[side]) if ids[side] else "it is not among the nights that are looked at"
                raise BotError(f"the build of the night of {night:%Y-%m-%d %H:%M} UTC is not to be had: {why}")
            leases.enter_context(kept(python))
            pythons[side] = python
        run = dataclasses.replace(
            bench.request, selection=wanted.tests, rounds=config.attribute.pairs, processes=1, plan=None
        )
        profiled = profile_interpreters(
            run,
            ids,
            pythons,
            bench.folder / f"inside-{wanted.alert.key}.jsonl",
            TerminalRounds(),
            machine_class=tonight.machine_class,
        )
    return Profiled(ids["base"], ids["head"], profiled.attribution)
