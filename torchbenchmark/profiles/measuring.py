"""Profiles two sides by turns and tells their difference: the one call for the command, confirming, bisection and
`/benchmark profile`."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.cli import plan_sides
from torchbenchmark.paired.measurement import PairsReporter, PairsRequest, inspect_sides, measure_pairs, plan_pairs
from torchbenchmark.paired.pairs_file import Pairs, SideName
from torchbenchmark.paired.sides import Side
from torchbenchmark.planning import OtherGround, RunRequest
from torchbenchmark.profiles.attribution import Attribution
from torchbenchmark.profiles.difference import LEVEL, Touched, attribute_pairs
from torchbenchmark.profiles.touched import OPERATOR_LIST, operators_touched
from torchbenchmark.registry import Registry

LARGEST_SOURCE = 2**21  # bytes of a touched file that is read


@dataclass(frozen=True)
class Profiled:
    """What was measured, and what it comes to."""

    pairs: Pairs
    attribution: Attribution


def profile_sides(
    run: RunRequest,
    base: Side,
    head: Side,
    out: Path,
    reporter: PairsReporter,
    *,
    level: float = LEVEL,
    traces: Path | None = None,
    touched: Touched | None = None,
    seconds: float | None = None,
    resume: bool = False,
    given: Collection[str] = (),
) -> Profiled:
    """Profile the tests of `run` on both sides, `run.rounds` pairs each, into the file of pairs `out`.

    A pair is two fresh processes from fresh zygotes, in the order of a recorded coin, as `ab` measures. `traces` is a
    folder for a trace of either side of each test. Raises BenchmarkError as `measure_pairs` does.
    """
    with ExitStack() as leases:
        request, header, interpreters = plan_sides(run, base, head, leases)
        header = header.model_copy(update={"profiled": True})
        pairs = measure_pairs(
            request,
            header,
            interpreters,
            out,
            reporter,
            seconds=seconds,
            resume=resume,
            given=given,
            traces=traces,
        )
    return Profiled(pairs, attribute_pairs(pairs, level, touched))


def profile_interpreters(
    run: RunRequest,
    addresses: Mapping[SideName, str],
    pythons: Mapping[SideName, Path],
    out: Path,
    reporter: PairsReporter,
    *,
    machine_class: str | None = None,
    traces: Path | None = None,
    touched: Touched | None = None,
) -> Profiled:
    """The same of builds that are there. What a killed call has left in `out` is gone on with, unless it is of other
    builds or of another environment.

    `machine_class`: what this machine has to be of. Raises BenchmarkError as `measure_pairs` does.
    """
    request = PairsRequest(run, Side(addresses["base"]), Side(addresses["head"]))
    interpreters = inspect_sides(request, pythons, run.subject)
    header = plan_pairs(request, interpreters, Registry(run.model_folders)).model_copy(update={"profiled": True})
    if machine_class not in (None, header.machine_class):
        raise BenchmarkError(f"this machine is of class {header.machine_class}, and not {machine_class}")

    def measure() -> Pairs:
        return measure_pairs(request, header, interpreters, out, reporter, resume=True, traces=traces)

    try:
        pairs = measure()
    except OtherGround as problem:
        reporter.note(f"measured anew: {problem}")
        out.unlink()
        pairs = measure()
    return Profiled(pairs, attribute_pairs(pairs, LEVEL, touched))


def touched_by(paths_file: Path, tree: Path | None) -> Touched:
    """From a file with one path a line, as `git diff --name-only` prints it, and the subject's tree if there is one."""
    try:
        paths = [line.strip() for line in paths_file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{paths_file}: cannot be read: {error}") from error
    operator_list = _text(tree / OPERATOR_LIST, tree) if tree is not None else None
    sources = {path: text for path in paths if tree is not None and (text := _text(tree / path, tree)) is not None}
    return lambda operators: operators_touched(paths, operators, operator_list or "", sources)


def _text(path: Path, tree: Path) -> str | None:
    """The text of a file inside the tree; None if there is none, or too much of it."""
    try:
        real = path.resolve()
        if not real.is_relative_to(tree.resolve()) or not real.is_file() or real.stat().st_size > LARGEST_SOURCE:
            return None
        return real.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # a path with a null byte among them
        return None
