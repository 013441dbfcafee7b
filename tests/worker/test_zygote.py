"""The zygote, driven as the runner drives it: what it forks, what it refuses, what it leaves behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.isolation import ModelSource, Zygote
from torchbenchmark.nursery import ZYGOTE_SCRIPT

SPEC = {
    "test": "train",
    "device": "cpu",
    "backend": "eager",
    "precision": "fp32",
    "batch_size": None,
    "preset": "tiny",
    "training_mode": "",
    "threads": 1,
    "budget_s": 0.05,
    "warmup_cap_s": 0.1,
    "min_unit_s": 0.002,
    "min_samples": 3,
}

# A model whose outputs and allocations tell what kind of process it runs in.
PROBE = """
import gc, json, os
from pathlib import Path
import torch
from torchbenchmark.model import BenchmarkModel, Preset

FACTS = Path({facts!r})


class Model(BenchmarkModel):
    PRESETS = {{"tiny": Preset(2, 2, {{}})}}

    def setup(self):
        self.module = torch.nn.Linear(4, 4)
        self.example_inputs = (torch.ones(self.batch_size, 4),)
        if self.test == "train":
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.1)
        size = self.batch_size * 2**20
        self.hoard = torch.ones(size // 4) if self.batch_size > 2 else None
        FACTS.write_text(json.dumps({{
            "pid": os.getpid(), "session": os.getsid(0), "parent": os.getppid(), "frozen": gc.get_freeze_count(),
            "environment": dict(os.environ), "descriptors": os.listdir("/proc/self/fd"),
        }}))

    def forward(self):
        return self.call_module().square().mean()
"""

WITHOUT_DYNAMO = """
    def eval(self):
        import sys
        if "torch._dynamo" in sys.modules:
            raise RuntimeError("imported dynamo")
        return (self.call_module(),)
"""


def make_probe(folder: Path) -> ModelSource:
    (folder / "probe").mkdir()
    (folder / "probe" / "__init__.py").write_text(PROBE.format(facts=str(folder / "facts.json")))
    return ModelSource("probe", folder / "probe")


def start(tmp_path: Path, models: list[ModelSource], python: str = sys.executable, **variables: str) -> Zygote:
    zygote = Zygote(Path(python), ZYGOTE_SCRIPT, "z", tmp_path, variables)
    zygote.preload(models)
    return zygote


def measure(zygote: Zygote, model: ModelSource, start_method: str = "fork", **spec: object):
    return zygote.measure(model, SPEC | spec, start_method=start_method, timeout_s=60, memory_limit=None)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A zygote with the probe imported, the probe, and where the probe tells its facts."""
    folder = tmp_path_factory.mktemp("zygote")
    probe = make_probe(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_TOKEN", "hush")
        zygote = start(folder, [probe])
    with zygote:
        zygote.wait_ready()
        yield zygote, probe, folder / "facts.json"


def test_a_forked_child_leads_its_session_has_a_frozen_heap_and_no_secret(warm):
    zygote, probe, told = warm
    assert zygote.imports["probe"].forkable
    outcome = measure(zygote, probe)
    assert outcome.status == "ok", outcome
    facts = json.loads(told.read_text())
    assert facts["session"] == facts["pid"] != zygote._process.pid
    assert facts["parent"] == zygote._process.pid
    assert facts["frozen"] > 1000
    assert facts["environment"]["OPENBLAS_NUM_THREADS"] == "1"
    assert "GITHUB_TOKEN" not in facts["environment"]
    assert set(outcome.result["channels"]) == {
        "latency", "cpu_time", "throughput", "host_probe", "cpu_time_adjusted",
        "first_batch", "cpu_memory", "operators", "flops",
    }  # fmt: skip
    assert outcome.result["notes"] == []
    assert outcome.result["threads"] == 1


def test_a_spawned_child_measures_the_same_channels(warm):
    zygote, probe, _ = warm
    forked = measure(zygote, probe)
    spawned = measure(zygote, probe, start_method="spawn")
    assert spawned.status == "ok", spawned
    assert set(spawned.result["channels"]) == set(forked.result["channels"])
    assert spawned.result["channels"]["operators"] == forked.result["channels"]["operators"]


def counts_of(outcome) -> dict[str, float]:
    return {name: outcome.result["channels"][name]["median"] for name in ("operators", "flops")}


def test_an_inference_is_measured_and_counted_without_importing_dynamo_which_a_training_does(tmp_path):
    probe = make_probe(tmp_path)
    with open(probe.folder / "__init__.py", "a") as file:
        file.write(WITHOUT_DYNAMO)
    zygote = Zygote(Path(sys.executable), ZYGOTE_SCRIPT, "z", tmp_path, {})
    zygote.preload([probe], dynamo=False)
    with zygote:
        zygote.wait_ready()
        for start_method in ("fork", "spawn"):
            outcome = measure(zygote, probe, start_method, test="eval")
            assert outcome.status == "ok" and not outcome.result["imported_dynamo"], outcome
            assert counts_of(outcome)["operators"] > 0
        without = {test: measure(zygote, probe, test=test) for test in ("eval", "train")}
        uncounted = measure(zygote, probe, test="eval", counting=False).result["channels"].keys()
    assert "latency" in uncounted and "cpu_memory" in uncounted and not {"operators", "flops"} & uncounted
    assert without["train"].result["imported_dynamo"], "slow, and right all the same"

    (tmp_path / "with").mkdir()
    probe = make_probe(tmp_path / "with")
    with start(tmp_path, [probe]) as zygote:
        zygote.wait_ready()
        for test, outcome in without.items():
            assert counts_of(measure(zygote, probe, test=test)) == counts_of(outcome)


def test_memory_of_a_known_allocation_is_told_within_one_percent(warm):
    """The difference between two sizes: what both children need besides cancels."""
    zygote, probe, _ = warm
    used = {
        size: measure(zygote, probe, batch_size=size).result["channels"]["cpu_memory"]["median"] for size in (100, 400)
    }
    assert used[400] - used[100] == pytest.approx(300 * 2**20, rel=0.01)
    assert used[100] < 130 * 2**20, "the pages shared with the zygote are not the test's"


def test_the_threads_of_a_child_are_set_and_recorded(warm):
    zygote, probe, _ = warm
    assert measure(zygote, probe, threads=2).result["threads"] == 2
    assert measure(zygote, probe, threads=1).result["threads"] == 1, "the zygote itself started no pool"


def test_a_foreign_package_of_our_name_is_refused(tmp_path):
    foreign = tmp_path / "site" / "torchbenchmark"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("raise SystemExit('must not be imported')\n")
    with (
        start(tmp_path, [], PYTHONPATH=str(foreign.parent)) as zygote,
        pytest.raises(BenchmarkError, match="another package named torchbenchmark"),
    ):
        zygote.wait_ready()


def test_a_zygote_ends_with_its_driver_and_takes_its_children_along(tmp_path):
    script = f"""
import sys, os, threading
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from torchbenchmark.isolation import Zygote, ModelSource
from torchbenchmark.nursery import ZYGOTE_SCRIPT
zygote = Zygote(Path(sys.executable), ZYGOTE_SCRIPT, "z", Path({str(tmp_path)!r}), {{"TORCHBENCH_RUN": "ends"}})
zygote.preload([])
zygote.wait_ready()
print(zygote._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    driver = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert driver.returncode == -9, driver.stderr
    pid = int(driver.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        subprocess.run(["sleep", "0.05"], check=True)
    pytest.fail("the zygote outlived its driver")


def test_a_build_whose_torch_is_missing_is_told_as_such(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with start(tmp_path, [], python=str(tmp_path / "bare" / "bin" / "python")) as zygote:
        zygote.wait_ready()
        assert "No module named" in zygote.imports[None].problem
