"""Brings up the zygotes of a run: each imports what its round needs, and only one that can be forked is handed out.

Those of the next rounds import beside the first one, so that the machine's CPUs share the work, and are then idle until
their turn: nothing may start while something is timed (DESIGN 3.2).
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchbenchmark import environment
from torchbenchmark.experiment import Experiment
from torchbenchmark.isolation import ModelSource, Zygote, ZygoteDied
from torchbenchmark.places import Place
from torchbenchmark.records import Status
from torchbenchmark.registry import Registry

ZYGOTE_SCRIPT = environment.PACKAGE / "worker" / "zygote.py"
SIDE_BY_SIDE = 3  # a night's usual rounds; each holds the imports of its models in memory


class Nursery:
    """The zygotes of one worker of a run. Leaving the context ends those that were not handed out."""

    def __init__(
        self,
        registry: Registry,
        interpreter: environment.Interpreter,
        *,
        scratch: Path,
        variables: Mapping[str, str],
        note: Callable[[str], None],
        is_decided: Callable[[str], bool],
        decide: Callable[[str, Status, str], None],
        place: Place,
        worker: str = "",
        stopping: threading.Event,
        spawn: bool = False,
        dynamo: bool = True,
    ) -> None:
        """`decide(test, status, reason)` is told of a test whose import went wrong, and `is_decided(test)` is true of
        it from then on. `variables` are set in the environment of the zygotes; `worker` tells theirs from others'.
        `dynamo` tells whether any of the run's tests imports it: its zygotes do so then, for all their children."""
        self.registry = registry
        self.interpreter = interpreter
        self.scratch = scratch
        self.variables = dict(variables)
        self.note = note
        self.is_decided = is_decided
        self.decide = decide
        self.place = place
        self.worker = worker
        self.stopping = stopping
        self.spawn_all = spawn
        self.dynamo = dynamo
        self.spawned_models: set[str] = set()  # their import leaves a process that cannot be forked
        self._waiting: dict[int, Zygote] = {}  # round -> a zygote that is ready for it
        self._started = 0

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_: object) -> None:
        self._end(list(self._waiting))

    def spawns(self, model: str) -> bool:
        """True if tests of this model are measured in fresh interpreters."""
        return self.spawn_all or model in self.spawned_models

    def begin(self, number: int, tests: Sequence[str]) -> None:
        """Start the zygote of a round without waiting for it, so that another nursery's can import beside it."""
        if number not in self._waiting:
            self._bring_up({number: tests})

    def zygote(self, number: int, tests: Sequence[str], later: Mapping[int, Sequence[str]]) -> Zygote | None:
        """The zygote for round `number`, with the models of `tests` imported; None if no test is left for it.

        `later` holds the tests of the rounds to come. A model whose import fails, kills or hangs a zygote, or starts
        threads in it, harms no other model. The caller ends the zygote.
        """
        while self._models(tests):
            if number not in self._waiting or not self._waiting[number].is_alive():
                self._end([number])
                nearest = {after: later[after] for after in sorted(later)[: SIDE_BY_SIDE - 1]}
                self._bring_up({number: tests, **nearest})
            zygote = self._waiting.pop(number)
            try:
                zygote.wait_ready()
                self._wait_for_the_others()
            except ZygoteDied as death:
                zygote.end()
                self._blame_import(death, tests)
                continue
            except BaseException:
                zygote.end()
                raise
            if self._accept_imports(zygote, tests):
                return zygote
            zygote.end()
        return None

    def _bring_up(self, rounds: Mapping[int, Sequence[str]]) -> None:
        """Start the zygotes of those rounds that have none; their imports run side by side."""
        for number, tests in rounds.items():
            if number in self._waiting or not self._models(tests):
                continue
            zygote = Zygote(
                Path(self.interpreter.build.interpreter),
                ZYGOTE_SCRIPT,
                f"r{number}{self.worker}z{self._started}",
                self.scratch,
                {**self.variables, **self.place.variables},
                cpus=self.place.cpus,
                stopping=self.stopping,
            )
            self._started += 1
            self._waiting[number] = zygote
            models = [model for model in self._models(tests) if not self.spawns(model.name)]
            zygote.preload(models, self.dynamo)

    def _wait_for_the_others(self) -> None:
        """Wait until nothing imports any more. What went wrong for a later round shows again when its turn comes."""
        for number, zygote in list(self._waiting.items()):
            ready = False
            with contextlib.suppress(ZygoteDied):
                zygote.wait_ready()
                ready = all(outcome.problem is None and outcome.forkable for outcome in zygote.imports.values())
            if not ready:
                self._end([number])

    def _end(self, rounds: Sequence[int]) -> None:
        for number in rounds:
            if (zygote := self._waiting.pop(number, None)) is not None:
                zygote.end()

    def _models(self, tests: Sequence[str]) -> list[ModelSource]:
        names = sorted({Experiment.parse(test).model for test in tests if not self.is_decided(test)})
        return [ModelSource(name, self.registry.model(name).folder) for name in names]

    def _undecided(self, tests: Sequence[str], model: str | None = None) -> list[str]:
        """Those of `tests` without a record, of one model or of all."""
        return [test for test in tests if not self.is_decided(test) and model in (None, Experiment.parse(test).model)]

    def _blame_import(self, death: ZygoteDied, tests: Sequence[str]) -> None:
        status = Status.TIMEOUT if "did not end" in death.reason else Status.CRASH
        for test in self._undecided(tests, death.importing):
            self.decide(test, status, f"importing {death.importing or 'torch'} ended the zygote: {death.reason}")

    def _accept_imports(self, zygote: Zygote, tests: Sequence[str]) -> bool:
        """Record failed imports; False if the zygote must be started again without models that spoilt it."""
        base = zygote.imports[None]
        if base.problem is not None:
            for test in self._undecided(tests):
                self.decide(test, Status.ERROR, f"the build's torch does not import: {base.problem}")
            return False
        if not base.forkable and not self.spawn_all:
            self.note(f"importing torch alone {base.why_not_forkable} in this build: all tests are spawned")
            self.spawn_all = True
            return False
        spoilt = False
        for model, outcome in zygote.imports.items():
            if model is None:
                continue
            if outcome.problem is not None:
                for test in self._undecided(tests, model):
                    self.decide(test, Status.ERROR, f"the model does not import: {outcome.problem}")
            elif not outcome.forkable:
                self.spawned_models.add(model)
                self.note(f"importing {model} {outcome.why_not_forkable}: it is spawned, not forked")
                spoilt = True
        return not spoilt
