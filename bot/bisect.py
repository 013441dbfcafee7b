"""The command `bisect`: which commit, release or date of a range changed what is measured."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.text import Text

from baselines.store import Store, open_store
from bot.bisect_options import (
    channel_named,
    measuring_options,
    prior_named,
    require_of_the_range,
    require_one_comparison,
)
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.channels import CHANNELS
from torchbenchmark.environment import normalised_name
from torchbenchmark.paired.cli import require_writable, write_text
from torchbenchmark.terminal import console

if TYPE_CHECKING:
    from bot.bisection.account import Found
    from bot.bisection.document import Asked
    from bot.bisection.git_range import GitRange
    from bot.bisection.instruments import Instrument
    from bot.bisection.ranges import Range
    from bot.culprits.signal_range import SignalRange
    from bot.github.alert import Alert

FEWEST_CLOSING, CLOSING = 6, 12  # as in bisection/closing.py, which takes a second to load
MOST_REPLICATES = 100_000
DEFAULT_WORK = Path("~/.cache/torchbench/bisect")
WORKTREES, SCRATCH, STORE = "worktrees", "scratch", "store"
REVERTS, ATTRIBUTION, EMPTY = "reverts", "attribution", "empty"

_NEEDED = (
    "bisect needs one of --repo PATH, --releases PACKAGE and --dates; --good A, --bad B; and either --measure CMD or "
    "--tests TEST; or --repo PATH and --from-signal ID; or --simulate"
)
Seconds = Annotated[float, typer.Option(min=0.001, help="Seconds.")]


def register(app: typer.Typer) -> None:
    app.command("bisect")(bisect)


def bisect(
    repo: Annotated[Path | None, typer.Option(help="The repository; it is read, and never written.")] = None,
    good: Annotated[
        str | None, typer.Option(help="A commit, branch or tag before the change; or a version, or a date.")
    ] = None,
    bad: Annotated[str | None, typer.Option(help="One after the change.")] = None,
    releases: Annotated[
        str | None, typer.Option(help="Instead of --repo: a package, whose versions --good and --bad are.")
    ] = None,
    pre: Annotated[bool, typer.Option("--pre", help="Of --releases: pre-releases too.")] = False,
    dates: Annotated[
        bool, typer.Option("--dates", help="Instead of --repo: nightly builds, whose dates --good and --bad are.")
    ] = False,
    wheels: Annotated[
        str | None,
        typer.Option(
            help="Of --dates: url:TEMPLATE or nightly:INDEX, without a date (default: `builds.dated`). Of --repo: "
            "url:TEMPLATE with {sha}, wheels that a CI has built, instead of building."
        ),
    ] = None,
    nightly_repo: Annotated[
        Path | None,
        typer.Option(help="Of --dates: a clone with the branch nightly, to tell the commits that a date brought."),
    ] = None,
    run_in: Annotated[
        Path | None,
        typer.Option("--in", help="Of --releases, --dates and --wheels: the folder that --measure runs in."),
    ] = None,
    from_signal: Annotated[
        str | None,
        typer.Option(
            help="An alert or a confirmed signal in --store (or that of --config): its ends, tests, channel and "
            "subject are taken, and the verdict is written to it."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Of --from-signal: also an alert that has a verdict, from the start.")
    ] = False,
    build: Annotated[
        str | None,
        typer.Option(
            help="Shell line that builds a commit in its checkout; with --tests it leaves a wheel in dist/ or "
            "$TORCHBENCH_BUILD_OUT (default there: pip wheel)."
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Shell line, run in the checkout, that prints one number a line: a run is their median."),
    ] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="What --measure prints is a speed, not a time.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="What --measure prints are counts, one or more, compared exactly.")
    ] = False,
    fails: Annotated[
        bool,
        typer.Option("--fails", help="Whether --measure fails is what is compared: exit 0 or not; 125 skips a commit."),
    ] = False,
    tests: Annotated[
        list[str] | None,
        typer.Option("--tests", "--test", help="Tests of the suite instead of --measure (may be repeated)."),
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Of --tests: the suite that they are of (default: smoke).")] = None,
    device: Annotated[str | None, typer.Option(help="Of --tests: cpu or cuda (default: cpu).")] = None,
    channel: Annotated[
        str | None,
        typer.Option(help="Of --tests: what is compared (default: cpu_time, on cuda gpu_time); counts exactly."),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Of --tests: how they end is what is compared, such as ok and crash.")
    ] = False,
    subject: Annotated[str | None, typer.Option(help="Of --tests: the package that the repository builds.")] = None,
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="Of --tests: a further folder of models (may be repeated).")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Of --tests: CPU threads.")] = None,
    budget: Annotated[float | None, typer.Option(help="Of --tests: seconds of timed work per process.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML whose `builds` says how builds are made; of --from-signal also the store, suite and models."
        ),
    ] = None,
    beyond: Annotated[
        float | None,
        typer.Option(help="The smallest change to look for, as a share (default: a pair's spread, at least .01)."),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(help="Before all measuring: flat, or paths (by what each commit touched, bisection/paths.py)."),
    ] = "flat",
    most_builds: Annotated[int | None, typer.Option(min=2, help="Attempts to build, at most.")] = None,
    most_pairs: Annotated[
        int | None, typer.Option(min=6, help="Pairs, or runs of what is compared exactly, at most.")
    ] = None,
    closing: Annotated[
        int,
        typer.Option(
            min=0,
            help="Pairs of a culprit, once it is found, against its parent, and of the bad end without it; 0: none.",
        ),
    ] = CLOSING,
    build_timeout: Seconds = 4 * 3600.0,
    measure_timeout: Seconds = 600.0,
    store: Annotated[
        str | None, typer.Option(help="Where the state is kept: a folder or s3://... (default: a folder in --work).")
    ] = None,
    work: Annotated[Path, typer.Option(help="Folder of checkouts, logs and pairs.")] = DEFAULT_WORK,
    no_attribution: Annotated[
        bool,
        typer.Option("--no-attribution", help="Of --tests: do not profile what got slower inside at the culprit."),
    ] = False,
    keep_worktrees: Annotated[
        bool, typer.Option("--keep-worktrees", help="Leave the checkouts where they are when it is done.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it is expected to take, and measure nothing.")] = False,
    build_seconds: Annotated[float | None, typer.Option(min=0, help="Of --plan: what a build takes.")] = None,
    pair_seconds: Annotated[float | None, typer.Option(min=0, help="Of --plan: what a pair takes.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the answer here as JSON.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write it here as Markdown.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the posterior here, .png or .svg.")] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Search ranges that are made up, and count how that ends.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Of --simulate: 1, 2, 3, 5 (steps in sd), none, two, noise (may be repeated)."),
    ] = None,
    replicates: Annotated[
        int, typer.Option(min=1, max=MOST_REPLICATES, help="Of --simulate: ranges of each kind.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of --simulate: the first seed; each range takes the next.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Of --simulate: write the tables, as Markdown, to this file.")
    ] = None,
) -> int:
    """Find the commit, release or date of a range that changed what is measured, through noise and failing builds.

    The same again goes on where it was ended. Exit code 0: nothing changed, 1: a change was found, 2: not measured,
    3: the budget is spent.
    """
    if simulate:
        return _simulate(group, replicates, seed, out)
    if again and from_signal is None:
        raise BotError("--again: is of --from-signal; without that, name another --store to begin anew")
    ways = (repo is not None) + (releases is not None) + dates
    if ways > 1:
        raise BotError("--repo, --releases and --dates: are three kinds of ranges; name one")
    if measure is not None and tests:
        raise BotError("--measure and --tests: are two ways of measuring; name one")
    if ways != 1 or (from_signal is not None and repo is None):
        raise BotError(_NEEDED)
    if from_signal is None and (good is None or bad is None or (measure is None) == (not tests)):
        raise BotError(_NEEDED)
    from bot.bisection.account import EXIT_CODES
    from bot.bisection.attributing import Attributing
    from bot.bisection.date_range import DateRange
    from bot.bisection.document import Asked, Desk
    from bot.bisection.expected import plan_lines
    from bot.bisection.git_range import GitRange
    from bot.bisection.instruments import TestsInstrument
    from bot.bisection.kept_nights import KeptNights
    from bot.bisection.live import TerminalView
    from bot.bisection.nightly_branch import NightlyBranch
    from bot.bisection.release_range import ReleaseRange
    from bot.bisection.reverting import Reverts
    from bot.bisection.whole import Whole, alone_in
    from bot.culprits.tests_of_suite import digest, with_command
    from torchbenchmark.cli import device_named, end_children_on_termination

    of_tests = {"--channel": channel, "--suite": suite, "--device": device, "--models": models, "--threads": threads}
    if measure is not None and (given := [name for name, value in {**of_tests, "--budget": budget}.items() if value]):
        raise BotError(f"{', '.join(given)}: is of --tests, and --measure measures by itself")
    require_one_comparison(measure, {"--exact": exact, "--fails": fails, "--status": status}, channel)
    if closing and closing < FEWEST_CLOSING:
        raise BotError(f"--closing {closing}: an interval takes at least {FEWEST_CLOSING} pairs; 0 leaves it out")
    if beyond is not None and not 0 < beyond < 1:
        raise BotError(f"--beyond {beyond:g}: a share above 0 and under 1, such as .02 for 2 %")
    if measure is not None and not measure.strip():
        raise BotError("--measure: is empty; name the command that prints the number")
    require_of_the_range(repo, dates, measure, build, wheels, nightly_repo, pre, run_in)
    if repo is None and prior_named(prior) == "paths":
        raise BotError("--prior paths: weighs the commits of --repo by what they touched")
    for file in (json_file, markdown_file, picture):
        require_writable(file)
    if picture is not None:
        from torchbenchmark.pictures import require_matplotlib

        require_matplotlib()
    chosen = load_config(config) if config is not None else NightlyConfig()
    signal = None
    if from_signal is not None:
        from bot.culprits.signal_range import find_alert, range_of

        store = store or (chosen.store if config is not None else None)
        if store is None:
            raise BotError("--from-signal: name the --store that has it, or the --config that names that")
        alert = find_alert(open_store(store, must_exist=True), from_signal)
        if alert.verdict is not None and not again:
            return _known(alert)
        signal = range_of(open_store(store), alert, tests=() if measure else tests or (), channel=channel)
    settings = chosen.builds
    if measure is not None and "requirements" not in settings.model_fields_set:
        settings = settings.model_copy(update={"requirements": ()})  # numpy is what measuring tests needs
    commits: Range
    if repo is not None:
        commits = _range(repo, good, bad, wheels, signal)
    elif releases is not None and good is not None and bad is not None:
        commits = ReleaseRange(releases, good, bad, settings, pre=pre)
        subject = commits.package
    else:
        assert good is not None and bad is not None
        address = wheels or settings.dated
        if address is None:
            raise BotError("--dates: say where the wheels are, by --wheels or `builds.dated` in --config")
        commits = DateRange(
            address,
            good,
            bad,
            settings,
            subject or chosen.subject,
            NightlyBranch(nightly_repo) if nightly_repo is not None else None,
            measuring_options(
                measure,
                higher_is_better,
                tests,
                suite or "smoke",
                models,
                device or "cpu",
                channel,
                subject,
                threads,
                budget,
                config,
                beyond,
                [option for option, given in (("--exact", exact), ("--fails", fails), ("--status", status)) if given],
            ),
            lambda text: console.print(Text(text), style="yellow"),
        )
    asked = Asked(
        good=commits.good,
        bad=commits.bad,
        build=build,
        measure=measure,
        higher_is_better=higher_is_better,
        beyond=beyond,
        most_builds=most_builds,
        most_pairs=most_pairs,
        prior=prior_named(prior),
        compared="counts" if exact else "status" if fails or status else "times",
        noun=commits.noun,
        again=_verdict_before(signal) if again else "",
    )
    if repo is None or wheels is not None:
        asked = asked.model_copy(
            update={
                "package": commits.package if isinstance(commits, ReleaseRange) else "",
                "pre": pre,
                "wheels": "" if isinstance(commits, ReleaseRange) else commits.wheels or "",
                "folder": str(run_in.absolute()) if run_in is not None else "",
                "subject": normalised_name(subject or (signal.subject if signal is not None else chosen.subject)),
                "builds": digest(settings, ()),
            }
        )
    settings = with_command(settings, build, build_timeout)
    models = models or (list(chosen.models) if signal is not None else [])
    if measure is None:
        device = device_named(device or (signal.bad.device if signal is not None else "cpu"))
        status = status or (signal is not None and signal.compared == "status" and channel is None)
        what = "" if status else channel_named(channel or (signal.channel if signal is not None else None), device)
        asked = asked.model_copy(
            update={
                "tests": tuple(tests or ()),
                "suite": suite or "smoke",
                "device": device,
                "channel": what,
                "compared": "status" if status else "counts" if CHANNELS[what].exact else "times",
                "subject": subject or chosen.subject,
                "threads": threads,
                "budget_s": budget,
                "builds": digest(settings, models),
            }
        )
        if signal is not None:
            asked = _by_signal(asked, signal, chosen, suite, subject)
    if asked.exact and beyond is not None:
        raise BotError("--beyond: is of times; what is compared exactly differs or does not")
    folder = _work_folder(work, commits) / asked.key
    opened = open_store(store or str(folder / STORE))
    begun = Desk(opened, asked.key).read()
    if isinstance(commits, DateRange):
        commits.kept = KeptNights(opened)
    commits.settle(begun.search.commits if begun is not None else None)
    if plan:
        lines = plan_lines(
            len(commits.line) - 1,
            begun,
            build_seconds,
            pair_seconds,
            commits.noun,
            exact=asked.exact,
            closing=closing,
            reverts=_is_built_here(commits),
        )
        for line in lines:
            console.print(Text(line))
        return 0
    end_children_on_termination()
    with ExitStack() as leases:
        leases.enter_context(alone_in(folder))
        leases.push(_say_how_to_go_on)
        limits = (build_timeout, measure_timeout)
        where = None if signal is None else signal.alert.machine_class
        instrument = _instrument(asked, commits, folder, settings, tuple(models), limits, leases, where)
        revert = Reverts(commits.folder, folder / REVERTS, leases) if _is_built_here(commits) else None
        with TerminalView(commits.subjects) as view:
            environment = () if signal is None else signal.environment
            found = Whole(asked, commits, opened, instrument, view, revert, closing, environment).run()
        if signal is not None:  # the verdict, however the profiling ends
            _write_to_alert(opened, signal.alert, found)
        if isinstance(instrument, TestsInstrument) and not no_attribution:
            _write(found, json_file, markdown_file)  # the verdict, however the profiling ends
            files = commits if isinstance(commits, GitRange) else None
            found = Attributing(files, opened, instrument, folder / ATTRIBUTION, _say).of(found)
        if not keep_worktrees:
            _remove_worktrees(folder)
    _tell(found, json_file, markdown_file, picture)
    return EXIT_CODES[found.verdict.kind]


def _verdict_before(signal: "SignalRange | None") -> str:
    """Which verdict is not to be taken: by it the same command goes on after a kill."""
    verdict = None if signal is None else signal.alert.verdict
    return "" if verdict is None else verdict.at.isoformat()


def _known(alert: "Alert") -> int:
    """An alert that was bisected this time has its verdict."""
    from bot.culprits.verdict_of_alert import exit_code_of, told_before

    verdict = alert.verdict
    assert verdict is not None
    told = f"alert {alert.key} was bisected on {verdict.at:%Y-%m-%d}; --again does it once more"
    console.print(Text(told))
    console.print(Text(told_before(verdict)), style="bold")
    return exit_code_of(verdict)


def _range(
    repo: Path, good: str | None, bad: str | None, wheels: str | None, signal: "SignalRange | None"
) -> "GitRange":
    """Between the ends that were named or, where one was not, the commit of the build of a night."""
    from bot.bisection.git_range import GitRange

    if signal is not None:
        from bot.culprits.commission import ends_in

        good, bad = ends_in(repo, signal, good, bad)
    assert good is not None and bad is not None
    return GitRange(repo, good, bad, wheels)


def _by_signal(
    asked: "Asked", signal: "SignalRange", config: NightlyConfig, suite: str | None, subject: str | None
) -> "Asked":
    """What was asked for, and of what nobody has named what the alert says."""
    from bot.culprits.commission import suite_of

    measuring = signal.bad.measuring
    return asked.model_copy(
        update={
            "tests": signal.tests,
            "suite": suite or suite_of(signal.alert, config),
            "subject": subject or signal.subject,
            "threads": asked.threads or measuring.threads,
            "budget_s": asked.budget_s or measuring.budget_s,
            "beyond": asked.beyond or (None if asked.exact else signal.beyond),
        }
    )


def _write_to_alert(store: Store, alert: "Alert", found: "Found") -> None:
    from bot.culprits.verdict_of_alert import bisected, write_verdict

    written = write_verdict(store, alert, bisected(found, len(alert.earlier)))
    if written is None:
        told = f"alert {alert.key} is gone, or open for another time by now: the verdict is not written to it"
        console.print(Text(told), style="yellow")
    else:
        console.print(Text(f"written to alert {alert.key}: its issue tells it when the next night is filed"))


def _instrument(
    asked: "Asked",
    commits: "Range",
    folder: Path,
    settings: BuildSettings,
    models: tuple[Path, ...],
    limits: tuple[float, float],
    leases: ExitStack,
    wanted_class: str | None = None,
) -> "Instrument":
    from bot.bisection.environments import Environments
    from bot.bisection.exact_instruments import ExactScript
    from bot.bisection.git_range import GitRange
    from bot.bisection.instruments import ScriptInstrument, Workplaces
    from bot.bisection.provided import Provided
    from bot.bisection.worktrees import Worktrees
    from bot.culprits.tests_of_suite import tests_instrument

    build_s, measure_s = limits
    if asked.measure is not None:
        trees: Workplaces
        if isinstance(commits, GitRange) and _is_built_here(commits):
            trees = Worktrees(commits.folder, folder / WORKTREES, asked.build, build_s, leases)
        else:
            builds = Provided(commits, settings, asked.subject, leases, plain=True)
            trees = Environments(builds, Path(asked.folder) if asked.folder else folder / EMPTY)
        if asked.exact:
            return ExactScript(trees, asked.measure, folder / SCRATCH, measure_s, asked.compared == "status")
        return ScriptInstrument(trees, asked.measure, folder / SCRATCH, measure_s, asked.higher_is_better)
    return tests_instrument(asked, commits, folder, settings, models, measure_s, leases, wanted_class)


def _tell(found: "Found", json_file: Path | None, markdown_file: Path | None, picture: Path | None) -> None:
    from bot.bisection.account import (
        change_sentences,
        cost,
        flaky_sentence,
        follow_up_sentence,
        merge_sentence,
        sentence,
    )
    from bot.bisection.paths import told_of_prior
    from bot.bisection.picture import draw_changes, draw_posterior

    pictures = draw_changes(found, picture) if picture is not None else {}
    _write(found, json_file, markdown_file, pictures)
    if picture is not None:
        if found.posterior is None:
            console.print(Text(f"{picture}: not drawn, as the ends were not measured"), style="yellow")
        else:
            draw_posterior(found, picture)
    console.print(Text(f"{cost(found.document)}; {told_of_prior(found.document.search.weights)}"))
    if flaky := flaky_sentence(found):
        console.print(Text(flaky), style="yellow")
    console.print(Text(sentence(found)), style="bold")
    if merge := merge_sentence(found):
        console.print(Text(merge), style="bold")
    for one in found.follow_ups:
        console.print(Text(follow_up_sentence(one)), soft_wrap=True)
    for said in change_sentences(found):
        console.print(Text(said))


def _write(
    found: "Found", json_file: Path | None, markdown_file: Path | None, pictures: Mapping[tuple[str, str], Path] = {}
) -> None:
    """The answer as files; `pictures` are linked as they lie from the Markdown."""
    from bot.bisection.report import content, markdown

    if json_file is not None:
        write_text(json_file, json.dumps(content(found), indent=1, allow_nan=False) + "\n")
    if markdown_file is not None:
        here = markdown_file.absolute().parent
        links = {which: quote(os.path.relpath(path.absolute(), here)) for which, path in pictures.items()}
        write_text(markdown_file, markdown(found, pictures=links))


def _say_how_to_go_on(kind: type[BaseException] | None, *_: object) -> None:
    if kind is KeyboardInterrupt:
        console.print(Text("the same command goes on from here"))


def _say(text: str) -> None:
    console.print(Text(text))


def _is_built_here(commits: "Range") -> bool:
    """Whether any commit can be built, also one that is made here to take another back."""
    from bot.bisection.git_range import GitRange

    return isinstance(commits, GitRange) and commits.wheels is None


def _work_folder(work: Path, commits: "Range") -> Path:
    """Raises BotError for a folder in the repository: it would not stay as it was."""
    from bot.bisection.git_range import GitRange

    folder = work.expanduser().absolute()
    if isinstance(commits, GitRange) and folder.resolve().is_relative_to(commits.folder.resolve()):
        raise BotError(f"--work {work}: lies in the repository, which is left as it is; name a folder elsewhere")
    return folder


def _remove_worktrees(folder: Path) -> None:
    from torchbenchmark.builds.folders import remove

    for name in (WORKTREES, SCRATCH, REVERTS, EMPTY):  # logs and pairs stay
        if (folder / name).exists():
            remove(folder / name)


def _simulate(group: Sequence[str] | None, replicates: int, seed: int, out: Path | None) -> int:
    from bot.bisection.table import GROUPS, markdown_table, simulated_rows  # scipy takes a second

    for name in group or ():
        if name not in GROUPS:
            raise BotError(f"--group {name}: no such ranges; there are {', '.join(GROUPS)}")
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise BotError(f"{out}: --out names a file in a folder that exists")
    parts = [f"{replicates} ranges of each kind, seeds from {seed}\n"]
    for name in dict.fromkeys(group or GROUPS):
        rows = []
        for row in simulated_rows(name, replicates, seed):
            rows.append(row)
            console.print(Text(markdown_table([row]).splitlines()[-1]))
            if out is not None:
                _write_table(out, "\n".join([*parts, markdown_table(rows)]))
        parts.append(markdown_table(rows))
    return 0


def _write_table(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BotError(f"{out}: cannot be written: {error.strerror}") from error
