"""Simulated fleets through the real flow, as many at a time as there are cores; what came of them is kept."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fleet
import numpy as np
import yaml

import baselines
import torchbenchmark
from baselines.confirming.rules import Rules
from baselines.confirming.tonight import Outcome
from baselines.fleet_replay import replay_fleet

TOP = 50  # of a night's ranking that is kept
BASELINES, STATISTICS = Path(baselines.__file__).parent, Path(torchbenchmark.__file__).parent / "statistics"
SOURCES = (  # of what a run comes to
    *sorted((BASELINES / "confirming").glob("*.py")),
    *(BASELINES / name for name in ("fleet_replay.py", "screening/__init__.py", "screening/noise.py")),
    *(STATISTICS / f"{name}.py" for name in ("samples", "sign_e_process", "hodges_lehmann", "signed_rank")),
    Path(fleet.__file__),
    Path(__file__),
)
Counts = dict[str, Any]  # of the judge, for one seed


@dataclass(frozen=True)
class FleetRun:
    """Of one seed; nights and tests are numbers from 0 on."""

    counts: Counts
    first: list[list[int]]  # per night: the tests that rank first among those that could be measured again
    confirmed: list[list[int]]  # per night


def load_scenarios(data: Path) -> dict[str, Any]:
    return yaml.safe_load((data.parent / "tools" / "fleet.yaml").read_text())


def fleet_runs(scenarios: dict[str, Any], wanted: Iterable[tuple[str, int]], cache: Path) -> list[FleetRun]:
    """One of each (scenario, seed). Killed, it goes on with those that are missing."""
    sources = b"".join(path.read_bytes() for path in SOURCES)
    jobs = []
    for name, seed in wanted:
        digest = hashlib.sha256(sources + json.dumps([scenarios[name], seed]).encode()).hexdigest()[:12]
        jobs.append((scenarios[name], seed, cache / f"fleet_{name}_{seed}_{digest}.json"))
    missing = [job for job in jobs if not job[2].exists()]
    if missing:
        cache.mkdir(parents=True, exist_ok=True)
        print(f"replaying {len(missing)} fleets", file=sys.stderr)
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_replay_and_keep, missing))
    return [FleetRun(**json.loads(kept.read_text())) for _, _, kept in jobs]


def _replay_and_keep(job: tuple[dict[str, Any], int, Path]) -> None:
    scenario, seed, kept = job
    new = kept.with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps(asdict(_replay(fleet.Fleet(scenario, seed), seed)), default=_plain))
    new.replace(kept)


def _replay(simulated: fleet.Fleet, seed: int) -> FleetRun:
    number = {test: index for index, test in enumerate(simulated.tests)}
    first: list[list[int]] = []
    confirmed: list[list[int]] = []

    def watch(night: int, outcome: Outcome) -> None:
        first.append(np.argsort(-outcome.ranks, kind="stable")[:TOP].tolist())
        confirmed.append([number[key.test] for key in outcome.confirmed])

    filed = replay_fleet(simulated, seed, Rules(), watch)
    return FleetRun(fleet.judge(simulated, filed), first, confirmed)


def _plain(number: np.generic) -> Any:
    return number.item()
