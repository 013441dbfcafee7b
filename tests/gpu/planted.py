"""Plants a slow-down of one kernel into every model, measures it in pairs, and measures the same build against itself.

Both sides of a planted comparison launch one kernel more than the model, over a buffer of the same size; that of head
runs over more rows, so launches and memory are the same and only kernel time tells. How many rows make 0.7 to 1 % of a
test's kernel time is calibrated with the profiler first. docs/measuring.md has the figures that this gave.

    python tests/gpu/planted.py calibrate --into FOLDER
    python tests/gpu/planted.py ab --into FOLDER [--aa NUMBER]
    python tests/gpu/planted.py host --into FOLDER
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

MODELS = ("resnet18", "resnet50", "mobilenet_v2", "timm_vision_transformer", "hf_Bert", "hf_GPT2", "dlrm")
MODELS += ("soft_actor_critic",)
SHARES = (0.0075, 0.0095)  # of the test's kernel time; drawn evenly over the tests
FLOOR_S = 4e-6  # what the planted kernel lasts on the side of base: less cannot be told from a launch
MOST_ROWS = 2**28
PAIRS = 6
HOST_TESTS = ("planted_resnet50", "planted_mobilenet_v2")
HOST_PAIRS = 12

WRAPPER = '''"""{model}, with one kernel more, whose length the environment says, and with Python work beside it."""

import json
import os
from pathlib import Path

import torch

from torchbenchmark.models.{model} import Model as Original


class Model(Original):
    def setup(self) -> None:
        super().setup()
        plan = json.loads(Path(os.environ["PLANTED"]).read_text())[f"{model} {{self.test}}"]
        self.buffer = torch.ones(plan["buffer"], device=self.device)
        self.rows = self.buffer[: plan["rows"]]
        self.spins = plan.get("spins", 0)

    def invoke(self):
        self.rows.fill_(1.0)
        total = 0
        for number in range(self.spins):
            total += number
        return super().invoke()
'''


def make_models(into: Path) -> Path:
    """Wrappers of the models, and the suite that measures them."""
    folder = into / "models"
    for model in MODELS:
        (folder / f"planted_{model}").mkdir(parents=True, exist_ok=True)
        (folder / f"planted_{model}" / "__init__.py").write_text(WRAPPER.format(model=model))
        source = Path(__file__).parents[2] / "torchbenchmark" / "models" / model / "metadata.yaml"
        (folder / f"planted_{model}" / "metadata.yaml").write_text(source.read_text())
    suite = {"name": "planted", "description": "Planted.", "models": [f"planted_{model}" for model in MODELS]}
    (into / "suite.yaml").write_text(json.dumps(suite))
    return folder


def kernel_seconds(rows: int, buffer) -> float:
    """The median duration of the planted kernel over so many rows, from the profiler.

    It writes and reads nothing, so that it lasts as long in a model, which leaves it nothing in the caches.
    """
    import statistics

    import torch

    part = buffer[:rows]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(30):
            part.fill_(1.0)
        torch.cuda.synchronize()
    lasted = [one.duration_ns() for one in seen.profiler.kineto_results.events() if "elementwise" in one.name()]
    if len(lasted) != 30:
        raise RuntimeError(f"the profiler saw {len(lasted)} of 30 kernels")
    return statistics.median(lasted[10:]) / 1e9


def calibrate(into: Path) -> None:
    """Which rows make the kernel as long as wanted, for every test: `plan-base.json` and `plan-head.json`."""
    import torch

    folder = make_models(into)
    flat = {f"{model} {test}": {"buffer": 1024, "rows": 1024} for model in MODELS for test in ("train", "eval")}
    (into / "plan-flat.json").write_text(json.dumps(flat))
    command = [sys.executable, "-m", "torchbenchmark", "run", "--suite", str(into / "suite.yaml"), "--device", "cuda"]
    command += ["--models", str(folder), "--rounds", "1", "--budget", "0.1", "--out", str(into / "flat.jsonl")]
    import os

    subprocess.run(command, env={**os.environ, "PLANTED": str(into / "plan-flat.json")}, check=True)
    from torchbenchmark.records import read_run

    kernels = {}
    for record in read_run(into / "flat.jsonl").records:
        model, test = record.test.partition("[planted_")[2].partition("-")[0], record.test[5:].partition("[")[0]
        kernels[f"{model} {test}"] = record.process_channels("gpu_time")[0].median
    buffer = torch.ones(MOST_ROWS, device="cuda")
    grid = sorted({int(2 ** (power / 4)) for power in range(4 * 12, 4 * 28 + 1)})
    lasts = [(rows, kernel_seconds(rows, buffer)) for rows in grid]
    base, head, told = {}, {}, {}
    for number, (name, seconds) in enumerate(sorted(kernels.items())):
        share = SHARES[0] + (SHARES[1] - SHARES[0]) * number / (len(kernels) - 1)
        start = rows_for(FLOOR_S, lasts)
        short = kernel_seconds(start, buffer)
        wanted = short + share * seconds
        rows = rows_for(wanted, lasts)
        for _ in range(6):  # closer than the grid
            long = kernel_seconds(rows, buffer)
            rows = min(max(int(rows * (1 + 0.8 * (wanted - long) / long)), start + 1), MOST_ROWS)
        long = kernel_seconds(rows, buffer)
        base[name], head[name] = {"buffer": rows, "rows": start}, {"buffer": rows, "rows": rows}
        told[name] = {"kernel_s": seconds, "planted_s": long - short, "share": (long - short) / (seconds + short)}
        planted = f"{1e6 * (long - short):8.2f} µs = {told[name]['share']:.2%}"
        print(f"{name:35s} kernels {seconds * 1e3:8.3f} ms, planted {planted}")
    for name, content in (("base", base), ("head", head), ("told", told)):
        (into / f"plan-{name}.json").write_text(json.dumps(content, indent=1))


def rows_for(seconds: float, lasts: list[tuple[int, float]]) -> int:
    """The first grid point that lasts as long, or the longest."""
    return next((rows for rows, lasted in lasts if lasted >= seconds), lasts[-1][0])


def compare(into: Path, aa: int | None, budget: float, tests: list[str]) -> None:
    name = "planted" if aa is None else f"aa{aa}"
    head = "head" if aa is None else "base"
    command = [sys.executable, "-m", "torchbenchmark", "ab"]
    command += [
        f"{sys.executable}@env.PLANTED={into}/plan-base.json",
        f"{sys.executable}@env.PLANTED={into}/plan-{head}.json",
    ]
    command += ["--suite", str(into / "suite.yaml"), "--models", str(into / "models"), "--device", "cuda"]
    for test in tests:
        command += ["--tests", test]
    command += ["--pairs", str(PAIRS), "--budget", str(budget), "--out", str(into / f"{name}.jsonl")]
    command += ["--json", str(into / f"{name}.json"), "--markdown", str(into / f"{name}.md")]
    subprocess.run(command, check=False)


def host(into: Path) -> None:
    """Python work worth 10 % of the latency of launch-bound tests: what `latency` needs with the probe and without."""
    import time

    from torchbenchmark.records import read_run

    began = time.perf_counter()
    total = 0
    for number in range(10_000_000):
        total += number
    a_spin = (time.perf_counter() - began) / 10_000_000
    base = json.loads((into / "plan-base.json").read_text())
    head = json.loads((into / "plan-base.json").read_text())
    for record in read_run(into / "flat.jsonl").records:
        model, test = record.test.partition("[planted_")[2].partition("-")[0], record.test[5:].partition("[")[0]
        latency = record.process_channels("latency")[0].median
        head[f"{model} {test}"]["spins"] = int(0.1 * latency / a_spin)
    for name, content in (("host-base", base), ("host-head", head)):
        (into / f"plan-{name}.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "torchbenchmark", "ab"]
    command += [f"{sys.executable}@env.PLANTED={into}/plan-host-{side}.json" for side in ("base", "head")]
    command += ["--suite", str(into / "suite.yaml"), "--models", str(into / "models"), "--device", "cuda"]
    for test in HOST_TESTS:
        command += ["--tests", f"test_eval[{test}-*"]
    command += ["--pairs", str(HOST_PAIRS), "--channel", "latency", "--out", str(into / "host.jsonl")]
    subprocess.run([*command, "--json", str(into / "host.json")], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("calibrate", "ab", "host"))
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--aa", type=int)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--tests", action="append", default=[])
    options = parser.parse_args()
    into = options.into.absolute()
    into.mkdir(parents=True, exist_ok=True)
    if options.what == "calibrate":
        calibrate(into)
    elif options.what == "ab":
        compare(into, options.aa, options.budget, options.tests)
    else:
        host(into)


if __name__ == "__main__":
    main()
