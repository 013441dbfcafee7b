"""A round of a bisection over several machines: `ask` reads the store and says what to build, builders build it
(bisect_builds.py), `measure` has pairs measured where the GPU is, and `decide` writes to the store what follows.
docs/actions.md describes the jobs.
"""

import dataclasses
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from baselines.store import Store, open_store
from bot.alert_issue import issue_of
from bot.bisect_settings import DEFAULT_CHANNEL
from bot.bisection.account import Found
from bot.bisection.document import Asked, Desk, Document
from bot.bisection.driving import Bisecting
from bot.bisection.git_range import GitRange
from bot.bisection.instruments import Instrument
from bot.bisection.live import TerminalView
from bot.bisection.search import Done, next_step
from bot.bisection.whole import alone_in
from bot.config import NightlyConfig
from bot.culprits.commission import Commission, commission, commissioned, known_commission
from bot.culprits.of_night import OutOfTime, Timed
from bot.culprits.signal_range import find_alert, range_of
from bot.culprits.tests_of_suite import digest as digest_of_builds
from bot.culprits.tests_of_suite import pairs_instrument, with_command
from bot.culprits.verdict_of_alert import bisected, write_verdict
from bot.elsewhere.bisect_answer import answer_of, read_answer, with_answer, write_answer
from bot.elsewhere.bisect_builds import Archives, NotHere, WheelsInstrument, made_in
from bot.elsewhere.bisect_question import (
    BisectQuestion,
    alerts_to_bisect,
    question_of,
    read_bisect_question,
)
from bot.errors import BotError
from bot.github.alert import Alert
from bot.github.issue import Tracker
from torchbenchmark.builds.build_errors import BuildNotFound
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.git import GitAddress, Mirror
from torchbenchmark.builds.provide import ask as request_of_cache
from torchbenchmark.errors import SentinelError
from torchbenchmark.terminal import console

FOLDER = "bisect"
InstrumentOf = Callable[[NightlyConfig, BisectQuestion, Path, ExitStack, Mapping[str, Path]], Instrument]


@dataclass(frozen=True)
class Named:
    """The ends that a person asks for: of an alert, or with the tests that changed of none."""

    good: str
    bad: str
    tests: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        return self.good, self.bad


@dataclass(frozen=True)
class Repository:
    """Of the subject: a path, or an address that is mirrored into the cache of builds."""

    where: str

    def __post_init__(self) -> None:
        """Raises BotError for what is no repository."""
        self._address("main")

    def _address(self, revision: str) -> GitAddress:
        try:
            return GitAddress.parse(f"{self.where}@{revision}")
        except ValueError as error:
            raise BotError(f"{self.where[:100]!a} at {revision[:100]!a}: {error}") from error

    def fetched(self, *revisions: str) -> Path:
        """A repository of this machine that has the revisions, as far as that one has them."""
        address = self._address("main")
        if address.is_local and not self.where.startswith("file:"):
            return Path(self.where)
        mirror = Mirror(address.repository, address.is_local, request_of_cache(BuildCache.open(), None))
        for revision in revisions:
            self._address(revision)
            try:
                mirror.commit(revision)
            except BuildNotFound:
                continue  # whoever looks for it says so
        return mirror.folder


def ask(
    config: NightlyConfig,
    store: Store,
    repository: Repository,
    signal: str,
    named: Named | None,
    build: str | None,
    batch: int,
    there: Sequence[str] = (),
) -> BisectQuestion | None:
    """The question of the next round, of an alert, of ends that are named or, if neither is, of the first alert without
    a verdict; None if there is nothing to ask. Between ends that are named an alert with a verdict is bisected anew."""
    if named is not None and not signal:
        folder = repository.fetched(named.good, named.bad)
        commits = GitRange(folder, named.good, named.bad)
        return question_of(store, _named(config, named, commits, build), repository.where, commits, batch, there)
    alerts = [find_alert(store, signal)] if signal else alerts_to_bisect(config, store)
    for alert in alerts:
        if alert.verdict is not None and named is None:
            console.print(Text(f"alert {alert.key} has its verdict: {alert.verdict.verdict}"))
            continue
        try:
            return _of_alert(config, store, repository, alert, named, build, batch, there)
        except SentinelError as problem:
            if signal:
                raise
            console.print(Text(f"alert {alert.key} cannot be bisected: {problem}"), style="yellow")
    return None


def _of_alert(
    config: NightlyConfig,
    store: Store,
    repository: Repository,
    alert: Alert,
    named: Named | None,
    build: str | None,
    batch: int,
    there: Sequence[str],
) -> BisectQuestion:
    asked = None if named is not None else known_commission(store, alert)
    if asked is None:
        found = range_of(store, alert)
        commits = [night.build.commit for night in (found.good, found.bad)]
        ends = None if named is None else named.ends
        folder = repository.fetched(*(ends or (commit or f"v{found.bad.build.version}" for commit in commits)))
        asked = commissioned(found, config, folder, build, *_limits(config), ends)
    if asked.asked.exact:
        raise BotError(f"alert {alert.key}: is of failures, which the jobs of a workflow do not bisect")
    folder = repository.fetched(asked.asked.good, asked.asked.bad)
    return question_of(
        store, asked, repository.where, GitRange(folder, asked.asked.good, asked.asked.bad), batch, there
    )


def _limits(config: NightlyConfig) -> tuple[float, int | None, int | None]:
    chosen = config.bisect
    if chosen is None:
        return config.builds.git.timeout_s, None, None
    return chosen.build_timeout_s, chosen.most_builds, chosen.most_pairs


def _named(config: NightlyConfig, named: Named, commits: GitRange, build: str | None) -> Commission:
    timeout_s, most_builds, most_pairs = _limits(config)
    settings = with_command(config.builds, build, timeout_s)
    asked = Asked(
        good=commits.good,
        bad=commits.bad,
        build=build,
        tests=named.tests,
        suite=config.suite,
        device=config.device,
        channel=DEFAULT_CHANNEL[config.device],
        subject=config.subject,
        threads=config.threads,
        budget_s=config.budget_s,
        builds=digest_of_builds(settings, config.models),
        most_builds=most_builds,
        most_pairs=most_pairs,
    )
    return Commission.model_validate({"alert": "", "episode": 0, "class": "", "asked": asked})


def measure(
    config: NightlyConfig,
    path: Path,
    made: Path,
    into: Path,
    out: Path,
    minutes: float,
    instrument_of: InstrumentOf | None = None,
) -> str:
    """Go on with the search of a question as far as the builds that have come allow, and write what it came to. A start
    after a kill goes on with what it has. Returns why it has ended."""
    question, digest = read_bisect_question(path), hashlib.sha256(path.read_bytes()).hexdigest()
    asked = question.commission.asked
    until = time.monotonic() + 60 * minutes
    folder = into / FOLDER / digest[:16]
    store = open_store(str(folder / "store"))
    with ExitStack() as leases:
        leases.enter_context(alone_in(folder))
        come = made_in(made, question.commits)
        archives = {commit: archive for commit, (one, archive) in come.items() if one.ok}
        chosen = (instrument_of or _wheels)(config, question, folder, leases, archives)
        desk = Desk(store, asked.key)
        if desk.read() is None and question.document is not None:
            desk.write(question.document)
        with TerminalView(question.subjects) as view:
            environment = question.commission.environment
            timed, again = Timed(chosen, until), Desk(store, asked.key)
            search = Bisecting(asked, question.commits, again, timed, view, environment=environment)
            for commit in question.builds:
                if commit in come and search.document.search.index[commit] not in search.document.search.built:
                    search.take(come[commit][0])
            try:
                search.run()
                why = "the search has ended"
            except NotHere as wanted:
                why = f"{str(wanted)[:12]} is wanted next, which is not built here"
            except OutOfTime:
                why = f"{minutes:g} minutes are over"
    write_answer(answer_of(digest, question.begun, search.document), out)
    return why


def _wheels(
    config: NightlyConfig, question: BisectQuestion, folder: Path, leases: ExitStack, archives: Mapping[str, Path]
) -> WheelsInstrument:
    commission = question.commission
    there = Archives(commission.asked.good, archives)
    ways = (config.builds, config.models, config.timeout_s, leases, commission.machine_class or None)
    plain = pairs_instrument(commission.asked, there, folder, *ways)
    return WheelsInstrument(**{one.name: getattr(plain, one.name) for one in dataclasses.fields(plain)})


@dataclass(frozen=True)
class Decided:
    """What a round has come to."""

    found: Found | None  # once the search has ended
    alert: Alert | None  # with its verdict
    problem: str = ""  # why nothing was added


def answer_in(folder: Path) -> Path:
    """The answer below a folder of artifacts; a file that is not there is told by whoever reads it."""
    found = sorted(folder.glob("*/answer.json"))
    return found[0] if len(found) == 1 else folder / "answer.json"


def decide(config: NightlyConfig, store: Store, path: Path, digest: str, answer: Path, tracker: Tracker) -> Decided:
    """Write what a round has come to, also if no answer has come. The search is that of the store, which goes on by the
    numbers of the answer."""
    question = read_bisect_question(path, digest)
    desk = Desk(store, question.commission.asked.key)
    if desk.read() != question.document:
        raise BotError(f"{desk.where}: has gone on meanwhile; what this round has measured is left out")
    problem = ""
    document: Document | None = question.document
    if not question.is_over:
        try:
            given = read_answer(answer, digest)
            if not (given.builds or given.visits or given.left_out):
                raise BotError("nothing was built or measured: see the building jobs")
            document = with_answer(question, given)
        except BotError as error:
            problem = str(error)
    alert = _commission(store, question, document)
    if document is not None and document != question.document:
        document = desk.write(document)
    step = None if document is None else next_step(document.search)
    if document is None or not isinstance(step, Done):
        return Decided(None, None, problem)
    found = Found(document, step.verdict, question.subjects)
    if alert is not None:
        alert = write_verdict(store, alert, bisected(found, question.commission.episode))
        if alert is not None:
            tracker.put(issue_of(alert, config))
    return Decided(found, alert, problem)


def _commission(store: Store, question: BisectQuestion, document: Document | None) -> Alert | None:
    """The alert of a question; what was asked of it is stored, once there is something of it, unless a person has named
    the ends."""
    asked = question.commission
    if not asked.alert:
        return None
    alert = find_alert(store, asked.alert)
    if document is not None and len(alert.earlier) == asked.episode and not asked.named_ends:
        stored = commission(store, alert, lambda: asked)
        if stored != asked:
            raise BotError(f"alert {alert.key}: something else was asked of it meanwhile")
    return alert
