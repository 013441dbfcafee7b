"""Tables of nights, as `torchbench baseline history` prints them.

The store keeps no verdicts: they hang on the policy and on the alerts of their time. What can be said of an old night
is how it stands against the nights before it.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from baselines.errors import BaselineError
from baselines.series import ChannelSummary, NightSummary, Statistic, TestSummary, location, segment
from torchbenchmark.channels import CHANNELS
from torchbenchmark.experiment import Experiment
from torchbenchmark.registry import select

EARLIER = 7  # comparable nights before a night that it is held against, as many as the policies take
AGAINST = "against earlier nights"  # positive is slower, as in a report


def night_table(nights: Sequence[NightSummary], shown: int, channel: str, statistic: Statistic) -> Table:
    """The last `shown` nights; those before them are only compared with."""
    table = new_table(
        "started (UTC)", "version", "commit", "environment", "ok", "coverage", f"{channel} {statistic} {AGAINST}", "key"
    )
    for index in _last(nights, shown):
        night = nights[index]
        table.add_row(
            *texts(
                f"{night.started:%Y-%m-%d %H:%M}",
                night.build.version,
                (night.build.commit or "")[:12],
                night.environment.fingerprint,
                f"{len(night.ok_tests)} of {len(night.tests)}",
                f"{night.coverage:.0%}",
                _summary_of_changes(nights[:index], night, channel, statistic),
                night.key,
            )
        )
    return table


def series_table(
    nights: Sequence[NightSummary], shown: int, patterns: Sequence[str], channel: str, statistic: Statistic
) -> Table:
    """The tests or models that match any of the globs, in each of the last `shown` nights."""
    table = new_table("started (UTC)", "version", "test", "workload", "status", f"{channel} {statistic}", AGAINST)
    indices = _last(nights, shown)
    every = sorted({test for index in indices for test in nights[index].tests})
    chosen = {experiment.id for experiment in select(map(Experiment.parse, every), patterns)}
    for index in indices:
        night = nights[index]
        for test, summary in night.tests.items():
            if test in chosen:
                measured = _measured(summary, channel)
                table.add_row(
                    *texts(
                        f"{night.started:%Y-%m-%d %H:%M}",
                        night.build.version,
                        test,
                        summary.workload.hash,
                        str(summary.status or "no record"),
                        shown_value(measured, statistic) if measured else "",
                        _percent(_change(nights[:index], night, test, channel, statistic)),
                    )
                )
    return table


def require_channel(nights: Iterable[NightSummary], channel: str) -> None:
    """Raises BaselineError if no test of the nights has the channel; where none has any, a known one will do."""
    measured = {name for night in nights for test in night.tests.values() for name in test.channels}
    known = sorted(measured or CHANNELS)
    if channel not in known:
        raise BaselineError(f"--channel {channel}: no test of these nights has it; they have: {', '.join(known)}")


def shown_value(channel: ChannelSummary, statistic: Statistic) -> str:
    return f"{channel.location(statistic):.6g} {channel.unit}".removesuffix(" 1")  # a count has no unit


def new_table(*headings: str) -> Table:
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def texts(*cells: str) -> list[Text]:
    """A test id's brackets would be taken for markup."""
    return [Text(cell) for cell in cells]


def _last(nights: Sequence[NightSummary], shown: int) -> range:
    return range(max(0, len(nights) - shown), len(nights))


def _summary_of_changes(
    earlier: Sequence[NightSummary], night: NightSummary, channel: str, statistic: Statistic
) -> str:
    """The middle of all tests, and the test that is slowest against its past."""
    changes = dict(_changes(earlier, night, channel, statistic))
    if not changes:
        return ""
    slowest = max(changes, key=lambda test: changes[test])
    return f"median {_percent(statistics.median(changes.values()))}, most {_percent(changes[slowest])} {slowest}"


def _changes(
    earlier: Sequence[NightSummary], night: NightSummary, channel: str, statistic: Statistic
) -> Iterator[tuple[str, float]]:
    for test in night.tests:
        if (change := _change(earlier, night, test, channel, statistic)) is not None:
            yield test, change


def _change(
    earlier: Sequence[NightSummary], night: NightSummary, test: str, channel: str, statistic: Statistic
) -> float | None:
    """Against the median of the comparable nights before it; None without any, or without a value of its own."""
    now = _measured(night.tests[test], channel)
    if now is None:
        return None
    comparable = [
        measured.location(statistic)
        for before in segment(night, earlier, test, channel).nights
        if test in before.tests and (measured := _measured(before.tests[test], channel)) is not None
    ]
    middle, tonight = location(comparable[-EARLIER:]), now.location(statistic)
    if not (math.isfinite(middle) and math.isfinite(tonight) and middle > 0 and tonight > 0):
        return None
    higher_is_better = channel in CHANNELS and CHANNELS[channel].better == "higher"
    return (middle / tonight if higher_is_better else tonight / middle) - 1


def _measured(summary: TestSummary, channel: str) -> ChannelSummary | None:
    return summary.channels.get(channel) if summary.ok else None


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"
