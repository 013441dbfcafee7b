"""Format `github-action-benchmark`: the data.js that benchmark-action/github-action-benchmark keeps on its pages.

A script that sets window.BENCHMARK_DATA to {entries: {suite: [{commit, date, tool, benches: [{name, value, unit}]}]}},
runs in the order in which they came. Some keep the object alone, as data.json.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from baselines.errors import BaselineError
from baselines.histories.gathering import Gathering
from baselines.histories.history import Better, Described
from baselines.histories.json_files import member, number, parse, read_text
from baselines.histories.rates import is_rate

_ASSIGNMENT = re.compile(r"\s*(?:window\s*\.\s*)?BENCHMARK_DATA\s*=\s*")
_EXPECTED = "window.BENCHMARK_DATA = {...}"
_HIGHER = {"benchmarkjs", "pytest", "customBiggerIsBetter"}  # operations a second, or so named
_LOWER = {"customSmallerIsBetter"} | {
    *("benchmarkdotnet", "benchmarkluau", "cargo", "catch2", "go", "googlecpp", "jmh", "julia"),
}


def read(path: Path, value: str | None) -> Gathering:
    if value is not None:
        raise BaselineError(f"{path}: has one value a point; --value-column is for --format csv and sandmark")
    if path.is_dir():
        path = path / "data.js"
    text = read_text(path)
    found = _ASSIGNMENT.match(text)
    document = parse(text[found.end() if found else 0 :].rstrip().rstrip(";"), str(path), _EXPECTED)
    gathering = Gathering()
    for suite, entries in member(document, "entries", dict, str(path)).items():
        where = f"{path}: key entries.{suite}"
        if not isinstance(entries, list):
            raise BaselineError(f"{where}: expected a list of runs; is this file of another --format?")
        for index, entry in enumerate(entries):
            _add_run(gathering, suite, index, entry, f"{where}.{index}")
    return gathering


def _add_run(gathering: Gathering, suite: str, index: int, entry: Any, where: str) -> None:
    """The number of the run in its suite is the position of its points: a run that lacks a benchmark is a gap in it."""
    benches = member(entry, "benches", list, where)
    commit = entry.get("commit")
    commit = commit if isinstance(commit, dict) else {}
    time = _time(entry.get("date")) or _text(commit.get("timestamp"))
    tool = _text(entry.get("tool"))
    for place, bench in enumerate(benches):
        key = f"{where}.benches.{place}"
        series = f"{suite}/{member(bench, 'name', str, key)}"
        unit = _text(bench.get("unit"))
        gathering.describe(series, Described(unit, _better(tool, unit)))
        gathering.add(
            series,
            number(bench.get("value"), f"{key}.value"),
            position=index,
            time=time,
            commit=_text(commit.get("id")),
            unit=unit,
        )


def _better(tool: str, unit: str) -> Better:
    """By the tool's own name where it says so, then by the unit: several tools give times or rates."""
    if tool in _HIGHER:
        return "higher"
    if tool != "customSmallerIsBetter" and is_rate(unit):
        return "higher"
    return "lower" if tool in _LOWER else "unknown"


def _time(date: Any) -> str:
    """ISO time of milliseconds since 1970."""
    if not isinstance(date, (int, float)) or isinstance(date, bool):
        return ""
    try:
        return f"{datetime.fromtimestamp(date / 1000, UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
