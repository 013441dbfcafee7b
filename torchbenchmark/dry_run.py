"""What a run would do, told without starting anything: no interpreter, no GPU, no torch.

So it cannot know what only the build tells: whether a distribution that a model needs is installed there.
"""

from dataclasses import dataclass
from enum import StrEnum

from torchbenchmark.grid import choose
from torchbenchmark.planning import RunRequest, of_this_shard
from torchbenchmark.registry import Registry


class Fate(StrEnum):
    """The second and third get a record with their reason; what is left out gets none."""

    MEASURED = "measured"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Outlook:
    test: str
    fate: Fate
    reason: str = ""


def foresee(request: RunRequest) -> list[Outlook]:
    """Every test of the suite's grid and of what the options add to it; those that are left out come last."""
    registry = Registry(request.model_folders)
    choice = choose(registry, request.suite, request.device, request.selection, request.options)
    here, elsewhere = of_this_shard(choice.tests, request)
    found = []
    for experiment in here:
        if reason := request.suite.skip_reason(experiment):
            found.append(Outlook(experiment.id, Fate.SKIPPED, reason))
        elif reason := registry.model(experiment.model).unsupported_reason(experiment):
            found.append(Outlook(experiment.id, Fate.UNSUPPORTED, reason))
        else:
            found.append(Outlook(experiment.id, Fate.MEASURED))
    found += [Outlook(experiment.id, Fate.LEFT_OUT, "measured by another shard") for experiment in elsewhere]
    found += [Outlook(experiment.id, Fate.LEFT_OUT, reason) for experiment, reason in choice.left_out.items()]
    return found
