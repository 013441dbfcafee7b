"""The nightly of one machine: measure, store, and conclude. Each step can be repeated: a killed night goes on where it
was, stores nothing twice and files no second issue."""

import fcntl
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import typer

from baselines.policy import Policy, load_policy
from baselines.runs import store_run
from baselines.store import Store, open_store
from bot.canary import store_canaries
from bot.conclusion import Bisect, conclude
from bot.config import ConfigOption, NightlyConfig, load_config
from bot.errors import BotError
from bot.filing import open_tracker
from bot.keeping import keep_build
from bot.readiness import require_ready
from bot.run_request import run_request
from torchbenchmark.builds.installation import provide_tonight
from torchbenchmark.canaries.measuring import TURNS, canary_file
from torchbenchmark.cli import (
    TerminalReporter,
    canaries_of,
    end_children_on_termination,
    print_run,
    tell_of_canaries,
)
from torchbenchmark.errors import SentinelError
from torchbenchmark.planning import OtherGround, RunRequest
from torchbenchmark.records import Run, RunHeader, read_run
from torchbenchmark.reporter import Reporter
from torchbenchmark.run_file import RunFile
from torchbenchmark.runner import nothing_before, resume_run, start_run
from torchbenchmark.terminal import EXIT_BROKEN, console

NIGHT = "tonight"  # how the files of the run in progress are named
SAME_NIGHT = timedelta(hours=12)  # an interrupted run that is older is not tonight's


def register(app: typer.Typer) -> None:
    app.command("nightly")(nightly_command)


def nightly_command(config: ConfigOption = Path("nightly.yaml")) -> None:
    """Measure tonight's build, compare it with the nights before, confirm what is suspected, and file that.

    Exit code 0: clean, 1: regression, 2: broken.
    """
    end_children_on_termination()
    raise typer.Exit(run_nightly(load_config(config)))


def run_nightly(config: NightlyConfig) -> int:
    """One night from start to end. Returns the exit code.

    A night that was killed is finished first. If it is so old that tonight is another night, tonight follows.
    """
    policy = load_policy(config.policy)
    store = open_store(config.store)
    with alone(config.work):
        return _run_alone(config, policy, store)


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """One nightly at a time in a work folder; the system drops the lock of one that dies."""
    work.mkdir(parents=True, exist_ok=True)
    with open(work / ".lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BotError(f"{work}: another nightly is running there; wait for it, or name another `work`") from error
        yield


def _run_alone(config: NightlyConfig, policy: Policy, store: Store) -> int:
    file = config.work / f"{NIGHT}.jsonl"
    began = time.monotonic()
    left = _interrupted(file)
    if left is not None and not left.missing:
        console.print(f"finishing the night of {left.header.started:%Y-%m-%d %H:%M} UTC: measured, but not filed")
        _finish_canaries(config, left, file)
        code = _finish(config, store, policy, left, file, began)
        if not _is_of_another_night(left):
            return code
        began = time.monotonic()
    require_ready(config)  # only now: a night that is measured already is judged without
    run = measure(config, file)
    print_run(run)
    code = _store_and_conclude(config, store, policy, run, file, began)
    _remove(file)  # last: until here a killed night finds its run again and repeats what follows it
    return code


def _finish(config: NightlyConfig, store: Store, policy: Policy, left: Run, file: Path, began: float) -> int:
    """Conclude the night that a killed start has measured. One of long ago that cannot be does not stop tonight's."""
    try:
        late = _is_of_another_night(left)
        code = _store_and_conclude(config, store, policy, left, file, began, bisects=not late)
    except SentinelError as problem:
        if not _is_of_another_night(left):
            raise
        _set_aside(file, f"it cannot be concluded: {problem}")
        return EXIT_BROKEN
    _remove(file)
    return code


def _remove(file: Path) -> None:
    """The night first: what is left of canaries without it is of a night that is over. A kill between the last record
    and the end of its run has left a journal and a scratch folder too."""
    for path in (file, *(canary_file(file, turn) for turn in TURNS)):
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.journal").unlink(missing_ok=True)
        shutil.rmtree(path.with_name(f"{path.name}.scratch"), ignore_errors=True)


def _finish_canaries(config: NightlyConfig, left: Run, file: Path) -> None:
    """The last canaries of a night that was killed when its tests were measured; hours later they would be another
    night's."""
    with TerminalReporter() as reporter:
        canaries = canaries_of(config.canary, file, reporter)
        if canaries is None:
            return
        if not _is_of_another_night(left):
            canaries.last(left.header)
            return
        for turn in TURNS:
            canaries.give_up(turn, left.header, "the night was killed before this, and finished in another night")


def _store_and_conclude(
    config: NightlyConfig,
    store: Store,
    policy: Policy,
    run: Run,
    file: Path,
    began: float,
    *,
    bisects: bool = True,  # a night of long ago leaves that to tonight, which waits for it
) -> int:
    where = run.header.machine_class
    if config.classes and where not in config.classes:
        raise BotError(
            f"this machine is of class {where}, and `classes` takes {', '.join(config.classes)} only; "
            "add it there, or measure on one of these"
        )
    store_run(store, run)
    keep_build(config, store, run.header.build)
    not_stored = [] if config.canary is None else _store_canaries(store, file)
    from bot.attributing import attribute_here
    from bot.confirming.bench import ASKS
    from bot.confirming.confirmation import (  # numpy and scipy take longer than most commands
        confirm_closings_here,
        confirm_here,
    )

    confirm = partial(confirm_here, config, store, policy) if config.confirm else None
    closings = partial(confirm_closings_here, config, store) if config.confirm else None
    attribute = partial(attribute_here, config, store) if config.confirm else None
    bisect = _bisect(config, store) if bisects else None
    tracker, spent = open_tracker(config), time.monotonic() - began
    code = conclude(config, store, policy, run, tracker, spent, confirm, closings, attribute, bisect)
    shutil.rmtree(config.work / ASKS, ignore_errors=True)
    for path in not_stored:  # only now: until the night is concluded, its next start tries to store them again
        aside = _aside(path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        console.print(f"canaries that could not be stored are kept as {aside}", markup=False)
    return code


def _bisect(config: NightlyConfig, store: Store) -> Bisect | None:
    if config.bisect is None:
        return None
    from bot.culprits.of_night import bisect_tonight

    return partial(bisect_tonight, config, store)


def _store_canaries(store: Store, file: Path) -> list[Path]:
    """Returns the files of those that could not be stored, which is told and stops no night."""
    failed = []
    for path in (canary_file(file, turn) for turn in TURNS):
        if not path.exists():
            continue
        try:
            stored = not store_canaries(store, [read_run(path)])
        except SentinelError as problem:
            tell_of_canaries(path.name, [str(problem)])
            stored = False
        failed += [] if stored else [path]
    return failed


def measure(config: NightlyConfig, file: Path) -> Run:
    """Tonight's run: a new one, or the rest of one that was killed tonight on this build and machine. Its canaries are
    measured when it is planned, and when it is done."""
    request = run_request(config, _interpreter(config, file))
    with TerminalReporter() as reporter:
        canaries = canaries_of(config.canary, file, reporter)
        run = _measure(request, file, reporter, nothing_before if canaries is None else canaries.first)
        if canaries is not None:
            canaries.last(run.header)
        return run


def _measure(request: RunRequest, file: Path, reporter: Reporter, before: Callable[[RunHeader], None]) -> Run:
    left = _interrupted(file)
    if left is not None and _is_of_another_night(left):
        _set_aside(file, f"begun {left.header.started:%Y-%m-%d %H:%M} UTC")
    elif left is not None:
        try:
            return resume_run(file, request.python, reporter, retry_failed=False, before=before)
        except OtherGround as problem:
            _set_aside(file, str(problem))
    return start_run(request, file, reporter, before=before)


def _interpreter(config: NightlyConfig, file: Path) -> Path | None:
    """The interpreter of tonight's build, installed if that is asked for; None for the one that runs the bot."""
    if config.build is None:
        return config.python
    left = _interrupted(file)
    resuming = left is not None and not _is_of_another_night(left)
    return provide_tonight(config.build, config.work / "build", resuming=resuming)


def _interrupted(file: Path) -> Run | None:
    """The run that a killed night left behind."""
    return read_run(file) if file.exists() and file.stat().st_size > 0 else None


def _is_of_another_night(run: Run) -> bool:
    return datetime.now(UTC) - run.header.started > SAME_NIGHT


def _set_aside(file: Path, why: str) -> None:
    """Keep an interrupted run that cannot go on, with its journal and its canaries, under another name."""
    RunFile(file).close()  # refuses if it is not interrupted at all, but another process's run
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for turn in TURNS:
        if canary_file(file, turn).exists():
            _aside(canary_file(file, turn), stamp)
    console.print(f"an interrupted run cannot go on ({why}); kept as {_aside(file, stamp)}", markup=False)


def _aside(file: Path, stamp: str) -> Path:
    aside = file.with_name(file.name.replace(NIGHT, f"abandoned-{stamp}", 1))
    file.replace(aside)
    journal = file.with_name(f"{file.name}.journal")
    if journal.exists():
        journal.replace(aside.with_name(f"{aside.name}.journal"))
    return aside
