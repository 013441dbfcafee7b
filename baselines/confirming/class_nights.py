"""The stored nights of a class as the rules of confirming look at them."""

import math
from collections.abc import Sequence

import numpy as np

from baselines.confirming.seen import Seen, SeriesKey
from baselines.policy import Policy
from baselines.rolling import ValidNights
from baselines.screening import WINDOW
from baselines.screening.noise import FloatArray
from baselines.screening.runners import on_one_runner
from baselines.series import ChannelSummary, NightSummary, Statistic, TestSummary, is_measured_alike
from baselines.series_values import screened_channels


def seen_tonight(
    tonight: NightSummary, history: Sequence[NightSummary], policy: Policy, canary: str = ""
) -> Seen | None:
    """What tonight is judged from; None if no test of it has a time that the policy judges.

    `history`: the class's nights before it, oldest first. A night that few tests ended in, or that was measured
    otherwise (rounds, budget, threads), is none of them. Tests whose workload was another then have no value there.
    """
    valid = ValidNights(policy.nights, policy.min_coverage)
    earlier = [night for night in history if valid.covers(night) and is_measured_alike(night, tonight)]
    nights = [*earlier[1 - WINDOW :], tonight]
    series = [
        (SeriesKey(test, judged.channel), judged.statistic)
        for test in tonight.ok_tests
        for judged in policy.for_device(tonight.device)
        if judged.channel in screened_channels(tonight.tests[test])
    ]
    if not series:
        return None
    runners = [night.runner for night in nights]
    logs, variances = np.full((len(series), len(nights)), np.nan), np.full((len(series), len(nights)), np.nan)
    for row, (key, statistic) in enumerate(series):
        for column, night in enumerate(nights):
            logs[row, column], variances[row, column] = _value(night, tonight, key, statistic)
        there = np.flatnonzero(np.isfinite(logs[row]))
        logs[row, there] = on_one_runner(logs[row, there], [runners[column] for column in there])
    return Seen(
        series=tuple(key for key, _ in series),
        nights=tuple(night.started for night in nights),
        builds=tuple(night.build.id for night in nights),
        environments=tuple(night.environment.fingerprint for night in nights),
        runners=tuple(runners),
        logs=_since_the_workload(logs, [key.test for key, _ in series], nights),
        variances=variances,
        processes=max((_processes(tonight.tests[key.test].channels[key.channel]) for key, _ in series), default=1),
        canary=canary,
    )


def _value(night: NightSummary, tonight: NightSummary, key: SeriesKey, statistic: Statistic) -> tuple[float, float]:
    """(ln of the value, variance of ln over the processes) of a night; nan where there is none."""
    summary = night.tests.get(key.test)
    if summary is None or not summary.is_sound or key.channel not in summary.channels:
        return math.nan, math.nan
    channel, now = summary.channels[key.channel], tonight.tests[key.test].channels[key.channel]
    value = channel.location(statistic)
    if channel.unit != now.unit or not value > 0:
        return math.nan, math.nan
    each = getattr(channel, statistic)
    usable = len(each) > 1 and min(each) > 0
    return math.log(value), float(np.var(np.log(each), ddof=1)) if usable else math.nan


def _since_the_workload(logs: FloatArray, tests: Sequence[str], nights: Sequence[NightSummary]) -> FloatArray:
    """Without the nights before the newest one in which a test was another workload."""
    for row, test in enumerate(tests):
        now = nights[-1].tests[test].workload.hash
        others = [column for column, night in enumerate(nights) if _workload(night.tests.get(test)) not in (now, None)]
        if others:
            logs[row, : others[-1] + 1] = np.nan
    return logs


def _workload(test: TestSummary | None) -> str | None:
    return None if test is None else test.workload.hash


def _processes(channel: ChannelSummary) -> int:
    return len(channel.median)
