"""Plants slow-downs into every model, measures them in pairs, and measures the same build against itself.

On the GPU's side both sides of a comparison launch one kernel more than the model, over a buffer of the same size; that
of head writes more rows, so launches and memory are the same and only kernel time tells. How many rows make 0.7 to 1 %
of a test's kernel time is calibrated inside the model, as the kernel moves what its neighbours find in the caches. On
the CPU's side head does Python work, or calls operators, in every iteration. docs/measuring.md has the figures.

    python tests/gpu/planted.py calibrate --into FOLDER
    python tests/gpu/planted.py ab --into FOLDER [--aa NUMBER]
    python tests/gpu/planted.py host --into FOLDER
    python tests/gpu/planted.py tell --into FOLDER [--noise TABLE]      # of what was measured; needs no GPU
"""

import argparse
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODELS = ("resnet18", "resnet50", "mobilenet_v2", "timm_vision_transformer", "hf_Bert", "hf_GPT2", "dlrm")
MODELS += ("soft_actor_critic",)
TESTS = tuple(f"{model} {test}" for model in MODELS for test in ("train", "eval"))
BAND = (0.007, 0.01)  # of the test's kernel time
SHARES = (0.0075, 0.0095)  # aimed at, drawn evenly over the tests
FLOOR_ROWS = 1 << 18  # of the planted kernel on the side of base: a few microseconds
MOST_ROWS = 1 << 30
CALIBRATIONS = 6
PAIRS = 6
HOST_TESTS = ("planted_resnet50", "planted_mobilenet_v2")
HOST_PAIRS = 12
HOST_SHARE = 0.1  # of the latency, added as Python work
HOST_OPERATORS = 20
ONE_SLOPE = 0.77  # what a study of all tests together fitted, before a pair followed the host as far as it waits for it

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
        self.operators = plan.get("operators", 0)

    def invoke(self):
        self.rows.fill_(1.0)
        total = 0
        for number in range(self.spins):
            total += number
        for _ in range(self.operators):
            self.rows.view(-1)
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


def kernel_seconds(invoke: Callable[[], object]) -> float:
    """Kernel time of one iteration: the median of some."""
    import torch

    from torchbenchmark.worker.channels.profiler import activity_of

    began = time.perf_counter()
    invoke()
    torch.cuda.synchronize()
    iterations = max(5, min(20, int(0.1 / (time.perf_counter() - began))))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(iterations):
            invoke()
            torch.cuda.synchronize()
    found = [activity_of(event) for event in seen.profiler.kineto_results.events()]
    kernels = sorted((one for one in found if one is not None and not one.is_copy), key=lambda one: one.start_ns)
    each, rest = divmod(len(kernels), iterations)
    if rest or not each:
        raise RuntimeError(f"{len(kernels)} kernels in {iterations} iterations")
    totals = [sum(one.duration_ns for one in kernels[first : first + each]) for first in range(0, len(kernels), each)]
    return statistics.median(totals) / 1e9


def difference(seconds: Callable[[int], float], short: int, long: int, repeats: int) -> tuple[float, float]:
    """(time with so few rows, what the longer kernel adds to it), measured by turns in this process."""
    times, added = [], []
    for _ in range(repeats):
        before, longer, after = (seconds(rows) for rows in (short, long, short))
        times += [before, after]
        added.append(longer - (before + after) / 2)
    return statistics.median(times), statistics.median(added)


def rows_that_add(share: float, seconds: Callable[[int], float], short: int, first: int, most: int) -> int:
    """How many rows make an iteration longer by the share, where `seconds` tells how long one with so many takes."""
    rows, low, high = first, short, most
    for _ in range(CALIBRATIONS):
        base, added = difference(seconds, short, rows, 1)
        wanted = share * base
        low, high = (max(low, rows), high) if added < wanted else (low, min(high, rows))
        guess = short + (rows - short) * wanted / added if added > 0.1 * wanted else rows * 4
        rows = int(min(max(guess, low + (high - low) * 0.02, short + 1), high))
    return rows


def calibrate_test(name: str, share: float, folder: Path, answer: Any) -> None:
    """In a process of its own: the rows that make the test slower by the share, and what they come to."""
    import torch

    from torchbenchmark.worker.loading import import_model
    from torchbenchmark.worker.precisions import apply_precision

    model_name, test = name.split()
    kind = import_model(f"planted_{model_name}", str(folder / f"planted_{model_name}")).Model
    model = kind(test=test, device="cuda", batch_size=None, preset="full")
    apply_precision("fp32", model)
    model.buffer = torch.ones(MOST_ROWS, device="cuda")
    model.rows = model.buffer[:FLOOR_ROWS]
    latencies = []
    for _ in range(60):
        began = time.perf_counter()
        model.invoke()
        torch.cuda.synchronize()
        latencies.append(time.perf_counter() - began)

    def seconds(rows: int) -> float:
        model.rows = model.buffer[:rows]
        return kernel_seconds(model.invoke)

    rows = rows_that_add(share, seconds, FLOOR_ROWS, 2 * FLOOR_ROWS, MOST_ROWS)
    base, added = difference(seconds, FLOOR_ROWS, rows, 5)
    answer.put({"rows": rows, "kernel_s": base, "added_s": added, "latency_s": statistics.median(latencies[20:])})


def calibrate(into: Path) -> None:
    """Which rows make the kernel as long as wanted, for every test: `plan-base.json`, `plan-head.json`, `told.json`."""
    import torch

    from torchbenchmark.worker.loading import import_model

    folder = make_models(into)
    flat = {name: {"buffer": FLOOR_ROWS, "rows": FLOOR_ROWS} for name in TESTS}
    (into / "plan-flat.json").write_text(json.dumps(flat))
    os.environ["PLANTED"] = str(into / "plan-flat.json")
    for model in MODELS:
        import_model(f"planted_{model}", str(folder / f"planted_{model}"))
    assert not torch.cuda.is_initialized()  # the children are forks
    fork = multiprocessing.get_context("fork")
    base, head, told = {}, {}, {}
    for number, name in enumerate(TESTS):
        share = SHARES[0] + (SHARES[1] - SHARES[0]) * number / (len(TESTS) - 1)
        answer = fork.Queue()
        child = fork.Process(target=calibrate_test, args=(name, share, folder, answer))
        child.start()
        found = answer.get(timeout=120)
        child.join()
        rows = found["rows"]
        base[name], head[name] = {"buffer": rows, "rows": FLOOR_ROWS}, {"buffer": rows, "rows": rows}
        told[name] = {**found, "share": found["added_s"] / found["kernel_s"]}
        print(
            f"{name:35s} kernels {found['kernel_s'] * 1e3:8.3f} ms, {rows} rows, "
            f"planted {1e6 * found['added_s']:8.2f} µs = {told[name]['share']:.2%}",
            flush=True,
        )
    for stem, content in (("plan-base", base), ("plan-head", head), ("told", told)):
        (into / f"{stem}.json").write_text(json.dumps(content, indent=1))


def ab(into: Path, name: str, sides: tuple[Path, Path], options: list[str]) -> None:
    """`torchbench ab` of this build with either plan; goes on with what it has if it was cut off."""
    command = [
        sys.executable,
        "-m",
        "torchbenchmark",
        "ab",
        *(f"{sys.executable}@env.PLANTED={side}" for side in sides),
    ]
    command += ["--suite", str(into / "suite.yaml"), "--models", str(into / "models"), "--device", "cuda", *options]
    out = into / f"{name}.jsonl"
    command += ["--out", str(out), "--json", str(into / f"{name}.json"), "--markdown", str(into / f"{name}.md")]
    subprocess.run([*command, "--resume"] if out.exists() else command, check=False)


def compare(into: Path, aa: int | None, budget: float, tests: list[str]) -> None:
    sides = (into / "plan-base.json", into / ("plan-head.json" if aa is None else "plan-base.json"))
    chosen = [word for test in tests for word in ("--tests", test)]
    name = "planted" if aa is None else f"aa{aa}"
    ab(into, name, sides, [*chosen, "--pairs", str(PAIRS), "--budget", str(budget)])


def host(into: Path) -> None:
    """Python work worth 10 % of the latency of launch-bound tests; then operators in its place."""
    began = time.perf_counter()
    total = 0
    for number in range(10_000_000):
        total += number
    a_spin = (time.perf_counter() - began) / 10_000_000
    told = json.loads((into / "told.json").read_text())
    base = json.loads((into / "plan-base.json").read_text())
    spinning = {
        name: {**plan, "spins": int(HOST_SHARE * told[name]["latency_s"] / a_spin)} for name, plan in base.items()
    }
    calling = {name: {**plan, "operators": HOST_OPERATORS} for name, plan in base.items()}
    for name, content in (("spinning", spinning), ("calling", calling)):
        (into / f"plan-{name}.json").write_text(json.dumps(content))
    tests = [word for test in HOST_TESTS for word in ("--tests", f"test_eval[{test}-*")]
    for name, pairs in (("spinning", HOST_PAIRS), ("calling", 2)):
        sides = (into / "plan-base.json", into / f"plan-{name}.json")
        ab(into, f"host-{name}", sides, [*tests, "--pairs", str(pairs), "--channel", "latency"])


def tell(into: Path, noise: Path | None) -> None:
    """What the comparisons found, judged without an A/A table and with one."""
    from torchbenchmark.paired.comparison import Criterion
    from torchbenchmark.paired.comparison import compare as judged
    from torchbenchmark.paired.noise_table import read_noise_table
    from torchbenchmark.paired.pairs_file import read_pairs
    from torchbenchmark.paired.results import collapse, measured_tests

    tables = [None, read_noise_table(noise)] if noise else [None]
    same_host_work: dict[str, list[Any]] = {}  # pairs whose sides do the same on the host, by test
    told = json.loads((into / "told.json").read_text())

    def name_of(test: str) -> str:
        return f"{test.partition('[planted_')[2].partition('-')[0]} {test[5:].partition('[')[0]}"

    for file in sorted(into.glob("*.jsonl")):
        pairs = read_pairs(file)
        tests = [collapse(pairs, test) for test in measured_tests(pairs)]
        for one in tests if not file.stem.startswith("host-") else ():
            same_host_work.setdefault(one.test, []).extend(one.pairs)
        for table in tables:
            comparison = judged(tests, Criterion(), table)
            called = [one for one in comparison.effects if one.verdict in ("slower", "faster")]
            print(
                f"\n{file.name}, {'no table' if table is None else table.title}: {comparison.family} intervals at "
                f"{comparison.level:.0%}, {min(one.pairs for one in comparison.effects)} pairs; called: {len(called)}"
            )
            for one in comparison.effects if file.stem == "planted" else called:
                if one.effect is None or one.low is None or one.high is None:
                    continue
                planted = told.get(name_of(one.test), {}).get("share", 0.0) if one.channel == "gpu_time" else 0.0
                inside = "in the band" if BAND[0] <= planted <= BAND[1] else ""
                print(
                    f"  {one.test:52s} {one.channel:9s} {one.verdict:13s} {one.effect:+.2%} "
                    f"[{one.low:+.2%}, {one.high:+.2%}]  planted {planted:.2%} {inside}"
                )
            for count in comparison.counts:
                if count.verdict != "same":
                    print(f"  {count.test:52s} {count.channel} {count.verdict}: {count.base} {count.head}")
        if file.stem.startswith(("host-spinning", "aa")):
            tell_pairs_needed(tests, tables[-1])
    tell_against_each_other(into)
    tell_spread_by_rule(same_host_work)


def tell_against_each_other(into: Path) -> None:
    """Each A/A comparison, and the planted one, against the A/A tables of the others, singly and together."""
    from torchbenchmark.paired.comparison import Criterion, compare
    from torchbenchmark.paired.pairs_file import Pairs, read_pairs
    from torchbenchmark.paired.results import collapse, measured_tests, noise_table_of

    made = {file.stem: read_pairs(file) for file in sorted(into.glob("aa*.jsonl"))}
    made = {name: pairs for name, pairs in made.items() if measured_tests(pairs)}
    compared = {**made, **({"planted": read_pairs(planted)} if (planted := into / "planted.jsonl").exists() else {})}
    print("\ncalled against the A/A tables of others: of each alone, and of all of them together")
    for name, pairs in compared.items():
        others = {other: found for other, found in made.items() if other != name}
        if not others:
            continue
        together = [
            pair.model_copy(update={"round": 100 * number + pair.round})  # each comparison had rounds of its own
            for number, found in enumerate(others.values())
            for pair in found.pairs
        ]
        tables = {other: noise_table_of(found) for other, found in others.items()}
        tables["together"] = noise_table_of(Pairs(pairs.header, tuple(together)))
        tests = [collapse(pairs, test) for test in measured_tests(pairs)]
        called = {
            other: sum(one.verdict in ("slower", "faster") for one in compare(tests, Criterion(), table).effects)
            for other, table in tables.items()
        }
        print(f"  {name}: " + ", ".join(f"{count} by {other}" for other, count in called.items()))


def tell_spread_by_rule(pairs: dict[str, list[Any]]) -> None:
    """How far the latencies of pairs lie apart whose sides do the same on the host: as they are, adjusted by the probe
    with one slope for all tests, and as far as the host sets the test's time."""
    from torchbenchmark.paired.host_speed import PROBE, SLOPES, host_log_ratio

    print("\nspread of a pair's latency (root mean square of the logarithms), and the slope on the probe")
    kept: dict[str, list[float]] = {}
    for test, several in pairs.items():
        latency = [math.log(pair.head["latency"] / pair.base["latency"]) for pair in several]
        probe = [math.log(pair.head[PROBE] / pair.base[PROBE]) for pair in several]
        hosts = [host_log_ratio(pair.base, pair.head, "cuda") or 0.0 for pair in several]
        slope = sum(a * b for a, b in zip(latency, probe, strict=True)) / sum(b * b for b in probe)
        busy = statistics.median(pair.base["gpu_busy"] / pair.base["latency"] for pair in several)
        rules = {
            "as it is": latency,
            f"by one slope of {ONE_SLOPE}": [a - ONE_SLOPE * b for a, b in zip(latency, probe, strict=True)],
            f"as far as it waits for the host, {SLOPES['cuda']}": [
                a - SLOPES["cuda"] * b for a, b in zip(latency, hosts, strict=True)
            ],
        }
        spreads = {name: math.sqrt(statistics.fmean(a * a for a in ratios)) for name, ratios in rules.items()}
        for name, spread in spreads.items():
            kept.setdefault(name, []).append(spread)
        shown = ", ".join(f"{spread:.1%} {name}" for name, spread in spreads.items())
        print(f"  {test:52s} {len(several)} pairs, busy {busy:.0%}, slope {slope:.2f}: {shown}")
    print("  geometric means: " + ", ".join(f"{statistics.geometric_mean(s):.1%} {name}" for name, s in kept.items()))


def tell_pairs_needed(tests: Any, noise: Any) -> None:
    """How many pairs `latency` needs for +10 % by the spread of these, with the probe as covariate and without, in
    tests of which the host sets the time for most of an iteration."""
    from torchbenchmark.paired.comparison import LEVEL
    from torchbenchmark.paired.host_speed import SLOPES, host_bound, host_log_ratio
    from torchbenchmark.statistics.pairs_needed import pairs_needed

    slope = (noise.slope("latency") if noise else None) or SLOPES["cuda"]
    for one in tests:
        busy = [min(side["gpu_busy"] / side["latency"] for side in (pair.base, pair.head)) for pair in one.pairs]
        if len(busy) < 3 or host_bound(statistics.median(busy)) < 1:
            continue
        plain = [math.log(pair.head["latency"] / pair.base["latency"]) for pair in one.pairs]
        hosts = [host_log_ratio(pair.base, pair.head, "cuda") or 0.0 for pair in one.pairs]
        adjusted = [ratio - slope * host for ratio, host in zip(plain, hosts, strict=True)]
        needed = [
            2 + (pairs_needed(statistics.variance(ratios), 2, math.log1p(HOST_SHARE), LEVEL) or 0)
            for ratios in (adjusted, plain)
        ]
        print(
            f"  {one.test:52s} latency, {len(plain)} pairs: spread {statistics.stdev(adjusted):.1%} with the probe, "
            f"{statistics.stdev(plain):.1%} without; +{HOST_SHARE:.0%} needs {needed[0]} and {needed[1]} pairs"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("calibrate", "ab", "host", "tell"))
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--aa", type=int)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--tests", action="append", default=[])
    parser.add_argument("--noise", type=Path)
    options = parser.parse_args()
    into = options.into.absolute()
    into.mkdir(parents=True, exist_ok=True)
    if options.what == "calibrate":
        calibrate(into)
    elif options.what == "ab":
        compare(into, options.aa, options.budget, options.tests)
    elif options.what == "host":
        host(into)
    else:
        tell(into, options.noise)


if __name__ == "__main__":
    main()
