"""What of a suite's grid a run measures, and why the rest is left out.

Options replace the suite's size, backends, precisions, batch sizes and kinds of test; then filters, tiers and
exclusions narrow the product.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import get_args

from torchbenchmark.backends import BACKENDS
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import MAX_BATCH_SIZE, PRECISIONS, PRESETS, TESTS, Experiment
from torchbenchmark.registry import Registry, Suite, Tier, load_suite, matches, select, suite_names

DEFAULT_BATCH = "default"  # the model's own batch size, as in a suite's YAML


@dataclass(frozen=True)
class GridOptions:
    """Each empty field leaves to the suite what it names. A value that does not exist is refused with those that do."""

    tests: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    batch_sizes: tuple[str | int, ...] = ()
    tiers: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # globs
    presets: tuple[str, ...] = ()  # one at most: a suite has one size

    def __post_init__(self) -> None:
        for option, given, known in (
            ("test", self.tests, TESTS),
            ("backend", self.backends, tuple(BACKENDS)),
            ("precision", self.precisions, PRECISIONS),
            ("preset", self.presets, PRESETS),
        ):
            for value in given:
                if value not in known:
                    raise BenchmarkError(f"--{option} {value!r}: use {', '.join(known)}")
        for part in fields(self):  # what is given twice counts once
            object.__setattr__(self, part.name, tuple(dict.fromkeys(getattr(self, part.name))))

    @property
    def words(self) -> tuple[str, ...]:
        """The options as they stand in the header of a run, which is no whole night if there are any."""
        return tuple(
            f"--{option} {value}"
            for option, given in (
                ("test", self.tests),
                ("backend", self.backends),
                ("precision", self.precisions),
                ("batch-size", self.batch_sizes),
                ("tier", self.tiers),
                ("exclude", self.exclude),
                ("preset", self.presets),
            )
            for value in given
        )

    def sized(self, suite: Suite) -> Suite:
        """The suite at the size that the options ask for: the same tests at another one, of which none is left out."""
        return suite.model_copy(update={"preset": self.presets[0]}) if self.presets else suite

    def applied_to(self, suite: Suite) -> Suite:
        """The suite with the grid that the options ask for."""
        changes = {
            "tests": self.tests,
            "backends": self.backends,
            "precisions": self.precisions,
            "batch_sizes": self.batch_sizes,
        }
        return self.sized(suite).model_copy(update={field: values for field, values in changes.items() if values})

    def why_not(self, experiment: Experiment) -> str | None:
        """Which option leaves out an experiment of the suite's own grid, or None."""
        size = DEFAULT_BATCH if experiment.batch_size is None else experiment.batch_size
        for option, given, value in (
            ("test", self.tests, experiment.test),
            ("backend", self.backends, experiment.backend),
            ("precision", self.precisions, experiment.precision),
            ("batch-size", self.batch_sizes, size),
        ):
            if given and value not in given:
                return f"not asked for: --{option} {', '.join(map(str, given))}"
        return None


def kinds_and_globs(values: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values of --test: `train` and `eval` are kinds of test, everything else is a glob over ids and models."""
    values = tuple(values)
    return tuple(one for one in values if one in TESTS), tuple(one for one in values if one not in TESTS)


def parse_batch_size(text: str) -> str | int:
    """A value of --batch-size: a number of items, or "default"."""
    if text == DEFAULT_BATCH:
        return text
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:12]) <= MAX_BATCH_SIZE:
        raise BenchmarkError(f"--batch-size {text[:20]!r}: use a number from 1 on, or {DEFAULT_BATCH}")
    return int(text)


@dataclass(frozen=True)
class Choice:
    """The experiments of a run, and those of the suite's or the asked-for grid that are left out: why."""

    tests: tuple[Experiment, ...]
    left_out: dict[Experiment, str]


def choose(
    registry: Registry, suite: Suite, device: str, filters: Sequence[str] = (), options: GridOptions | None = None
) -> Choice:
    """Apply filters (globs over ids and models; any may match) and options to the suite's grid on one device.

    Raises BenchmarkError for a glob or a tier that matches nothing, and if nothing is left.
    """
    options = options or GridOptions()
    for pattern in filters:
        _require_in_suite(pattern, registry, suite)
    asked_for = registry.experiments(options.applied_to(suite), [device])
    left_out = {
        experiment: reason
        for experiment in registry.experiments(options.sized(suite), [device])
        if (reason := options.why_not(experiment)) is not None
    }
    filtered = set(select(asked_for, filters))
    in_tiers = set(_of_tiers(asked_for, registry, suite, options.tiers))
    excluded = {experiment: pattern for pattern in options.exclude for experiment in select(asked_for, [pattern])}
    tests = []
    for experiment in asked_for:
        if experiment not in filtered:
            left_out[experiment] = f"no filter matches it: {', '.join(filters)}"
        elif experiment not in in_tiers:
            left_out[experiment] = f"in no tier that was asked for: --tier {', '.join(options.tiers)}"
        elif experiment in excluded:
            left_out[experiment] = f"--exclude {excluded[experiment]}"
        else:
            tests.append(experiment)
    if not tests:
        raise BenchmarkError(
            f"suite {suite.name}: the filters and {' '.join(options.words)} leave no test; give fewer of them"
        )
    return Choice(tuple(tests), left_out)


def _require_in_suite(pattern: str, registry: Registry, suite: Suite) -> None:
    """Raise for a model that there is and the suite does not have: who names it means the model, not a wrong name."""
    if pattern not in registry.models or pattern in suite.models:
        return
    having = [name for name in suite_names() if pattern in load_suite(name).models]
    how = f"--suite {' or --suite '.join(having)}" if having else "--suite with a YAML of your own"
    raise BenchmarkError(f"suite {suite.name} does not have the model {pattern}; ask for one that does: {how}")


def _of_tiers(
    experiments: Sequence[Experiment], registry: Registry, suite: Suite, tiers: Sequence[str]
) -> Iterable[Experiment]:
    """A tier of the suite's own is what its globs match; else one by duration is of the models that say so of
    themselves. A suite may give one of its own the name of a duration, and means its own then."""
    if not tiers:
        return experiments
    found = set()
    for tier in tiers:
        if tier in suite.tiers:
            mine = {one for one in experiments if any(matches(one, pattern) for pattern in suite.tiers[tier])}
        elif tier in get_args(Tier):
            mine = {one for one in experiments if registry.model(one.model).metadata.tier == tier}
        else:
            own = ", ".join(suite.tiers) or "none"
            raise BenchmarkError(
                f"--tier {tier!r}: there is no such tier; suite {suite.name} has {own} (`tiers` in its YAML), and by "
                f"duration there are {', '.join(get_args(Tier))} (`tier` in a model's metadata.yaml)"
            )
        if not mine:
            raise BenchmarkError(f"--tier {tier!r}: no test of suite {suite.name} is in it")
        found |= mine
    return found
