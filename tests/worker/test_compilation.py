"""What Dynamo did, counted: with its backend `aot_eager`, which needs no compiler, unless caches are in question."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from torch._dynamo import utils

from torchbenchmark.worker import compilation
from torchbenchmark.worker.channels import SECTIONS, dynamo, timers
from torchbenchmark.worker.compile_caches import use_compile_caches
from torchbenchmark.worker.timing import Timed

SPEC = {
    "device": "cpu",
    "backend": "aot_eager",
    "budget_s": 0.01,
    "warmup_cap_s": 0.01,
    "min_unit_s": 0.0,
    "min_samples": 2,
    "compile_cache": {"mode": "cold", "folder": "unused"},
}


WITHOUT_LIMIT = torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=10_000)


@pytest.fixture(autouse=True)
def fresh():
    """As in a child that has compiled nothing yet."""
    torch._dynamo.reset()
    utils.counters.clear()
    utils.compilation_time_metrics.clear()
    utils.clear_compilation_metrics()
    compilation.watch("aot_eager")


class Compiled:
    batch_size = 1

    def __init__(self, function, *inputs) -> None:
        self.function = function
        self.inputs = inputs

    def invoke(self) -> tuple[torch.Tensor, ...]:
        return (self.function(*self.inputs),)


def compiled(function, **options):
    return torch.compile(function, backend="aot_eager", **options)


def timed(model, mode: str = "cold") -> Timed:
    return Timed(model, lambda: None, SPEC | {"compile_cache": {"mode": mode, "folder": "unused"}})


def test_one_whole_graph_is_one_graph_without_a_break():
    loop = timed(Compiled(compiled(lambda x: x.sin() + 1), torch.ones(3)))
    loop.warm_up()
    channels = dynamo.measure(loop)
    assert 0 < channels.pop("compile_time_cold")[0] < 60
    assert channels == {"graphs": [1.0], "graph_breaks": [0.0], "recompiles": [0.0], "cudagraph_skips": [0.0]}


def test_a_break_is_counted_and_its_reason_told_on_one_short_line():
    def broken(x):
        y = x.sin()
        print(end="")
        return y.cos()

    loop = timed(Compiled(compiled(broken), torch.ones(3)))
    loop.warm_up()
    channels = dynamo.measure(loop)
    assert channels["graph_breaks"] == [1.0]
    assert channels["graphs"] == [2.0]
    (reason,) = loop.reasons["graph_breaks"]
    assert reason.startswith("1 x ")
    assert "print" in reason
    assert "\n" not in reason and "Hint:" not in reason
    assert len(reason) < compilation.LONGEST_REASON + 10


def test_at_most_ten_reasons_are_told_the_most_frequent_first():
    utils.counters["graph_break"].update({f"reason {number}": number for number in range(1, 30)})
    told = compilation.graph_break_reasons()
    assert told == [f"{number} x reason {number}" for number in range(29, 19, -1)]


def test_a_recompilation_is_counted_with_the_guard_that_failed():
    function = compiled(lambda x: x + 1, dynamic=False)
    loop = timed(Compiled(function, torch.ones(3)))
    loop.warm_up()
    function(torch.ones(4))
    channels = dynamo.measure(loop)
    assert channels["recompiles"] == [1.0]
    assert channels["graphs"] == [2.0]
    assert "size mismatch" in loop.reasons["recompiles"][0]


def test_the_backward_graph_is_part_of_the_compile_time_and_no_recompilation():
    weight = torch.ones(3, requires_grad=True)
    product = compiled(lambda x: (x * weight).sum())
    forward = product(torch.ones(3))
    without, seconds = compilation.compilations(), compilation.compile_seconds()
    forward.backward()
    assert compilation.compilations() == without + 1, "the backward graph is compiled when it is first needed"
    assert compilation.compile_seconds() > seconds
    assert compilation.recompilations() == 0


def test_more_recompilations_than_torch_remembers_by_itself_are_counted():
    for number in range(70):
        utils._compilation_metrics.append(utils.CompilationMetrics(compile_id=f"0/{number}", co_name="forward"))
    assert compilation.recompilations() == 69, "the first time is none"
    assert len(compilation.recompile_reasons()) == compilation.MOST_REASONS


@pytest.mark.parametrize(
    ("mode", "channel"), [("cold", "compile_time_cold"), ("warm", "compile_time_warm"), ("fill", None)]
)
def test_compile_time_is_named_by_what_the_cache_held(mode, channel):
    loop = timed(Compiled(compiled(lambda x: x + 1), torch.ones(3)), mode)
    loop.warm_up()
    times = {name for name in dynamo.measure(loop) if name.startswith("compile_time")}
    assert times == ({channel} if channel else set())


def test_a_backend_without_dynamo_has_no_such_channels():
    loop = timed(Compiled(torch.sin, torch.ones(3)))
    loop.warm_up()
    assert dynamo.measure(loop) == {}
    assert loop.reasons == {}


def test_eager_tests_have_no_section_for_compilation():
    (section,) = [section for section in SECTIONS if section.measure is dynamo.measure]
    assert section.applies(SPEC)
    assert not section.applies(SPEC | {"backend": "eager"})


def test_a_timed_section_in_which_something_was_compiled_is_void_and_timed_again():
    steady, late = torch.ones(3), torch.ones(4)
    function = compiled(lambda x: x + 1, dynamic=False)

    class OnceLate(Compiled):
        calls = 0

        def invoke(self):
            self.calls += 1
            return (self.function(late if self.calls == 3 else steady),)

    model = OnceLate(function)
    model.invoke(), model.invoke()  # warm
    samples = timers.measure(timed(model))
    assert compilation.recompilations() == 1
    assert len(samples["latency"]) >= SPEC["min_samples"]
    assert max(samples["latency"]) < compilation.compile_seconds() / 2, "the void section's samples are gone"


def test_a_model_that_is_compiled_whenever_it_is_timed_is_an_error_with_count_and_guard():
    class Growing(Compiled):
        calls = 0

        def invoke(self):
            self.calls += 1
            return (self.function(torch.ones(self.calls)),)

    told = r"compiled \d+ times while it was timed, and \d+ times when timed again"
    with WITHOUT_LIMIT, pytest.raises(timers.Recompiled, match=told) as void:
        timers.measure(timed(Growing(compiled(lambda x: x + 1, dynamic=False))))
    assert "size mismatch" in str(void.value)


# A process as a zygote's: it has imported torch, then forks a child for each mode.
FORKING = """
import json, os, sys, tempfile
from pathlib import Path
sys.path.insert(0, {root!r})
import torch
import torch._dynamo
from torch._dynamo import utils
from torchbenchmark.worker import compilation
from torchbenchmark.worker.compile_caches import use_compile_caches

torch._inductor.config.compile_threads = 1
function, inputs = {work}

def child(mode):
    use_compile_caches({{"mode": mode, "folder": {folder!r}}})
    compilation.watch("inductor")
    torch.compile(function)(*inputs)
    counted = utils.counters["inductor"]
    print(json.dumps({{
        "mode": mode, "seconds": compilation.compile_seconds(),
        "hits": counted["fxgraph_cache_hit"], "misses": counted["fxgraph_cache_miss"],
        "aot_hits": utils.counters["aot_autograd"]["autograd_cache_hit"],
        "kept_graphs": any(Path({folder!r}).rglob("fxgraph/*/*")), "temporary": tempfile.gettempdir(),
    }}), flush=True)

for mode in ("cold", "fill", "warm"):
    pid = os.fork()
    if pid == 0:
        try:
            child(mode)
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)
"""


PRODUCT = "torch.mm, (torch.ones(8, 8), torch.ones(8, 8))"  # no kernel of its own: nothing for g++ to compile
KERNEL = "lambda x: (x.sin() + 1).cos(), (torch.ones(32),)"


def in_three_processes(base: Path, work: str):
    """What the cold, the filling and the warm child told, the folder of their caches, and one that is not theirs."""
    elsewhere = base / "elsewhere"
    elsewhere.mkdir()
    script = FORKING.format(root=str(Path(__file__).parents[2]), folder=str(base / "caches"), work=work)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(elsewhere), "HOME": str(elsewhere)},
        check=False,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["mode"] for one in told] == ["cold", "fill", "warm"], done.stderr
    return *told, base / "caches", elsewhere


@pytest.fixture(scope="module")
def three_processes(tmp_path_factory):
    return in_three_processes(tmp_path_factory.mktemp("compiling"), PRODUCT)


def test_a_cold_process_reads_and_keeps_no_graph(three_processes):
    cold, *_ = three_processes
    assert (cold["hits"], cold["aot_hits"], cold["kept_graphs"]) == (0, 0, False)


def test_the_next_process_finds_none_and_keeps_its_own(three_processes):
    _, fill, *_ = three_processes
    assert fill["hits"] + fill["aot_hits"] == 0
    assert fill["kept_graphs"]


def test_the_processes_after_it_find_every_graph(three_processes):
    _, _, warm, *_ = three_processes
    assert warm["aot_hits"] == 1
    assert warm["misses"] == 0


def test_nothing_is_kept_outside_of_the_folder(three_processes):
    cold, _, _, folder, elsewhere = three_processes
    assert Path(cold["temporary"]).parent == folder
    assert [str(path) for path in elsewhere.rglob("*") if path.is_file()] == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kernel_that_is_compiled_once_for_the_build_is_warm_in_a_fraction_of_the_time(tmp_path):
    """With g++, whose precompiled headers would go to the machine's temporary folder."""
    cold, fill, warm, _, elsewhere = in_three_processes(tmp_path, KERNEL)
    assert warm["aot_hits"] == 1
    assert warm["seconds"] < cold["seconds"] / 3
    assert not cold["kept_graphs"] and fill["kept_graphs"]
    assert [str(path) for path in elsewhere.rglob("*") if path.is_file()] == []


class Forced:
    """A configuration that obeys the environment alone, as torch's does for some variables."""

    fx_graph_cache = True

    def __setattr__(self, _: str, value: object) -> None:
        return None


def test_a_switch_that_the_environment_forces_is_an_error_and_no_wrong_number(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(torch._inductor, "config", Forced())
    with pytest.raises(RuntimeError, match="TORCHINDUCTOR_FX_GRAPH_CACHE is set in the environment of this build"):
        use_compile_caches({"mode": "cold", "folder": str(tmp_path)})
