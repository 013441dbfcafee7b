"""Holds a test of a model against every contract: in a child of a zygote, or in a test of this project."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchbenchmark.contracts import CONTRACTS
from torchbenchmark.contracts.contract import Case, Declared, NotJudged
from torchbenchmark.contracts.global_state import settings_kept
from torchbenchmark.worker.loading import import_model
from torchbenchmark.worker.outcome import classify, first_line
from torchbenchmark.worker.timing import synchronizer

_FATAL = ("oom", "accuracy_fail")


@dataclass(frozen=True)
class Verdict:
    """One contract: kept if there is neither a breach nor a reason why it was not judged."""

    contract: str
    demand: str
    breaches: tuple[str, ...] = ()
    not_judged: str = ""


def check(
    spec: dict[str, Any], model_name: str, folder: str, began: float, enter: Callable[[str], None]
) -> dict[str, Any]:
    """The verdicts of one test as plain data, ready for JSON. Takes what measure() takes; `spec["contracts"]` has what
    the metadata declares, and `enter(stage)` is called as each contract begins."""
    enter("device")
    torch.set_num_threads(spec["threads"])
    torch.zeros(1, device=spec["device"])
    synchronizer(spec["device"])()
    enter("build")
    case = Case(
        import_model(model_name, folder).Model,
        spec["test"],
        spec["device"],
        spec["preset"],
        spec["batch_size"],
        Declared(**spec["contracts"]),
    )
    with settings_kept():
        case.build()  # what the model cannot do it says here
    verdicts = judge(case, enter)
    return {
        "status": "ok",
        "reason": "",
        "detail": "",
        "verdicts": [
            {
                "contract": one.contract,
                "demand": one.demand,
                "breaches": list(one.breaches),
                "not_judged": one.not_judged,
            }
            for one in verdicts
        ],
    }


def judge(case: Case, enter: Callable[[str], None] = lambda _: None) -> list[Verdict]:
    """The verdict of each contract that is about such a test. Memory that runs out is raised."""
    verdicts: list[Verdict] = []
    unsettled: set[str] = set()  # contracts that are broken, and those that presume one of them
    for contract in CONTRACTS:
        if case.test not in contract.tests:
            continue
        enter(contract.name)
        if presumed := [name for name in contract.presumes if name in unsettled]:
            unsettled.add(contract.name)
            verdicts.append(Verdict(contract.name, contract.demand, not_judged=f"{presumed[0]} comes first"))
            continue
        torch.manual_seed(0)
        try:
            with settings_kept():
                breaches, not_judged = tuple(contract.breaches(case)), ""
        except NotJudged as reason:
            breaches, not_judged = (), str(reason)
        except Exception as error:
            if classify(error, contract.name)[0] in _FATAL:
                raise
            breaches, not_judged = (_raised(error),), ""
        if breaches:
            unsettled.add(contract.name)
        verdicts.append(Verdict(contract.name, contract.demand, breaches, not_judged))
    return verdicts


def _raised(error: Exception) -> str:
    """Where in the model, rather than in torch, it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "torchbenchmark" in frame.filename and "/contracts/" not in frame.filename]
    where = f" in {own[-1].filename.rpartition('/models/')[2]}, line {own[-1].lineno}" if own else ""
    return f"raised {type(error).__name__}{where}: {first_line(error)[:300]}"
