"""An iteration copies nothing between host and device. Without a GPU this is seen on the device `meta`."""

import torch

from torchbenchmark.contracts.contract import Case, Contract, NotJudged
from torchbenchmark.contracts.watching import watched, watched_here
from torchbenchmark.contracts.wording import counted, listed, named
from torchbenchmark.worker.outcome import first_line

DIRECTIONS = {"Memcpy HtoD": "from the host to the device", "Memcpy DtoH": "from the device to the host"}


def breaches(case: Case) -> list[str]:
    if case.device != "cpu":
        return _told(watched_here(case).copies, case) or _profiled(case)
    try:
        seen = watched(case, "meta", case.preset)
    except (NotImplementedError, RuntimeError) as error:
        raise NotJudged(
            f"the model cannot be built on the device meta: check it with --device cuda ({first_line(error)})"
        ) from error
    if seen.copies:
        return _told(seen.copies, case)
    if seen.problem is not None and not seen.elsewhere and not seen.reads:
        raise NotJudged(
            f"an iteration on the device meta ended with {named(seen.problem)}: check it with --device cuda"
        )
    return []


def _told(copies: dict[str, int], case: Case) -> list[str]:
    if case.declared.waits_for_device:
        copies = {text: number for text, number in copies.items() if not text.endswith(("to cpu", "to host"))}
    if not copies:
        return []
    return [f"an iteration copies between host and device: {counted(copies)}; lay it on the device in setup()"]


def _profiled(case: Case) -> list[str]:
    """What the profiler has of a GPU's own copies, which tells of those inside operators too."""
    model = case.build()
    for _ in range(3):
        model.invoke()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        model.invoke()
        torch.cuda.synchronize()
    names = [event.name for event in profile.events()]
    if not any("Memcpy" not in name and "Memset" not in name for name in names):
        raise NotJudged("the profiler recorded no kernel of this GPU")
    allowed = {"Memcpy DtoH"} if case.declared.waits_for_device else set()
    seen = [
        f"{sum(name.startswith(kind) for name in names)} {told}"
        for kind, told in DIRECTIONS.items()
        if kind not in allowed and any(name.startswith(kind) for name in names)
    ]
    return [f"the GPU copies in an iteration: {listed(seen)}; lay it on the device in setup()"] if seen else []


CONTRACT = Contract("copies", "an iteration copies nothing between host and device", breaches)
