"""Which tests the words of a `/benchmark` mean: those of one suite, chosen without torch."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.config import NightlyConfig
from bot.github.commands.asked import Asked
from bot.github.commands.command import WrongUse
from bot.github.commands.grammar import closest
from torchbenchmark.experiment import Experiment
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.grid import GridOptions, choose
from torchbenchmark.quantity import counted
from torchbenchmark.registry import Registry, Suite, load_suite, matches, suite_names

MOST_NAMED = 30  # models in one sentence
LONGEST_ID = 200


@dataclass(frozen=True)
class Chosen:
    """`suite` is how the measuring job finds it: a name, or a path in the repository."""

    suite: str
    device: str
    tests: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]  # tests that were asked for and cannot be measured, and why


def chosen_tests(asked: Asked, config: NightlyConfig) -> Chosen:
    """Raises WrongUse, with what is valid, where the words mean no test, or too many."""
    default = config.pull_requests.suite or config.suite
    suites = {load_suite(default).name: default, **{name: name for name in suite_names()}}
    named, globs = _split_suite(asked.words, suites)
    where = default if named is None else suites[named]
    suite, registry = load_suite(where), Registry(config.models)
    device = asked.device or config.device
    options = GridOptions(tests=asked.modes, backends=asked.backends, precisions=asked.precisions)
    _require_known(globs, registry.experiments(options.applied_to(suite), [device]), suite, suites, registry)
    planned = choose(registry, suite, device, globs, options).tests
    left_out = {one.id: why for one in planned if (why := _why_not(one, suite, registry)) is not None}
    tests = tuple(one.id for one in planned if one.id not in left_out)
    if not tests:
        first, why = next(iter(left_out.items()))
        raise WrongUse(
            f"that means {counted(len(planned), 'test')}, none of which can be measured",
            f"name others; of {inline_code(first)} it is known: {inline_code(why)}",
        )
    if len(tests) > (most := config.pull_requests.most_tests):
        raise WrongUse(
            f"that means {len(tests)} tests of suite {inline_code(suite.name)}, and one request may have {most}",
            f"name some models, or one `mode=`. {_models_of(suite)}",
        )
    return Chosen(_found_again(where), device, tests, tuple(left_out.items()))


def _split_suite(words: Sequence[str], suites: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    named = [word for word in dict.fromkeys(words) if word in suites]
    if len(named) > 1:
        raise WrongUse(f"{', '.join(f'`{name}`' for name in named)} are suites, and a request is of one", "name one")
    return (named[0] if named else None), tuple(dict.fromkeys(word for word in words if word not in named))


def _require_known(
    globs: Sequence[str], planned: Sequence[Experiment], suite: Suite, suites: Iterable[str], registry: Registry
) -> None:
    for glob in globs:
        if len(glob) > LONGEST_ID:
            raise WrongUse(f"no test has a name of {len(glob)} characters", _models_of(suite))
        if not any(matches(experiment, glob) for experiment in planned):
            raise WrongUse(
                f"suite `{suite.name}` has no model and no test {inline_code(glob)} with these keys",
                _meant(glob, planned, suite, suites, registry),
            )


def _meant(glob: str, planned: Sequence[Experiment], suite: Suite, suites: Iterable[str], registry: Registry) -> str:
    if glob in registry.models and glob not in suite.models:
        having = [name for name in suite_names() if glob in load_suite(name).models]
        if having:
            return f"suite {' and '.join(f'`{name}`' for name in having)} has it: say `/benchmark {having[0]} {glob}`"
    known = [*SUBCOMMANDS, *suites, *suite.models, *(experiment.id for experiment in planned)]
    close = closest(glob, known)
    meant = f"did you mean `{close}`? " if close else ""
    return f"{meant}{_models_of(suite)}. The suites are {', '.join(f'`{name}`' for name in sorted(suites))}"


SUBCOMMANDS = ("status", "cancel", "help", "profile")


def _models_of(suite: Suite) -> str:
    shown = ", ".join(f"`{name}`" for name in suite.models[:MOST_NAMED])
    more = f" and {len(suite.models) - MOST_NAMED} more" if len(suite.models) > MOST_NAMED else ""
    return f"Its models are {shown}{more}"


def _why_not(experiment: Experiment, suite: Suite, registry: Registry) -> str | None:
    return suite.skip_reason(experiment) or registry.model(experiment.model).unsupported_reason(experiment)


def _found_again(suite: str) -> str:
    """A suite's path from where the command runs, which is the same folder of the repository in every job."""
    if not suite.endswith((".yaml", ".yml")):
        return suite
    relative = os.path.relpath(suite)
    return suite if relative.startswith("..") else Path(relative).as_posix()
