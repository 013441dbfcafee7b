"""An iteration is the same work each time, and a timed unit of it lasts long enough to be timed."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched_here
from torchbenchmark.contracts.wording import counted
from torchbenchmark.worker.timing import Timed, synchronizer

MIN_UNIT_S = 0.010
WARMUP_S = 0.2
UNITS = 50


def breaches(case: Case) -> list[str]:
    seen = watched_here(case)
    if not all(seen.operators):
        return ["an iteration calls no operator of torch; what it measures is Python alone, or a result that was kept"]
    first, *others = seen.operators
    if case.declared.waits_for_device is None:
        for number, other in enumerate(others, start=2):
            if other != first:
                differing = {
                    name: abs(other[name] - first[name]) for name in {*first, *other} if other[name] != first[name]
                }
                return [
                    f"iteration {number} is other work than iteration 1, by {counted(differing)}; do the same each time"
                ]
    return _too_short(case)


def _too_short(case: Case) -> list[str]:
    spec = {
        "device": case.device,
        "budget_s": 0.0,
        "warmup_cap_s": WARMUP_S,
        "min_unit_s": MIN_UNIT_S,
        "min_samples": 1,
    }
    timed = Timed(case.build(), synchronizer(case.device), spec)
    for _ in range(UNITS):
        wall, _ = timed.unit()
        if not timed._lengthen_unit(wall):
            return []
    return [f"{timed.inner_loops} iterations in a row last under {MIN_UNIT_S * 1e3:g} ms; let an iteration do the work"]


CONTRACT = Contract("timed unit", "each iteration is the same work, and a timed unit of them lasts 10 ms", breaches)
