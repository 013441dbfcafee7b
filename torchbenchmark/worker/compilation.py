"""What torch.compile has done in this process so far: how often, how long and why.

Dynamo times each compilation itself (`dynamo_timed`): one entry of "_compile.compile_inner" for each frame, with all
that its backend does for it, and one of "backward._backward_impl" for each backward graph, which is compiled when it is
first needed. Both names are the same in torch 2.9 to 2.14. All but `watch` and `compilations` are
asked only once something was compiled.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch._dynamo.utils import CompilationMetrics

_TIMED = ("_compile.compile_inner", "backward._backward_impl")
MOST_REASONS = 10
LONGEST_REASON = 200  # characters
_METRICS_KEPT = 10_000  # torch keeps 64 by default; a large model has more graphs


def watch(backend: str) -> float:
    """Get ready to count the compilations of a backend; returns the seconds that importing its compiler took.

    That is no compiling, and first_batch leaves imports out.
    """
    if (utils := _utils()) is not None:
        utils.set_compilation_metrics_limit(_METRICS_KEPT)
    began = time.monotonic()
    if backend.startswith("inductor"):
        importlib.import_module("torch._inductor.compile_fx")
    return time.monotonic() - began


def compilations() -> int:
    """How many frames and backward graphs were compiled, also those that Dynamo gave up."""
    utils = _utils()
    return 0 if utils is None else sum(len(utils.compilation_time_metrics.get(name, ())) for name in _TIMED)


def compile_seconds() -> float:
    return sum(sum(_utils().compilation_time_metrics.get(name, ())) for name in _TIMED)


def graphs() -> int:
    return _utils().counters["stats"]["unique_graphs"]


def graph_breaks() -> int:
    return sum(_utils().counters["graph_break"].values())


def graph_break_reasons() -> list[str]:
    """The most frequent reasons, each with how often it was met."""
    met = _utils().counters["graph_break"].most_common(MOST_REASONS)
    return [f"{count} x {_shortened(reason)}" for reason, count in met]


def recompilations() -> int:
    """How many frames were compiled again: those whose id "frame/time" says that it was not the first time."""
    return len(list(_recompiled()))


def recompile_reasons() -> list[str]:
    """What guard failed, of the last recompilations."""
    found = [
        _shortened(f"{metrics.co_name}: {metrics.recompile_reason or 'no reason given'}") for metrics in _recompiled()
    ]
    return found[-MOST_REASONS:]


def cudagraph_skips() -> int:
    return _utils().counters["inductor"]["cudagraph_skips"]


def _utils() -> Any:
    """Dynamo's records of this process; None as long as nothing has imported it, and so nothing is compiled."""
    return sys.modules.get("torch._dynamo.utils")


def _recompiled() -> Iterable[CompilationMetrics]:
    for metrics in _utils().get_compilation_metrics():
        compile_id = str(metrics.compile_id).rpartition("/")[2]
        # The backward graph of a frame has the id of its forward one: it is not compiled again.
        if compile_id.isdigit() and int(compile_id) > 0 and metrics.is_forward is not False and not metrics.is_runtime:
            yield metrics


def _shortened(reason: str) -> str:
    """The reason on one line, without the advice that Dynamo adds to it."""
    line = " ".join(reason.partition("\n  Hint:")[0].split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
