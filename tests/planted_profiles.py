"""Small models in which a variable of the environment plants one difference, and what `torchbench profile` must tell.

Used by the tests of the pipeline and of the GPU; as a script, on a machine that has torch but no pytest:

    PYTHONPATH=. python tests/planted_profiles.py --device cuda --into FOLDER
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PYTHON = "Python, outside of operators"
METADATA = """description: A model with a planted difference.
category: OTHER
domain: OTHER_TASKS
workload_version: "1"
presets: [tiny]
devices: [cpu, cuda]
"""
MODEL = '''
import os

import torch

from torchbenchmark.model import BenchmarkModel, Preset

PLANTED = os.environ.get("PLANTED") == "1"


class Model(BenchmarkModel):
    """A matrix product, a normalisation and an addition, with a difference where it is planted."""

    PRESETS = {{"tiny": Preset(train_batch=8, eval_batch=8, shape={{}})}}

    def setup(self) -> None:
        self.on_gpu = self.device == "cuda"
        size = 2048 if self.on_gpu else 64
        self.module = torch.nn.LayerNorm(size, device=self.device)
        self.example_inputs = (torch.randn(size, size, device=self.device),)
        self.matrix = torch.randn(size, size, device=self.device)
        self.rows = torch.zeros(64, 256, device=self.device)
        wide = 16 * size if PLANTED and not self.on_gpu else size
        self.left, self.right = (torch.randn(size, wide), torch.randn(wide, size))
        self.left, self.right = self.left.to(self.device), self.right.to(self.device)

    def slower_operator(self) -> None:
        """On the GPU the same product without TF32, by another kernel; on the CPU a longer one."""
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = not PLANTED
        torch.mm(self.left, self.right)
        torch.backends.cuda.matmul.allow_tf32 = allowed

    def more_launches(self) -> None:
        for part in self.rows.split(8) if PLANTED else (self.rows,):
            part.add_(1.0)

    def python_work(self) -> None:
        total = 0
        for number in range(60_000 if PLANTED else 100):
            total += number

    def nothing(self) -> None:
        self.rows.add_(1.0)

    def eval(self):
        self.{planted}()
        return (self.module(self.example_inputs[0]) + self.matrix,)
'''
PLANTS = ("slower_operator", "more_launches", "python_work", "nothing")


def make_models(into: Path, plants: tuple[str, ...] = PLANTS) -> tuple[Path, Path]:
    """The folder of models, and the suite of their inferences."""
    for plant in plants:
        folder = into / "models" / plant
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(MODEL.format(planted=plant))
        (folder / "metadata.yaml").write_text(METADATA)
    suite = {
        "name": "planted",
        "description": "For a test.",
        "models": list(plants),
        "tests": ["eval"],
        "preset": "tiny",
    }
    (into / "suite.yaml").write_text(json.dumps(suite))
    return into / "models", into / "suite.yaml"


def arguments(into: Path, device: str, pairs: int, budget: float) -> list[object]:
    """Of `torchbench`; what is planted is planted in head."""
    models, suite = make_models(into)
    sides = [f"{sys.executable}@env.PLANTED={value}" for value in (0, 1)]
    options = ["--suite", suite, "--models", models, "--device", device, "--pairs", pairs, "--budget", budget]
    files = ["--out", into / "profiles.jsonl", "--json", into / "profile.json", "--markdown", into / "profile.md"]
    return ["profile", *sides, *options, *files, "--threads", 1, "--traces", into / "traces"]


def rows_found(test: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(account, row) of the causes in the order in which they are told."""
    no_cause = ("waiting", "others", "remainder")
    return [
        (account["name"], row)
        for account in test["accounts"]
        for row in account["rows"]
        if row["verdicts"] and row["kind"] not in no_cause
    ]


def wrong(content: dict[str, Any], device: str) -> list[str]:
    """What the JSON of a profile does not tell as it was planted."""
    problems: list[str] = []
    tests = {one["test"].partition("[")[2].partition("-")[0]: one for one in content["tests"]}

    def expect(plant: str, holds: bool, what: str) -> None:
        if not holds:
            found = [(account, row["name"], row["kind"], row["verdicts"]) for account, row in rows_found(tests[plant])]
            problems.append(f"{plant}: {what}; found {found}; {tests[plant]['reason']}")

    for plant, one in tests.items():
        for account in one["accounts"]:
            rest = account["change"] - sum(row["change"] for row in account["rows"])
            expect(plant, abs(rest) <= 1e-9 * account["base"], f"{account['name']}: the rows do not add up: {rest}")
    expected = "gpu" if device == "cuda" else "host"
    verb = "launched" if device == "cuda" else "called"
    slower = rows_found(tests["slower_operator"])
    first = slower[0] if slower else ("", {"name": "", "verdicts": [], "kernels": []})
    expect(
        "slower_operator",
        (first[0], first[1]["name"]) == (expected, "aten::mm") and "slower" in first[1]["verdicts"],
        "the slower operator is not named first",
    )
    if device == "cuda":
        changed = {verdict for kernel in first[1]["kernels"] for verdict in kernel["verdicts"]}
        expect("slower_operator", {"appeared", "vanished"} <= changed, "its other kernel is not told")
    more = [
        row for account, row in rows_found(tests["more_launches"]) if (account, row["name"]) == (expected, "aten::add_")
    ]
    expect(
        "more_launches",
        bool(more)
        and f"{verb} more often" in more[0]["verdicts"]
        and more[0]["head_count"] == 8 * more[0]["base_count"],
        f"that it is {verb} more often is not told",
    )
    python = rows_found(tests["python_work"])
    expect(
        "python_work",
        bool(python) and (python[0][0], python[0][1]["name"], python[0][1]["kind"]) == ("host", PYTHON, "python"),
        "Python work is not told first, as CPU-side",
    )
    expect("nothing", not rows_found(tests["nothing"]), "equal sides tell something")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--budget", type=float, default=0.1)
    options = parser.parse_args()
    into = options.into.absolute()
    into.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "torchbenchmark", *arguments(into, options.device, options.pairs, options.budget)]
    ended = subprocess.run([*map(str, command)], check=False)
    print(f"exit code {ended.returncode} after {time.monotonic() - began:.0f} s")
    if ended.returncode != 0:
        return 1
    problems = wrong(json.loads((into / "profile.json").read_text()), options.device)
    print("\n".join(problems) or "all that was planted is told, and nothing else")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
