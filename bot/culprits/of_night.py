"""The bisections of a night: the open alerts that have no culprit yet, one after the other, as long as there is time.
What is not finished goes on in the next night; nothing here breaks a night."""

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.text import Text

from baselines.series import NightSummary
from baselines.store import Store
from bot.bisect_settings import BisectSettings
from bot.bisection.account import merge_sentence, sentence
from bot.bisection.document import PREFIX, Made, Visit
from bot.bisection.git_range import GitRange
from bot.bisection.instruments import Instrument, Keep
from bot.bisection.live import TerminalView
from bot.bisection.reverting import Reverts
from bot.bisection.whole import Whole, alone_in
from bot.config import NightlyConfig
from bot.culprits.commission import Commission, commission, commissioned
from bot.culprits.signal_range import range_of
from bot.culprits.tests_of_suite import tests_instrument, with_command
from bot.culprits.verdict_of_alert import bisected, write_verdict
from bot.github.alert import Alert
from torchbenchmark.errors import SentinelError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.terminal import console

FOLDER = "bisect"  # in `work`
InstrumentOf = Callable[[NightlyConfig, BisectSettings, Commission, GitRange, Path, ExitStack], Instrument]


class BisectedTonight(BaseModel):
    """What became of an alert tonight."""

    model_config = ConfigDict(frozen=True)

    alert: str
    verdict: str = ""  # empty: it has none yet
    told: str  # a sentence; foreign text in it


class OutOfTime(Exception):
    """The night has no more time for bisecting."""


@dataclass(frozen=True)
class Timed:
    """An instrument that begins nothing after a time: a build or a visit that was begun is ended."""

    instrument: Instrument
    until: float  # of time.monotonic()

    def build(self, commit: str) -> Made:
        self._require_time()
        return self.instrument.build(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        self._require_time()
        return self.instrument.measure(good, visit, keep)

    def _require_time(self) -> None:
        if time.monotonic() >= self.until:
            raise OutOfTime


def instrument_here(
    config: NightlyConfig,
    chosen: BisectSettings,
    asked: Commission,
    commits: GitRange,
    folder: Path,
    leases: ExitStack,
) -> Instrument:
    settings = with_command(config.builds, chosen.build, chosen.build_timeout_s)
    models = (config.models, config.timeout_s)
    return tests_instrument(asked.asked, commits, folder, settings, *models, leases, asked.machine_class)


def bisect_tonight(
    config: NightlyConfig,
    store: Store,
    tonight: NightSummary,
    alerts: Iterable[Alert],
    instrument_of: InstrumentOf = instrument_here,
) -> list[BisectedTonight]:
    """Bisect what is open and has no verdict, within the budget of the configuration. The verdicts are written to the
    alerts."""
    if (chosen := config.bisect) is None:
        return []
    until = time.monotonic() + 60 * chosen.most_minutes
    found = []
    for alert in open_without_verdict(store, alerts):
        try:
            found.append(_bisect(config, chosen, store, alert, until, instrument_of))
        except OutOfTime:
            minutes = f"{chosen.most_minutes:g} minutes of bisecting are over"
            found.append(BisectedTonight(alert=alert.key, told=f"{minutes}; it goes on in the next night"))
        except Exception as problem:  # whatever it is, the night itself is measured, judged and filed
            kind = "" if isinstance(problem, SentinelError) else f"{type(problem).__name__}: "
            found.append(BisectedTonight(alert=alert.key, told=one_line(f"not bisected: {kind}{problem}")))
        console.print(Text(f"alert {alert.key}: {found[-1].told}"))
    return found


def open_without_verdict(store: Store, alerts: Iterable[Alert]) -> list[Alert]:
    """Of something slower or failing: those that were begun to be bisected, then the newest."""
    wanted = [one for one in alerts if one.is_open and not one.is_announcement and one.verdict is None]
    begun = {key.rpartition("/")[2] for key in store.list(f"{PREFIX}/of-alerts/")} if wanted else set()
    return sorted(
        wanted,
        key=lambda one: (f"{one.key}-{len(one.earlier)}.json" not in begun, -one.opened.timestamp(), one.key),
    )


def _bisect(
    config: NightlyConfig,
    chosen: BisectSettings,
    store: Store,
    alert: Alert,
    until: float,
    instrument_of: InstrumentOf,
) -> BisectedTonight:
    def make() -> Commission:
        limits = (chosen.build_timeout_s, chosen.most_builds, chosen.most_pairs)
        return commissioned(range_of(store, alert), config, chosen.repo, chosen.build, *limits)

    if time.monotonic() >= until:
        raise OutOfTime
    asked = commission(store, alert, make)
    commits = GitRange(chosen.repo, asked.asked.good, asked.asked.bad)
    folder = config.work / FOLDER / asked.asked.key
    console.print(Text(f"bisecting alert {alert.key}: {len(commits.line) - 1} commits"))
    with ExitStack() as leases:
        leases.enter_context(alone_in(folder))
        revert = Reverts(commits.folder, folder / "reverts", leases)
        instrument = Timed(instrument_of(config, chosen, asked, commits, folder, leases), until)
        with TerminalView(commits.subjects) as view:
            found = Whole(asked.asked, commits, store, instrument, view, revert, environment=asked.environment).run()
    shutil.rmtree(folder, ignore_errors=True)
    told = ". ".join(filter(None, (sentence(found), merge_sentence(found))))
    if write_verdict(store, alert, bisected(found, asked.episode, paths=commits.paths)) is None:
        return BisectedTonight(alert=alert.key, told=f"{told}; the alert is gone, or open for another time by now")
    return BisectedTonight(alert=alert.key, verdict=found.verdict.kind, told=told)
