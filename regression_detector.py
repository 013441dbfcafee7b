"""The policy: which change of which channel, against which nights, is called a regression. The seed rule of TorchBench,
with a baseline of several nights, segments and a judged channel per device. No numerics of its own.

`torchbench detect`, or this file itself as a program.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from baselines.canaries import CanaryMove
from baselines.comparison import ROUNDING, compare, count_changes, moved_by
from baselines.differences import differences
from baselines.history import add_night, read_nights
from baselines.night_evidence import TOTAL, Evidence
from baselines.noisy import NoisyTest
from baselines.pins import pinned_night
from baselines.policy import SEED_PER_TEST, SEED_TOTAL, Policy, load_policy
from baselines.report import CountChange, Judgement, NightRef, Report, Row, State, Total
from baselines.report_table import print_report
from baselines.rolling import Mask, ValidNights
from baselines.runs import list_series, run_prefix, store_run
from baselines.screening import WINDOW
from baselines.series import (
    TURNS,
    NightSummary,
    UtcTime,
    chronological,
    is_of_environment,
    missing_shards_text,
    summarise,
)
from baselines.store import Store, open_store
from baselines.suspects import Screen, Suspect, screen
from score.errors import ScoreError
from score.taxonomy import published_taxonomy
from score.v1 import TARGET, weights_of
from torchbenchmark.channels import CHANNELS
from torchbenchmark.errors import SentinelError
from torchbenchmark.experiment import Experiment
from torchbenchmark.paired.noise_table import NoiseTable, find_noise_table
from torchbenchmark.quantity import few
from torchbenchmark.records import read_run
from torchbenchmark.terminal import console, new_app, run_app
from torchbenchmark.yaml_files import first_problem, load_yaml

BLIND_NIGHTS = 3  # in a row without any comparison: then it is no beginning any more, but a detector that sees nothing
_READ_AHEAD = 4  # nights read per night wanted: not every night has every test

Weights = Callable[[Collection[str]], Mapping[str, float]]


class DetectorError(SentinelError):
    """What is to be compared does not belong together."""


def v1_weights(tests: Collection[str]) -> dict[str, float]:
    """The weights of Score V1; a test whose model has no category gets none."""
    domain_of = published_taxonomy().domain_of
    experiments = []
    for experiment in map(Experiment.parse, tests):
        try:
            domain_of(experiment.model)
        except ScoreError:
            continue
        experiments.append(experiment)
    return {experiment.id: weight.total for experiment, weight in weights_of(experiments, domain_of).items()}


def detect(
    tonight: NightSummary,
    history: Sequence[NightSummary],
    policy: Policy,
    *,
    open_alerts: Mapping[str, datetime | str] | None = None,
    masks: Mapping[str, Sequence[Mask]] | None = None,
    pinned: NightSummary | None = None,
    weights: Weights = v1_weights,
    noise: NoiseTable | None = None,
    canaries: CanaryMove | None = None,
    noisy: Mapping[str, NoisyTest] | None = None,
) -> Report:
    """Compare a night with the nights before it, in any order; tonight among them is left out.

    `open_alerts` gives per test id, or TOTAL, since when its alert is open: nights from then on are no baseline.
    `masks` gives the same of alerts that may be closed by now. `noise` is the A/A table of the class: what the screen
    believes a night to spread by at least. `canaries`: what the frozen build did tonight. `noisy`: what people have
    called noise, by test id or TOTAL; the flat rule does not know it.
    """
    masked = {test: list(several) for test, several in (masks or {}).items()}
    for test, opened in _parse_alerts(open_alerts or {}).items():
        masked.setdefault(test, []).append(Mask(opened))
    for night in (*history, *((pinned,) if pinned else ())):
        _check_comparable(tonight, night)
    earlier = tuple(night for night in chronological(history) if night.run != tonight.run)
    noisy = dict(noisy or {})
    evidence = Evidence(tonight, earlier, pinned, policy, masked, noisy)
    rows = [compare(test, evidence) for test in sorted(tonight.tests)]
    rows += [Row(test=test, state=State.GONE, reason="not planned tonight") for test in _vanished(evidence)]
    good, changes = evidence.last_good, {row.test: row.change for row in rows if row.change is not None}
    total_limit = _total_limit(policy.total, noisy, changes, weights)
    total = _total(changes, weights, total_limit)
    blind = evidence.nights_without_comparison if all(row.change is None for row in rows) else 0
    judgement = _judge(tonight, rows, total, policy.per_test, total_limit, policy.min_coverage, blind, noisy)
    counts = tuple(change for test in sorted(tonight.ok_tests) for change in count_changes(test, evidence))
    return Report(
        verdict=judgement.verdict,
        reason=judgement.reason,
        flat=_judge(tonight, rows, total, SEED_PER_TEST, SEED_TOTAL, policy.min_coverage, blind),
        policy=policy,
        suite=tonight.suite,
        machine_class=tonight.machine_class,
        device=tonight.device,
        tonight=_reference(tonight),
        baseline=_reference(good) if good else None,
        pin=_reference(pinned) if pinned else None,
        total=total,
        pin_total=_total(
            {row.test: row.pin_change for row in rows if row.pin_change is not None}, weights, policy.total
        ),
        rows=tuple(sorted(rows, key=lambda row: row.test)),
        counts=counts,
        differences=tuple(differences(good, tonight)) if good else (),
        screen=_screen(evidence, rows, counts, noise, canaries) if earlier else None,
        noisy=noisy,
    )


def _screen(
    evidence: Evidence,
    rows: Sequence[Row],
    counts: Sequence[CountChange],
    noise: NoiseTable | None,
    canaries: CanaryMove | None,
) -> Screen:
    """Where to look first tonight, whatever the limits say."""
    tonight = evidence.tonight
    alerts = {test: alert for test in tonight.tests if (alert := evidence.alert(test)) is not None}
    exact = [
        Suspect(kind="status change", test=row.test, why=row.reason, alert=row.alert)
        for row in rows
        if row.state is State.NEWLY_FAILING
    ]
    exact += [
        Suspect(
            kind="count change",
            test=change.test,
            channel=change.channel,
            why=f"{change.channel} is {change.tonight:.12g} and was {change.baseline:.12g}; a count is exact",
            alert=alerts.get(change.test),
        )
        for change in counts
        if CHANNELS[change.channel].judged
    ]
    before = next(reversed(evidence.valid_nights), None)
    fingerprint = differences(before, tonight) if before and not is_of_environment(before, tonight) else ()
    return screen(
        tonight,
        evidence.history,
        {test: evidence.valid(test) for test in tonight.tests},
        knob=evidence.policy.screen,
        alerts=alerts,
        exact=exact,
        fingerprint={
            one.field: f"{one.old or 'absent'} -> {one.new or 'absent'}"
            for one in fingerprint
            if one.group == "environment"
        },
        canaries=canaries.sentence if canaries is not None and (canaries.moved or canaries.failing) else "",
        noise=noise,
    )


def _total_moved(score: float, limit: float) -> State:
    """By the score, as people read it: 1 % is a total under 990, and by symmetry one above 1000 / 0.99."""
    if score / TARGET < 1 - limit - ROUNDING:
        return State.SLOWER
    return State.FASTER if TARGET / score < 1 - limit - ROUNDING else State.UNCHANGED


def _total_limit(limit: float, noisy: Mapping[str, NoisyTest], changes: Mapping[str, float], weights: Weights) -> float:
    """What the total may lose: from what was called noise on, of itself, and of tests by what they weigh in it."""
    weight = weights(sorted(changes)) if noisy and changes else {}
    called = sum(one.margin * (1.0 if test == TOTAL else weight.get(test, 0.0)) for test, one in noisy.items())
    return 1 - (1 - limit) * math.exp(-called)


def _vanished(evidence: Evidence) -> list[str]:
    """Planned and meant to run in the newest valid night, not planned tonight."""
    if evidence.tonight.selection:
        return []  # left out on purpose
    newest = next(reversed(evidence.valid_nights), None)
    planned = newest.tests.items() if newest else ()
    return [test for test, then in planned if test not in evidence.tonight.tests and (then.ok or then.failed)]


def _total(changes: Mapping[str, float], weights: Weights, limit: float) -> Total | None:
    weight = weights(sorted(changes)) if changes else {}
    counted = {test: change for test, change in changes.items() if test in weight}
    if not counted:
        return None
    log_ratio = math.fsum(weight[test] * math.log1p(change) for test, change in counted.items())
    score = TARGET * math.exp(-log_ratio)
    return Total(
        score=score,
        change=math.expm1(log_ratio),
        state=_total_moved(score, limit),
        tests=len(counted),
        left_out=tuple(sorted(changes.keys() - counted.keys())),
    )


def _judge(
    tonight: NightSummary,
    rows: Sequence[Row],
    total: Total | None,
    per_test: float,
    total_limit: float,
    min_coverage: float,
    blind: int,
    noisy: Mapping[str, NoisyTest] | None = None,
) -> Judgement:
    """The verdict by these limits, with a reason in one line. `blind` is the number of nights in a row, tonight
    included, that could not be compared with any before them."""
    if not tonight.ok_tests:
        ends = Counter(str(summary.status or "without a record") for summary in tonight.tests.values())
        told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        return Judgement(verdict="broken", reason=f"no test ended ok: {told}")
    compared = [row for row in rows if row.change is not None]
    noisy = noisy or {}

    def moved(row: Row) -> State:
        limit = noisy[row.test].widened(per_test) if row.test in noisy else per_test
        return moved_by(row.change, limit)

    def flaky(row: Row) -> bool:
        known = noisy.get(row.test)
        return known is not None and not known.has_failed_long(row.good_until, tonight.started)

    slower = [row for row in compared if moved(row) is State.SLOWER]
    faster = [row for row in compared if moved(row) is State.FASTER]
    failing = [row.test for row in rows if row.state is State.NEWLY_FAILING and not flaky(row)]
    still = [row.test for row in rows if row.state is State.STILL_FAILING and row.alert is not None]
    findings = [f"{what} failing: {few(names)}" for what, names in (("newly", failing), ("still", still)) if names]
    if slower:
        worst = sorted(slower, key=lambda row: -row.change)
        findings.append(f"slower by over {_limit(per_test)}: {few([f'{row.test} {row.change:+.1%}' for row in worst])}")
    if total is not None and _total_moved(total.score, total_limit) is State.SLOWER:
        findings.append(f"total {total.score:.1f}, more than {_limit(total_limit)} below {TARGET:.0f}")
    if tonight.missing_shards:
        absent = sum(summary.absent for summary in tonight.tests.values())
        findings.append(f"{missing_shards_text(tonight.missing_shards)}, {absent} of {len(tonight.tests)} tests")
        if len(findings) == 1:
            told = f"; {len(compared)} compared, none slower" if compared else ""
            return Judgement(verdict="broken", reason=findings[0] + told)
    if findings:
        return Judgement(verdict="regression", reason="; ".join(findings))
    if not compared:
        low = "" if tonight.coverage >= min_coverage else f"; coverage {tonight.coverage:.0%}: no baseline either"
        states = f"{_count_states(rows)}{low}"
        if blind >= BLIND_NIGHTS:
            told = f"{blind} nights in a row could not be compared with any before them, so no regression can be seen"
            return Judgement(verdict="broken", reason=f"{told}: {states}")
        return Judgement(verdict="baseline made", reason=f"no test has a baseline yet: {states}")
    besides = _count_states([row for row in rows if row.change is None])
    parts = [
        f"{len(compared)} tests compared, none slower by over {_limit(per_test)}",
        f"total {total.score:.1f}" if total else "",
        f"faster by over {_limit(per_test)}: {few([row.test for row in faster])}" if faster else "",
        f"not compared: {besides}" if besides else "",
    ]
    return Judgement(verdict="clean", reason="; ".join(filter(None, parts)))


def _count_states(rows: Sequence[Row]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(Counter(row.state for row in rows).items()))


def _limit(share: float) -> str:
    return f"{100 * share:.3g}%"


def _parse_alerts(alerts: Any) -> dict[str, datetime]:
    try:
        return TypeAdapter(dict[str, UtcTime]).validate_python(alerts)
    except ValidationError as error:
        raise DetectorError(f"open alerts: {first_problem(error)}; expected a test id, or total: the time") from error


def _check_comparable(tonight: NightSummary, other: NightSummary) -> None:
    for name, ours, theirs in (
        ("suite", tonight.suite, other.suite),
        ("class", tonight.machine_class, other.machine_class),
    ):
        if ours != theirs:
            raise DetectorError(
                f"run {tonight.run} is of {name} {ours!r}, run {other.run} of {theirs!r}; "
                f"only runs of one {name} can be compared"
            )


def _reference(night: NightSummary) -> NightRef:
    build = night.build
    return NightRef(
        run=night.run,
        key=night.key,
        started=night.started,
        build=build.id,
        version=build.version,
        commit=build.commit,
        coverage=night.coverage,
    )


def register(app: typer.Typer) -> None:
    app.command("detect")(detect_command)


def detect_command(
    results: Annotated[Path, typer.Argument(help="The run to judge (.jsonl or .jsonl.gz).")],
    store: Annotated[
        str | None, typer.Option(help="Compare with the history in this store: a folder, or s3://bucket/prefix.")
    ] = None,
    control: Annotated[list[Path] | None, typer.Option(help="Compare with this run instead; repeatable.")] = None,
    policy: Annotated[str, typer.Option(help="Name of a policy (default, smoke), or its YAML file.")] = "default",
    alerts: Annotated[Path | None, typer.Option(help="YAML of open alerts: a test id, or total: since when.")] = None,
    noise: Annotated[
        Path | None, typer.Option(help="A/A table for the screen (default: that of this class here, if there is one).")
    ] = None,
    before: Annotated[
        datetime | None, typer.Option(help="Only nights that started before this time (UTC) are the baseline.")
    ] = None,
    pin: Annotated[str | None, typer.Option(help="Pinned run to compare with as well; default: the latest.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report here as JSON.")] = None,
    yaml_file: Annotated[Path | None, typer.Option("--yaml", help="Write the report here as YAML.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Put RESULTS into the store and its history as well.")] = False,
) -> None:
    """Compare a run with the nights before it. Exit code 0: clean, 1: regression, 2: broken."""
    if (store is None) == (not control):
        raise DetectorError("detect: what to compare with? give either --store or --control (repeatable)")
    if store is None and (add or pin):
        raise DetectorError(f"detect: {'--add' if add else '--pin'} needs --store")
    rule = load_policy(policy)
    open_alerts = _parse_alerts(load_yaml(alerts, DetectorError) or {}) if alerts else {}
    run = read_run(results)
    tonight, pinned = summarise(run), None
    if before is not None:
        before = before if before.tzinfo else before.replace(tzinfo=UTC)
    if store is None:
        history = [summarise(read_run(path)) for path in control or ()]
    else:
        opened = open_store(store, must_exist=not add)
        if add:  # first, so that whatever follows, the run is not lost
            store_run(opened, run)
            tonight = add_night(opened, run_prefix(run.header))  # with the shards that are there already
        masks = {test: [Mask(since)] for test, since in open_alerts.items()}
        history = read_history(opened, tonight, rule, masks, before or tonight.started)
        pinned = pinned_night(opened, tonight.suite, tonight.machine_class, pin)
        if not history:
            _tell_what_there_is(opened, tonight)
    if before is not None:
        history = [night for night in history if night.started < before]
    table = find_noise_table(noise, tonight.machine_class)
    report = detect(tonight, history, rule, open_alerts=open_alerts, pinned=pinned, noise=table)
    for path, content in ((json_file, report.to_json()), (yaml_file, report.to_yaml())):
        if path is not None:
            _write(path, content)
    print_report(report)
    raise typer.Exit(report.exit_code)


def _tell_what_there_is(store: Store, tonight: NightSummary) -> None:
    own = (tonight.suite, tonight.machine_class)
    others = [f"{suite} on {where}" for suite, where in list_series(store) if (suite, where) != own]
    console.print(
        f"{store.location} has no night of {tonight.suite} on {tonight.machine_class} before this one; "
        f"of others it has: {', '.join(others) or 'nothing'}",
        markup=False,
    )


def read_history(
    store: Store, tonight: NightSummary, policy: Policy, masks: Mapping[str, Sequence[Mask]], before: datetime
) -> list[NightSummary]:
    """So much of the history before a time that also a test that some nights lack has its baseline, and one whose alert
    has been open for long."""
    every = tuple(mask for several in masks.values() for mask in several if not mask.accepted)
    valid = ValidNights(policy.nights, policy.min_coverage, every)

    def wanted(night: NightSummary) -> bool:
        # Machines that take turns: of the time in which their own nights are looked for, the others do not count.
        here = is_of_environment(night, tonight) or tonight.started - night.started > TURNS
        return here and valid.covers(night) and valid.mask_of(night) is None

    return read_nights(
        store,
        tonight.suite,
        tonight.machine_class,
        max(WINDOW, policy.nights * _READ_AHEAD),
        before=before,
        wanted=wanted,
    )


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise DetectorError(f"{path}: cannot be written: {error.strerror}") from error


def main() -> None:
    app = new_app("Compare a run with the nights before it.")
    register(app)
    run_app(app)


if __name__ == "__main__":
    main()
