"""The command `check-models`: each test of a model is held against the contracts, as a child of a zygote."""

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from torchbenchmark import environment
from torchbenchmark.builds.provide import named_build
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import PRESETS, TESTS, Experiment
from torchbenchmark.foreign_text import one_line
from torchbenchmark.isolation import ChildOutcome, ModelSource, Zygote, ZygoteDied
from torchbenchmark.nursery import Nursery
from torchbenchmark.places import Place
from torchbenchmark.planning import missing_requirement
from torchbenchmark.records import Status
from torchbenchmark.registry import Metadata, Registry, load_suite
from torchbenchmark.terminal import EXIT_CLEAN, EXIT_REGRESSION, console
from torchbenchmark.yaml_files import first_problem

THREADS = 1  # results are compared to the bit


class Verdict(BaseModel):
    """What the child says of one contract."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    contract: str
    demand: str
    breaches: tuple[str, ...]
    not_judged: str


@dataclass(frozen=True)
class Checked:
    """What came of one test: the verdicts, or why there are none."""

    test: str
    verdicts: tuple[Verdict, ...]
    status: Status = Status.OK
    reason: str = ""

    @property
    def fate(self) -> str:
        if self.status is not Status.OK:
            return str(self.status)
        return "broken" if any(one.breaches for one in self.verdicts) else "kept"


def register(app: typer.Typer) -> None:
    app.command("check-models")(check_models)


def check_models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL...]", help="Models (default: all, or those of --suite).")
    ] = None,
    models: Annotated[
        list[Path] | None, typer.Option("--models", help="A further folder of models (may be repeated).")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="The models, tests and preset of a suite: its name, or the path of its YAML.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    preset: Annotated[
        str | None, typer.Option(help="full, head or tiny (default: that of --suite, or tiny if the model has it).")
    ] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="train or eval (default: both).")] = None,
    python: Annotated[
        str | None, typer.Option(help="The build's interpreter, or an address as of `build` (default: this one).")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which the process of a test is ended.")] = 600.0,
    memory_limit: Annotated[
        int | None, typer.Option(help="MiB of memory after which a test is ended (default: 90 % of the machine).")
    ] = None,
) -> int:
    """Check that models do the work they claim: every contract, with what was seen where one is broken.

    Exit code 0: all are kept; 1: one is broken, or a test failed; 2: bad input.
    """
    from torchbenchmark.cli import device_named, end_children_on_termination  # which registers this command

    if not timeout > 0:
        raise BenchmarkError(f"--timeout {timeout:g}: must be more than 0 seconds")
    if memory_limit is not None and memory_limit < 1:
        raise BenchmarkError(f"--memory-limit {memory_limit}: must be at least 1")
    end_children_on_termination()
    registry = Registry(tuple(models or ()))
    planned = plan(registry, names or (), suite, device_named(device), preset, test or ())
    with named_build(python or str(environment.default_interpreter())) as build:
        interpreter = environment.inspect_interpreter(build)
        environment.machine_class(interpreter, device, THREADS)  # says so where the device is not there
        limit = memory_limit * 2**20 if memory_limit else int(0.9 * environment.memory_bytes())
        checker = Checker(registry, interpreter, timeout_s=timeout, memory_limit=limit)
        fates: Counter[str] = Counter()
        for checked in checker.check(planned):
            tell(checked)
            fates[checked.fate] += 1
    told = ", ".join(f"{number} {fate}" for fate, number in fates.items())
    console.print(f"{fates.total()} tests: {told}", markup=False)
    return EXIT_CLEAN if not set(fates) - {"kept", "unsupported"} else EXIT_REGRESSION


def plan(
    registry: Registry, names: Sequence[str], suite: str | None, device: str, preset: str | None, tests: Sequence[str]
) -> list[Experiment]:
    """The tests that are asked for. Raises BenchmarkError for a name that is not known."""
    for one in tests:
        if one not in TESTS:
            raise BenchmarkError(f"--test {one!r}: use {', '.join(TESTS)}")
    if preset is not None and preset not in PRESETS:
        raise BenchmarkError(f"--preset {preset!r}: use {', '.join(PRESETS)}")
    chosen = load_suite(suite) if suite is not None else None
    wanted = names or (chosen.models if chosen is not None else tuple(registry.models))
    planned = []
    for name in dict.fromkeys(wanted):
        metadata = registry.model(name).metadata
        size = preset or (chosen.preset if chosen is not None else None)
        if size is None:
            size = "tiny" if "tiny" in metadata.presets else metadata.presets[0]
        offered = chosen.tests if chosen is not None else metadata.tests
        kinds = tests or offered
        planned += [Experiment(name, kind, device, preset=size) for kind in dict.fromkeys(kinds)]
    return planned


def declared(metadata: Metadata, test: str) -> dict[str, Any]:
    """What the contracts are told of the metadata, as torchbenchmark.contracts.contract.Declared takes it."""
    return {
        "draws": metadata.draws.get(test, ()),
        "waits_for_device": metadata.waits_for_device.get(test),
        "loss_need_not_fall": metadata.loss_need_not_fall,
        "untrained": metadata.untrained,
        "deterministic": metadata.deterministic,
        "rtol": metadata.tolerance.rtol,
        "atol": metadata.tolerance.atol,
        "presets": metadata.presets,
    }


class Checker:
    """Checks tests one at a time, each in a child of a zygote that has imported their models."""

    def __init__(
        self, registry: Registry, interpreter: environment.Interpreter, *, timeout_s: float, memory_limit: int
    ) -> None:
        self.registry = registry
        self.interpreter = interpreter
        self.timeout_s = timeout_s
        self.memory_limit = memory_limit

    def check(self, planned: Sequence[Experiment]) -> Iterator[Checked]:
        """Each planned test, in order, when it is decided; those that no process is needed for come first."""
        decided: dict[str, Checked] = {}

        def decide(test: str, status: Status, reason: str) -> None:
            decided[test] = Checked(test, (), status, one_line(reason))

        experiments = {experiment.id: experiment for experiment in planned}
        for test, experiment in experiments.items():
            entry = self.registry.model(experiment.model)
            reason = entry.unsupported_reason(experiment) or missing_requirement(
                self.registry, experiment, self.interpreter
            )
            if reason is not None:
                decide(test, Status.UNSUPPORTED, reason)
        told: set[str] = set()
        with (
            tempfile.TemporaryDirectory(prefix="torchbench-check-") as scratch,
            self._nursery(Path(scratch), decided, decide) as nursery,
        ):
            while True:
                waiting = [test for test in experiments if test not in decided]
                zygote = nursery.zygote(1, waiting, {}) if waiting else None
                yield from (one for test, one in decided.items() if test not in told)
                told |= set(decided)
                if zygote is None:
                    return
                with zygote:
                    for test in waiting:
                        if test in decided:
                            continue
                        checked, lost = self._check_one(nursery, zygote, experiments[test])
                        decided[test] = checked
                        told.add(test)
                        yield checked
                        if lost:
                            break  # the others get a new one

    def _nursery(
        self, scratch: Path, decided: dict[str, Checked], decide: Callable[[str, Status, str], None]
    ) -> Nursery:
        return Nursery(
            self.registry,
            self.interpreter,
            scratch=scratch,
            variables={},
            note=lambda text: console.print(f"note: {text}", markup=False, style="yellow"),
            is_decided=decided.__contains__,
            decide=decide,
            place=Place(0),
            stopping=threading.Event(),
        )

    def _check_one(self, nursery: Nursery, zygote: Zygote, experiment: Experiment) -> tuple[Checked, bool]:
        """What came of one test, and whether its zygote is lost."""
        entry = self.registry.model(experiment.model)
        spec = {
            "test": experiment.test,
            "device": experiment.device,
            "batch_size": experiment.batch_size,
            "preset": experiment.preset,
            "threads": THREADS,
            "contracts": declared(entry.metadata, experiment.test),
        }
        lost = False
        try:
            outcome = zygote.measure(
                ModelSource(experiment.model, entry.folder),
                spec,
                start_method="spawn" if nursery.spawns(experiment.model) else "fork",
                timeout_s=self.timeout_s,
                memory_limit=self.memory_limit,
            )
        except ZygoteDied as death:
            lost = True
            outcome = ChildOutcome(None, death.status, death.reason, "", 0.0)
        return _checked(experiment.id, outcome), lost


def _checked(test: str, outcome: ChildOutcome) -> Checked:
    """A child runs the code of a model: what it says is believed only where it can be read."""
    try:
        status = Status(outcome.status)
        verdicts = TypeAdapter(tuple[Verdict, ...]).validate_python((outcome.result or {}).get("verdicts", ()))
        if status is Status.OK and not verdicts:
            return Checked(test, (), Status.ERROR, "the child's result names no contract")
    except (ValidationError, ValueError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        return Checked(test, (), Status.ERROR, one_line(f"the child's result does not validate: {problem}"))
    return Checked(test, verdicts, status, one_line(outcome.reason))


def tell(checked: Checked) -> None:
    """One line for the test, and one for every contract that is broken or could not be judged."""
    kept = sum(not one.breaches and not one.not_judged for one in checked.verdicts)
    if checked.status is not Status.OK:
        style = "dim" if checked.status is Status.UNSUPPORTED else "red"
        console.print(f"{checked.test}: {checked.status}, {checked.reason}", markup=False, style=style)
        return
    style = "red" if checked.fate == "broken" else "green"
    console.print(f"{checked.test}: {kept} of {len(checked.verdicts)} contracts kept", markup=False, style=style)
    for one in checked.verdicts:
        for breach in one.breaches:
            console.print(f"  {one.contract} is broken ({one.demand}): {one_line(breach)}", markup=False)
        if one.not_judged:
            console.print(f"  {one.contract} is not judged: {one_line(one.not_judged)}", markup=False, style="yellow")
