"""Requests, and results as a measuring job leaves them: honest ones, of which a test spoils what it wants."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from made_profiles import side
from night_factory import UNITS, channel, run_of

from bot.benchmark_request import BenchmarkRequest
from torchbenchmark.paired.pairs_file import SIDES, MeasuredSide, Pair, PairedTest, PairsHeader
from torchbenchmark.profiles.process_profile import ProfiledProcess
from torchbenchmark.records import Process, Status, to_line

SLOW, SAME, FINE = (f"test_eval[{model}-cpu-eager]" for model in ("dlrm", "resnet18", "hf_Bert"))
BASE, HEAD, LATER = "b" * 40, "a" * 40, "c" * 40
KEY = "0123456789abcdef"
NOW = datetime(2026, 11, 29, 5, tzinfo=UTC)


def make_request(tests: Sequence[str] = (SLOW, SAME, FINE), **changes: object) -> BenchmarkRequest:
    facts: dict[str, Any] = {
        "key": KEY,
        "repository": "torch-owner/nightlies",
        "pull": 7,
        "comment": 12,
        "asked_by": "ada",
        "base": BASE,
        "head": HEAD,
        "head_repository": "torch-owner/nightlies",
        "suite": "smoke",
        "tests": tuple(tests),
        "device": "cpu",
        "pairs": 6,
        "budget_minutes": 30,
    }
    return BenchmarkRequest(**{**facts, **changes})


def make_header(request: BenchmarkRequest, **changes: object) -> PairsHeader:
    run = run_of(1, dict.fromkeys(request.tests, 1.0)).header
    fields = ("run", "suite", "machine_class", "started", "seed", "measuring", "environment", "harness")
    facts: dict[str, Any] = {
        "tests": tuple(PairedTest(base=one.test, head=one.test, workload=one.workload) for one in run.plan),
        "device": request.device,
        "rounds": request.pairs,
        "processes": 1,
        "sequential": True,
        "base": MeasuredSide(asked="git:x@base", build=run.build),
        "head": MeasuredSide(asked="git:x@head", build=run.build),
        **{name: getattr(run, name) for name in fields},
    }
    return PairsHeader(**{**facts, **changes})


def make_process(number: int, time: float, status: Status = Status.OK, reason: str = "") -> Process:
    values = {"cpu_time": time, "latency": 1.1 * time, "operators": 7.0} if status is Status.OK else {}
    return Process(
        round=number,
        index=0,
        zygote=f"z{number}",
        start_method="fork",
        status=status,
        reason=reason,
        started=NOW,
        seconds=1.0,
        channels={name: channel(value, UNITS[name]) for name, value in values.items()},
    )


def make_pairs(
    request: BenchmarkRequest,
    ratios: Mapping[str, float] = {},
    failing: Mapping[str, str] = {},
    noise: float = 0.001,
) -> list[Pair]:
    """Of each test all pairs: head takes so many times as long (1 unless told), or fails for a reason."""
    draw = np.random.default_rng(5)
    pairs = []
    for number in range(1, request.pairs + 1):
        for test in request.tests:
            base, head = (float(one) for one in np.exp(draw.normal(0, noise, 2)))
            of_head = make_process(number, head * ratios.get(test, 1.0))
            if test in failing:
                of_head = make_process(number, 1.0, Status.ERROR, failing[test])
            sides = {"base": make_process(number, base), "head": of_head}
            pairs.append(Pair(test=test, round=number, index=0, order=SIDES, **sides))
    return pairs


def make_profiles(request: BenchmarkRequest, slower: str, pairs: int = 6) -> list[PairsHeader | Pair]:
    """A header and pairs of profiles of the first test, in which an operator of this name takes a half longer."""
    random = np.random.default_rng(6)
    draw = lambda: float(np.exp(random.normal(0, 0.005)))  # noqa: E731 - handed on
    lines: list[PairsHeader | Pair] = [make_header(request, rounds=pairs, profiled=True, sequential=False)]
    for number in range(1, pairs + 1):
        sides = {}
        for name, time in zip(SIDES, (200.0, 300.0), strict=True):
            found = side(draw, {slower: (2, time), "aten::add": (6, 60)})
            plain = make_process(number, found.channels["latency"] / 1.1)
            sides[name] = ProfiledProcess(**dict(plain), profile=found.profile)
        lines.append(Pair(test=request.tests[0], round=number, index=0, order=SIDES, **sides))
    return lines


def built(side: str, commit: str, **changes: object) -> dict[str, object]:
    facts: dict[str, object] = {"kind": "build of a side", "schema": 1, "side": side, "commit": commit}
    return {**facts, "state": "built", "interpreter": "/b/python", "seconds": 60.0, **changes}


def measured(**changes: object) -> dict[str, object]:
    facts: dict[str, object] = {"kind": "measuring of a request", "schema": 1, "key": KEY, "part": 4, "parts": 4}
    return {**facts, "state": "measured", "reason": "", "seconds": 300.0, **changes}


def write_results(
    folder: Path,
    request: BenchmarkRequest,
    ratios: Mapping[str, float] = {},
    failing: Mapping[str, str] = {},
    noise: float = 0.001,
    **header: object,
) -> Path:
    """A folder of results of a request."""
    folder.mkdir(parents=True)
    lines = [make_header(request, **header), *make_pairs(request, ratios, failing, noise)]
    (folder / "pairs.jsonl").write_text("".join(f"{to_line(line)}\n" for line in lines))
    (folder / "base.json").write_text(json.dumps(built("base", request.base)))
    (folder / "head.json").write_text(json.dumps(built("head", request.head)))
    (folder / "measured.json").write_text(json.dumps(measured()))
    return folder
