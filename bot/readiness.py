"""What a configuration names, looked up before a night begins: a misspelt name must not cost the hours of measuring.

The night's verdict does not hang on it: a reference that goes bad later is told by the score, and stops nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from baselines.policy import load_policy
from baselines.store import require_location
from bot.config import NightlyConfig
from bot.errors import BotError
from score.inputs import find_reference
from torchbenchmark.canaries.measuring import FEWEST, planned_canaries
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.errors import SentinelError
from torchbenchmark.formats import read_latencies
from torchbenchmark.registry import Registry, load_suite


class NotReady(BotError):
    """What a key of the configuration names is not there or not fit."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"`{key}` in the configuration: {problem}")
        self.key, self.problem = key, problem


def require_ready(config: NightlyConfig) -> None:
    """Raises a SentinelError if the suite, a model of it, the policy or the reference is not there or not fit."""
    with _told_of("suite"):
        suite = load_suite(config.suite)
    planned = {experiment.id for experiment in Registry(config.models).experiments(suite, [config.device])}
    if config.canary is not None:
        _require_canaries(config.canary, config, suite.name)
    with _told_of("policy"):
        load_policy(config.policy).for_device(config.device)
    if config.reference is not None:
        _require_reference(config.reference, planned, f"suite {suite.name} on {config.device}")


def require_store(location: str) -> None:
    """Raises NotReady if that names no store. Whether it can be reached is told where it is read."""
    with _told_of("store"):
        require_location(location)


@contextmanager
def _told_of(key: str) -> Iterator[None]:
    """Says of a mistake which key has led to it."""
    try:
        yield
    except SentinelError as problem:
        raise NotReady(key, str(problem)) from problem


def _require_canaries(canary: CanarySettings, config: NightlyConfig, measured: str) -> None:
    """Only the names: whether the frozen build can be had is told when it is measured, and stops no night."""
    suite = load_suite(canary.suite)
    if suite.name == measured:
        raise NotReady(
            "canary.suite",
            f"{suite.name} is the suite of the nightly too, whose nights it would be stored among; name another",
        )
    planned = planned_canaries(canary, config.device, config.models)
    if len(planned) < FEWEST:
        raise NotReady(
            "canary.suite",
            f"{suite.name} has {len(planned)} tests on {config.device}, and the mean over canaries needs {FEWEST}; "
            "add models to it",
        )


def _require_reference(reference: str, planned: set[str], of_what: str) -> None:
    with _told_of("reference"):
        times = read_latencies(find_reference(reference))
    if not planned & times.keys():
        example = min(times, default="none")
        raise NotReady(
            "reference",
            f"{reference} has none of the {len(planned)} tests of {of_what} "
            f"(it has {example}, planned is {min(planned)}), so nothing could be scored against it; name another, "
            "or leave the key out",
        )
