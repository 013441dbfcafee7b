"""Channels of compiled tests: `compile_time_cold`, `compile_time_warm`, `graphs`, `graph_breaks`, `recompiles` and
`cudagraph_skips`: what Dynamo counted from the start of the process to the end of its timed section.
"""

from torchbenchmark.worker import compilation
from torchbenchmark.worker.timing import Timed

_COMPILE_TIME = {"cold": "compile_time_cold", "warm": "compile_time_warm"}  # a process that fills a cache has neither


def measure(timed: Timed) -> dict[str, list[float]]:
    """Nothing where Dynamo compiled nothing: jit and export do without it. Reasons go to `timed.reasons`."""
    if compilation.compilations() == 0:
        return {}
    timed.reasons |= {
        "graph_breaks": compilation.graph_break_reasons(),
        "recompiles": compilation.recompile_reasons(),
    }
    channels = {
        "graphs": [float(compilation.graphs())],
        "graph_breaks": [float(compilation.graph_breaks())],
        "recompiles": [float(compilation.recompilations())],
        "cudagraph_skips": [float(compilation.cudagraph_skips())],
    }
    if (name := _COMPILE_TIME.get(timed.cache_mode)) is not None:
        channels[name] = [compilation.compile_seconds()]
    return channels
