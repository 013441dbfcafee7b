"""An iteration reads no value back: on a GPU the host would wait for the device there, and the device for the host."""

import contextlib
from collections.abc import Mapping

import torch

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched, watched_here
from torchbenchmark.contracts.wording import counted


def breaches(case: Case) -> list[str]:
    reads = _reads(case)
    if case.declared.waits_for_device is not None:
        if case.device == "cuda" and not reads and _wait(case) is None:  # the CPU shows only some of what waits
            return ["metadata declares `waits_for_device`, and nothing is read back; take it out"]
        return []
    if reads:
        return [
            f"an iteration reads values back to decide what to do: {counted(reads)}; compute with masks and where(), "
            f"or declare why it must: `waits_for_device: {{{case.test}: …}}`"
        ]
    if case.device == "cuda" and (wait := _wait(case)) is not None:
        return [f"an iteration makes the host wait for the device: {wait}"]
    return []


def _reads(case: Case) -> Mapping[str, int]:
    """The values that are read back. On the CPU all look alike, those too that never leave the host: none is one of the
    device if an iteration gets by without them on the device meta, where there are none."""
    reads = watched_here(case).reads
    if case.device == "cpu" and reads:
        with contextlib.suppress(NotImplementedError, RuntimeError):  # it cannot be built there
            without_values = watched(case, "meta", case.preset)
            if without_values.problem is None and not without_values.reads:
                return {}
    return reads


def _wait(case: Case) -> str | None:
    """What torch says of an iteration in which it may not wait; None if that ends well."""
    model = case.build()
    for _ in range(2):
        model.invoke()
    torch.cuda.set_sync_debug_mode("error")
    try:
        model.invoke()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return str(error).splitlines()[0][:200]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return None


CONTRACT = Contract(
    "waits", "an iteration reads nothing back from the device unless `waits_for_device` says why", breaches
)
