"""What a configuration names, looked up before a night begins: a misspelt name must not cost the hours of measuring.

The night's verdict does not hang on it: a reference that goes bad later is told by the score, and stops nothing.
"""

from baselines.policy import load_policy
from bot.config import NightlyConfig
from bot.errors import BotError
from score.inputs import find_reference
from torchbenchmark.canaries.measuring import FEWEST, planned_canaries
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.errors import SentinelError
from torchbenchmark.formats import read_latencies
from torchbenchmark.registry import Registry, load_suite


def require_ready(config: NightlyConfig) -> None:
    """Raises a SentinelError if the suite, a model of it, the policy or the reference is not there or not fit."""
    suite = load_suite(config.suite)
    planned = {experiment.id for experiment in Registry(config.models).experiments(suite, [config.device])}
    if config.canary is not None:
        _require_canaries(config.canary, config, suite.name)
    load_policy(config.policy).for_device(config.device)
    if config.reference is not None:
        _require_reference(config.reference, planned, f"suite {suite.name} on {config.device}")


def _require_canaries(canary: CanarySettings, config: NightlyConfig, measured: str) -> None:
    """Only the names: whether the frozen build can be had is told when it is measured, and stops no night."""
    suite = load_suite(canary.suite)
    if suite.name == measured:
        raise BotError(
            f"`canary.suite` in the configuration: {suite.name} is the suite of the nightly too, whose nights it would "
            "be stored among; name another"
        )
    planned = planned_canaries(canary, config.device, config.models)
    if len(planned) < FEWEST:
        raise BotError(
            f"`canary.suite` in the configuration: {suite.name} has {len(planned)} tests on {config.device}, and the "
            f"mean over canaries needs {FEWEST}; add models to it"
        )


def _require_reference(reference: str, planned: set[str], of_what: str) -> None:
    try:
        times = read_latencies(find_reference(reference))
    except SentinelError as problem:
        raise BotError(f"`reference` in the configuration: {problem}") from problem
    if not planned & times.keys():
        example = min(times, default="none")
        raise BotError(
            f"`reference` in the configuration: {reference} has none of the {len(planned)} tests of {of_what} "
            f"(it has {example}, planned is {min(planned)}), so nothing could be scored against it; name another, "
            "or leave the key out"
        )
