"""The command `install`: which models a build's interpreter can run and, if not, why; and the one pip command that
brings what they miss.

TorchBench's `install.py` installs; here the default only looks. What is measured is never exchanged: torch, what is
compiled against it, and the subject stay as they are, whatever is installed beside them.
"""

import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rich.table import Table
from rich.text import Text

from torchbenchmark import environment
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.isolation import ModelSource, Zygote, ZygoteDied
from torchbenchmark.nursery import ZYGOTE_SCRIPT
from torchbenchmark.registry import ModelEntry, Registry
from torchbenchmark.requirements import Unmet, required_names, unmet
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN, console, print_table

HARNESS_NEEDS = ("torch", "numpy")  # of every build, whatever the model
COMPILED_TOGETHER = ("torch", "torchvision", "torchaudio")  # each fits one version of torch only
TORCHVISION_CHECK = environment.PACKAGE / "torchvision_guard.py"
TORCHVISION_MISMATCH_EXIT = 3  # of that script
TORCHVISION_TIMEOUT_S = 300
OPERATORS_MISSING = (
    "torchvision {torchvision} does not match torch {torch}: its compiled operators (nms) fail, the rest works, "
    "timm's classifiers too"
)


@dataclass(frozen=True)
class Interpreter:
    """A build's interpreter, and what it holds."""

    python: Path
    distributions: dict[str, str]
    has_gpu: bool
    torch_problem: str  # why torch does not import although it is there
    kept: tuple[str, ...]  # distributions that are the build, or compiled against it: never exchanged


@dataclass(frozen=True)
class Finding:
    """Whether one model can run in an interpreter."""

    model: str
    devices: tuple[str, ...]  # those that it offers and torch sees
    problems: tuple[str, ...]  # why it cannot run; empty if it can
    missing: tuple[Unmet, ...]  # what pip could bring
    note: str = ""

    @property
    def can_run(self) -> bool:
        return not self.problems


def install(
    names: Annotated[list[str] | None, typer.Argument(metavar="MODEL...", help="Models (default: all).")] = None,
    python: Annotated[Path | None, typer.Option(help="Interpreter of the build (default: this one).")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Install what is missing. Torch and the subject stay as they are.")
    ] = False,
    subject: Annotated[str, typer.Option(help="The package whose speed is in question.")] = "torch",
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="A further folder of models (may be repeated).")
    ] = None,
) -> int:
    """Say which models can run on a build, why others cannot, and what to install for them.

    Exit code 2 if a model that was named cannot run or, where none was named, if none can.
    """
    entries = _chosen(Registry(tuple(models or ())), names or [])
    # Not resolved, as the link is what makes a virtual environment.
    python = environment.default_interpreter() if python is None else Path(shutil.which(python) or python).absolute()
    interpreter = look_at(python, subject)
    findings = check(entries, interpreter)
    command = pip_command(interpreter, findings)
    installed = True
    if command and yes:
        installed = _run(command)
        findings = check(entries, look_at(python, subject))
    _print(findings, python)
    if command and not yes:
        console.print(f"what is missing comes with --yes, or with:\n  {shlex.join(command)}", markup=False)
    can_run = [finding.can_run for finding in findings]
    return EXIT_CLEAN if installed and (all(can_run) if names else any(can_run)) else EXIT_BROKEN


def _chosen(registry: Registry, names: Sequence[str]) -> list[ModelEntry]:
    if unknown := [name for name in dict.fromkeys(names) if name not in registry.models]:
        raise BenchmarkError(f"unknown model {', '.join(unknown)}; known: {', '.join(registry.models)}")
    return [registry.models[name] for name in dict.fromkeys(names)] or list(registry.models.values())


def look_at(python: Path, subject: str) -> Interpreter:
    """What the interpreter holds. Raises BenchmarkError if it is none."""
    answer = environment.ask_interpreter(python, "torch")
    distributions = answer["distributions"]
    return Interpreter(
        python=python,
        distributions=distributions,
        has_gpu=bool(answer["devices"]),
        torch_problem=(answer["problem"] or "") if "torch" in distributions else "",
        kept=(*COMPILED_TOGETHER, environment.normalised_name(subject)),
    )


def check(entries: Sequence[ModelEntry], interpreter: Interpreter) -> list[Finding]:
    """Each model's needs against what the interpreter holds and, where those are met, its import."""
    by_metadata = [_needs(entry, interpreter) for entry in entries]
    hopeful = [entry for entry, found in zip(entries, by_metadata, strict=True) if found.can_run]
    problems = import_problems(interpreter.python, [ModelSource(entry.name, entry.folder) for entry in hopeful])
    with_torchvision = {entry.name for entry in hopeful if "torchvision" in required_names(entry.metadata.requires)}
    mismatch = bool(with_torchvision - set(problems)) and torchvision_mismatches(interpreter.python)
    findings = []
    for found in by_metadata:
        if found.model in problems:
            found = replace(found, problems=(f"its import fails: {problems[found.model]}",))
        elif mismatch and found.model in with_torchvision:
            found = replace(found, note=OPERATORS_MISSING.format_map(interpreter.distributions))
        findings.append(found)
    return findings


def _needs(entry: ModelEntry, interpreter: Interpreter) -> Finding:
    """What the metadata knows of a model, against what the interpreter holds."""
    metadata = entry.metadata
    lacks = unmet((*HARNESS_NEEDS, *metadata.requires), interpreter.distributions)
    fixed = {one.name for one in lacks if one.found is not None and one.name in interpreter.kept}
    problems = [
        f"needs {one}" + (", which is part of the build and stays: measure another" if one.name in fixed else "")
        for one in lacks
    ]
    devices = tuple(device for device in metadata.devices if device == "cpu" or interpreter.has_gpu)
    hopeless = bool(fixed)
    if interpreter.torch_problem:
        problems.append(f"torch does not import: {one_line(interpreter.torch_problem)}")
        hopeless = True
    elif not devices and "torch" in interpreter.distributions:
        problems.append(f"runs on {' and '.join(metadata.devices)} only, and torch sees no CUDA device")
        hopeless = True
    return Finding(entry.name, devices, tuple(problems), () if hopeless else lacks)


def import_problems(python: Path, models: Sequence[ModelSource]) -> dict[str, str]:
    """Why models do not import, as in a run: model -> reason. One that ends or hangs the process harms no other."""
    problems: dict[str, str] = {}
    waiting = list(models)
    with tempfile.TemporaryDirectory(prefix="torchbench-install-") as scratch:
        while waiting:
            with Zygote(python, ZYGOTE_SCRIPT, f"install-{len(waiting)}", Path(scratch), {}) as zygote:
                zygote.preload(waiting)
                asked_again: list[ModelSource] = []
                try:
                    zygote.wait_ready()
                except ZygoteDied as death:
                    blamed = [model.name for model in waiting if death.importing in (None, model.name)]
                    problems |= dict.fromkeys(blamed, one_line(death.reason))
                    asked_again = [
                        model for model in waiting if model.name not in blamed and model.name not in zygote.imports
                    ]
                for model in waiting:
                    for outcome in (zygote.imports.get(None), zygote.imports.get(model.name)):
                        if outcome is not None and outcome.problem is not None:
                            problems.setdefault(model.name, one_line(outcome.problem))
                waiting = [model for model in asked_again if model.name not in problems]
    return problems


def torchvision_mismatches(python: Path) -> bool:
    """Whether torchvision's compiled operators are built for another torch than that of the interpreter."""
    try:
        ended = subprocess.run(
            [str(python), "-P", str(TORCHVISION_CHECK)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TORCHVISION_TIMEOUT_S,
            env=environment.worker_variables(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == TORCHVISION_MISMATCH_EXIT


def pip_command(interpreter: Interpreter, findings: Iterable[Finding]) -> list[str]:
    """The command that installs what the models miss; empty if that is nothing. Raises BenchmarkError without a pip."""
    wanted: dict[str, Requirement] = {}
    for one in (one for finding in findings for one in finding.missing):
        requirement = wanted.setdefault(one.name, Requirement(one.name))
        requirement.specifier &= one.requirement.specifier
    if not wanted:
        return []
    tested = _tested_versions(interpreter.distributions)
    for name, requirement in wanted.items():
        if name in tested and requirement.specifier.contains(tested[name]):
            requirement.specifier = SpecifierSet(f"=={tested[name]}")
    # Named in the version that is there, they count as installed, and pip may choose no other.
    kept = [
        f"{name}=={interpreter.distributions[name]}" for name in interpreter.kept if name in interpreter.distributions
    ]
    return [*_pip(interpreter), "install", *(str(wanted[name]) for name in sorted(wanted)), *dict.fromkeys(kept)]


def _pip(interpreter: Interpreter) -> list[str]:
    """The interpreter's own pip, or ours where it has none, as in an environment made by uv."""
    python = str(interpreter.python)
    if "pip" in interpreter.distributions:
        return [python, "-m", "pip"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", python]
    raise BenchmarkError(f"{python}: has no pip to install with; add it: {python} -m ensurepip")


def _tested_versions(distributions: Mapping[str, str]) -> dict[str, str]:
    """The versions of the clone's constraints.txt, less what is compiled for another torch than the interpreter's."""
    clone = environment.PACKAGE.parent
    if not (clone / "pyproject.toml").is_file() or not (clone / "constraints.txt").is_file():
        return {}  # this package is installed from a wheel
    lines = (clone / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.partition("#")[0].strip().partition("==") for line in lines]
    tested = {environment.normalised_name(name): version for name, _, version in pins if version}
    torch = tested.get("torch")
    if torch is not None and unmet([f"torch=={torch}"], {"torch": torch, **distributions}):
        return {name: version for name, version in tested.items() if name not in COMPILED_TOGETHER}
    return tested


def _run(command: Sequence[str]) -> bool:
    """Run pip, which speaks for itself; True if it did what it was asked."""
    console.print(f"$ {shlex.join(command)}", markup=False)
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise BenchmarkError(f"{command[0]}: cannot be started: {error.strerror}") from error
    if code != 0:
        console.print(f"pip could not install it (exit {code}); its last lines say why", style="red")
    return code == 0


def _print(findings: Sequence[Finding], python: Path) -> None:
    table = Table("model", "can run", "why")
    for finding in findings:
        answer = Text(f"on {', '.join(finding.devices)}", "green") if finding.can_run else Text("no", "red")
        table.add_row(finding.model, answer, "; ".join(finding.problems) or finding.note)
    print_table(table)
    console.print(
        f"{sum(finding.can_run for finding in findings)} of {len(findings)} can run in {python}", markup=False
    )
