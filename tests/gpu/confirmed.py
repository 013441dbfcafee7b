"""One operator slowed so that four tests are 3 % slower on the GPU: is it confirmed as a nightly would, with an
interval that holds the truth, and is the same build against itself not?

The slowed build is a virtual environment over this interpreter's packages in which `layer_norm` writes rows beside
(longer_operator.py): another interpreter, with a build id of its own. How many rows make the share is calibrated in
the models, and what they come to is measured by the profiler in fresh processes (calibrated.py): that is the truth,
and owes nothing to the pairs. What follows is the product: the bench of this machine (bot/confirming/bench.py), the
trials of a night at their usual limits (baselines/confirming), asked again at once as on a second runner, and the
interval from new pairs.

Not the product's: the store of builds (both are interpreters that are there), and the screen: the tests are the
candidates of one night, and what a pair spreads by is from three processes of the build, as of the night before.

    python tests/gpu/confirmed.py --into FOLDER [--seconds N]    # goes on with what it has; again until it ends
    python tests/gpu/confirmed.py --into FOLDER --device cpu --preset tiny --share 0.3    # by CPU time

After every stage the result stands in FOLDER, as `confirmed.json` and `confirmed.txt`. Exit 0: all is measured and as
it must be; 1: all is measured and it is not; 75: the time was up, go on with the same command.
"""

import argparse
import dataclasses
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))  # slow_build

import numpy as np
from slow_build import make_build

from baselines.confirming.bench import Values
from baselines.confirming.rules import Rules
from baselines.confirming.seen import SeriesKey, pair_sds
from baselines.confirming.trials import Again, Trial, Tried, ask_again, intervals, try_all
from bot.confirming.bench import MachineBench
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.experiment import Experiment
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite

TESTS = ("hf_Bert train", "hf_Bert eval", "hf_GPT2 train", "timm_vision_transformer train")
CHANNELS = {"cuda": "gpu_time", "cpu": "cpu_time"}
NIGHTLY_PROCESSES = 3  # of a test in a night, which tell what a pair spreads by
AGAINST_ITSELF = 3  # times, each a night of its own, if no other number is asked for
TIME_IS_UP = 75
BUDGET_S = 0.1  # of timed work in a process
EXPECTED_PAIRS = {"slowed": 11 + 6 + 12, "against itself": 3}  # a test of a spread that is small beside the change


@dataclasses.dataclass(frozen=True)
class Builds:
    """The two interpreters, by the ids of what they hold."""

    pythons: Mapping[str, Path]

    def interpreter(self, build: str) -> Path | None:
        return self.pythons.get(build)

    def why_not(self, build: str) -> str:
        return "no interpreter holds it"


@dataclasses.dataclass
class Study:
    into: Path
    device: str
    preset: str
    share: float
    names: Sequence[str] = TESTS
    nights_against_itself: int = AGAINST_ITSELF
    shows_itself: bool = False
    rules: Rules = dataclasses.field(default_factory=Rules)
    found: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def tests(self) -> dict[str, str]:
        """Ids by name."""
        split = {name: name.split() for name in self.names}
        return {
            name: Experiment(model, test, self.device, preset=self.preset).id for name, (model, test) in split.items()
        }

    def run(self) -> None:
        self.make_builds()
        self.calibrate()
        usual, slowed = self.identify()
        spread = self.pair_sds(usual)
        trials = [self.trial(test, usual, slowed, spread[test], len(self.names)) for test in self.tests.values()]
        self.try_slowed(trials)
        nothing = [dataclasses.replace(trial, head=usual) for trial in trials]
        for number in range(1, self.nights_against_itself + 1):
            self.try_against_itself(number, nothing)
        if self.shows_itself:
            self.show_against_itself(nothing)
        self.found["finished"] = True
        self.tell()

    # --- the builds -----------------------------------------------------------------------------------------------

    @property
    def slowed_python(self) -> Path:
        return self.into / "slowed" / "bin" / "python"

    def make_builds(self) -> None:
        if not (self.into / "slowed" / "made").exists():
            make_build(self.into / "slowed", Path(__file__).with_name("longer_operator.py").read_text())
            (self.into / "slowed" / "made").touch()

    def calibrate(self) -> None:
        """In the slowed build itself; then its plan is written, which never changes again."""
        command = [self.slowed_python, Path(__file__).with_name("calibrated.py"), "--into", self.into]
        command += ["--device", self.device, "--preset", self.preset, "--share", str(self.share), *self.names]
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        plan = next((self.into / "slowed" / "lib").glob("python*/site-packages")) / "longer_operator.json"
        if not plan.exists():
            process = subprocess.Popen([str(word) for word in command], env=environment, start_new_session=True)
            try:
                if process.wait() != 0:
                    raise SystemExit("the calibration failed")
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            from calibrated import plan_of

            scratch = plan.with_suffix(".tmp")
            scratch.write_text(json.dumps(plan_of(json.loads((self.into / "calibrated.json").read_text())), indent=1))
            scratch.replace(plan)
        self.found["truth"] = truths(json.loads((self.into / "calibrated.json").read_text()))

    def identify(self) -> tuple[str, str]:
        interpreters = [inspect_interpreter(python) for python in (Path(sys.executable), self.slowed_python)]
        usual, slowed = (one.build.id for one in interpreters)
        if usual == slowed:
            raise SystemExit(f"both interpreters hold {usual}")
        self.pythons = {usual: Path(sys.executable), slowed: self.slowed_python}
        self.found |= {
            "device": self.device,
            "preset": self.preset,
            "gpus": interpreters[0].gpus,
            "builds": (usual, slowed),
        }
        return usual, slowed

    # --- the product ----------------------------------------------------------------------------------------------

    def bench(self, stage: str) -> MachineBench:
        suite = {"name": "confirmed", "description": "Slowed.", "preset": self.preset}
        suite["models"] = list(dict.fromkeys(name.split()[0] for name in self.names))
        file = self.into / "suite.yaml"
        file.write_text(json.dumps(suite))
        request = RunRequest(
            suite=load_suite(str(file)),
            device=self.device,
            threads=1 if self.device == "cpu" else None,
            workers=1,
            budget_s=BUDGET_S,
            timeout_s=120.0,
        )
        return MachineBench(request, Builds(self.pythons), self.into / "asks" / stage)

    def pair_sds(self, build: str) -> dict[str, float]:
        """Of the channel, by test: the rule of a night, of one night."""
        bench = self.bench("night")
        anew, began = not bench.folder.exists(), time.monotonic()
        values = bench.again(list(self.tests.values()), build, NIGHTLY_PROCESSES)
        if anew:
            self.estimate(time.monotonic() - began)
        found = spread_of(values, CHANNELS[self.device], NIGHTLY_PROCESSES)
        if missing := [test for test in self.tests.values() if test not in found]:
            raise SystemExit(f"no {CHANNELS[self.device]} of {', '.join(missing)}")
        self.found["pair_sd"] = found
        self.tell()
        return found

    def estimate(self, night_s: float) -> None:
        """Say how long the rest may take, given what a night took."""
        a_pair = 2 * night_s / NIGHTLY_PROCESSES
        pairs = (
            EXPECTED_PAIRS["slowed"]
            + self.nights_against_itself * EXPECTED_PAIRS["against itself"]
            + (self.rules.aa_pairs if self.shows_itself else 0)
        )
        print(f"a night of the build took {night_s:.0f} s: a pair of all tests at most {a_pair:.0f} s", flush=True)
        print(f"about {pairs} pairs of all tests are to come: {pairs * a_pair:.0f} s at most", flush=True)

    def trial(self, test: str, base: str, head: str, pair_sd: float, candidates: int) -> Trial:
        return Trial(SeriesKey(test, CHANNELS[self.device]), "regression", base, head, pair_sd, candidates)

    def try_slowed(self, trials: Sequence[Trial]) -> None:
        bench = self.bench("slowed")
        tried, _ = try_all(trials, bench, self.rules, self.rules.pairs_a_night)
        self.found["slowed"] = [told_of_tried(one) for one in tried]
        self.tell()
        confirmed = [one.trial for one in tried if one.decision.verdict == "confirmed"]
        again, _ = ask_again(confirmed, bench, self.rules, 0)
        self.found["again"] = [told_of_again(one) for one in again]
        self.found["processes_slowed"] = bench.processes_used
        self.tell()

    def try_against_itself(self, number: int, trials: Sequence[Trial]) -> None:
        """Either way, so each test counts twice."""
        either = [
            dataclasses.replace(trial, kind=kind, candidates=2 * len(trials))
            for trial in trials
            for kind in ("regression", "improvement")
        ]
        bench = self.bench(f"against-itself-{number}")
        tried, _ = try_all(either, bench, self.rules, self.rules.pairs_a_night)
        itself = self.found.setdefault("against_itself", [])
        itself.append({"tried": [told_of_tried(one) for one in tried]})
        self.tell()

    def show_against_itself(self, trials: Sequence[Trial]) -> None:
        """Intervals from new pairs, as the nightly's own A/A accounts have them."""
        rules = dataclasses.replace(self.rules, interval_pairs=self.rules.aa_pairs)
        shown = intervals(trials, self.bench("interval-against-itself"), rules)
        self.found["intervals_against_itself"] = [told_of_again(one) for one, _ in shown]

    # --- what is told ---------------------------------------------------------------------------------------------

    def tell(self) -> None:
        for name, text in (
            ("confirmed.json", json.dumps(self.found, indent=1)),
            ("confirmed.txt", table(self.found, self.tests)),
        ):
            scratch = self.into / f".{name}.tmp"
            scratch.write_text(text + "\n")
            scratch.replace(self.into / name)


def truths(calibrated: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """ln(slowed / not) of each test's time in its profile: the median over the processes, the least and the most."""
    found = {}
    for name, one in calibrated.items():
        ratios = [profile["log_ratio"] for profile in one["profiles"]]
        found[name] = {"log_ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return found


def spread_of(values: Mapping[str, Values], channel: str, processes: int) -> dict[str, float]:
    """What a pair of single processes spreads by, of the tests that have the channel in all processes."""
    logs = {test: np.log(one[channel]) for test, one in values.items() if len(one.get(channel, ())) == processes}
    if not logs:
        return {}
    variances = np.array([[np.var(one, ddof=1)] for one in logs.values()])
    return dict(zip(logs, map(float, pair_sds(variances, processes)), strict=True))


def told_of_tried(one: Tried) -> dict[str, Any]:
    decision = one.decision
    return {
        "test": one.trial.key.test,
        "kind": one.trial.kind,
        "candidates": one.trial.candidates,
        "verdict": decision.verdict,
        "pairs": decision.pairs,
        "e_value": decision.e_value,
        "threshold": decision.threshold,
        "log_ratios": one.log_ratios,
    }


def told_of_again(one: Again) -> dict[str, Any]:
    return {
        "test": one.trial.key.test,
        "persistent": one.persistent,
        "answered": one.answered,
        "effect": one.effect,
        "low": one.low,
        "high": one.high,
        "log_ratios": one.log_ratios,
    }


def holds(again: Mapping[str, Any], truth: float) -> bool:
    return again["persistent"] and again["low"] <= truth <= again["high"]


def as_it_must_be(found: Mapping[str, Any], tests: Mapping[str, str]) -> bool:
    """All slowed tests are confirmed, with intervals that hold the truth; nothing is of the build against itself."""
    again = {one["test"]: one for one in found["again"]}
    right = all(test in again and holds(again[test], found["truth"][name]["log_ratio"]) for name, test in tests.items())
    return right and not any(
        one["verdict"] == "confirmed" for itself in found["against_itself"] for one in itself["tried"]
    )


def percent(log_ratio: float) -> str:
    return f"{math.expm1(log_ratio):+.2%}"


def table(found: Mapping[str, Any], tests: Mapping[str, str]) -> str:
    """What was found so far, in percent of the time of the build that is not slowed."""
    lines = [
        f"{found.get('device', '')} {', '.join(found.get('gpus', ()))}, {found.get('preset', '')}; "
        f"builds {' and '.join(found.get('builds', ()))}",
        "",
        f"{'slowed':36s} {'truth (of processes)':>28s}  {'verdict':10s} pairs {'E':>9s} of {'needed':>7s}  again  "
        f"{'effect':>7s} [interval]         holds the truth",
    ]
    again = {one["test"]: one for one in found.get("again", ())}
    slowed = {one["test"]: one for one in found.get("slowed", ())}
    for name, test in tests.items():
        truth = found["truth"][name]
        line = f"{name:36s} {percent(truth['log_ratio']):>8s} ({percent(truth['least'])} to {percent(truth['most'])})  "
        if (one := slowed.get(test)) is not None:
            line += f"{one['verdict']:10s} {one['pairs']:5d} {one['e_value']:9.1f} of {one['threshold']:7.0f}  "
        if (one := again.get(test)) is not None:
            if one["persistent"]:
                line += f"there  {percent(one['effect']):>7s} [{percent(one['low'])}, {percent(one['high'])}]  "
                line += "yes" if holds(one, truth["log_ratio"]) else "NO"
            else:
                line += "gone" if one["answered"] else "no answer"
        lines.append(line)
    names = {test: name for name, test in tests.items()}
    for number, itself in enumerate(found.get("against_itself", ()), start=1):
        confirmed = sum(one["verdict"] == "confirmed" for one in itself["tried"])
        lines += ["", f"against itself, {number}: {confirmed} of {len(itself['tried'])} confirmed"]
        for one in itself["tried"]:
            lines.append(
                f"{names[one['test']]:36s} {one['kind']:12s} {one['verdict']:10s} {one['pairs']:5d} "
                f"{one['e_value']:9.2f} of {one['threshold']:7.0f}"
            )
    if shown := found.get("intervals_against_itself", ()):
        lines += ["", "against itself, from new pairs"]
        for one in shown:
            inside = "holds 0" if holds(one, 0.0) else "does NOT hold 0"
            lines.append(
                f"{names[one['test']]:36s} {percent(one['effect'])} [{percent(one['low'])}, {percent(one['high'])}]  "
                f"{inside}"
            )
    lines += ["", "finished" if found.get("finished") else "not finished: the same command goes on"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--device", choices=CHANNELS, default="cuda")
    parser.add_argument("--preset", choices=("full", "tiny"), default="full")
    parser.add_argument("--share", type=float, default=0.03)
    parser.add_argument("--tests", nargs="+", default=TESTS, choices=TESTS)
    parser.add_argument("--against-itself", type=int, default=AGAINST_ITSELF, help="nights of the build against itself")
    parser.add_argument(
        "--show-itself", action="store_true", help="also the intervals of the build against itself, 12 pairs more"
    )
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many; 0: when all is measured")
    options = parser.parse_args()
    into = options.into.absolute()
    into.mkdir(parents=True, exist_ok=True)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.alarm(options.seconds)
    itself = (options.against_itself, options.show_itself)
    study = Study(into, options.device, options.preset, options.share, options.tests, *itself)
    try:
        study.run()
    except KeyboardInterrupt:
        print("the time is up; the same command goes on", file=sys.stderr)
        sys.exit(TIME_IS_UP)
    finally:
        signal.alarm(0)
        if (into / "confirmed.txt").exists():
            print((into / "confirmed.txt").read_text(), flush=True)
    sys.exit(0 if as_it_must_be(study.found, study.tests) else 1)


if __name__ == "__main__":
    main()
