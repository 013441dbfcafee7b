"""Format `asv`: the results folder of airspeed velocity, benchmarks.json and one folder a machine with a file a commit.

Version 1 has {"results": {benchmark: number | null | {"result": [...], "params": [[...], ...]}}}, version 2 a list per
benchmark whose places "result_columns" names. A benchmark with parameters has one result for each combination, in the
order of itertools.product, and each is a series here.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from baselines.errors import BaselineError
from baselines.histories.gathering import Gathering
from baselines.histories.history import Better, Described
from baselines.histories.json_files import member, number, parse, read_text
from baselines.histories.rates import is_rate

_EXPECTED = "a results file of asv"
_UNITS = {"time": "seconds", "timeraw": "seconds", "mem": "bytes", "peakmem": "bytes"}  # by the name's beginning


@dataclass(frozen=True)
class _ResultFile:
    """One commit on one machine in one environment."""

    machine: str
    environment: str
    date: float  # of the commit, ms since 1970
    commit: str
    path: Path

    @property
    def place(self) -> tuple[str, str]:
        return self.machine, self.environment


@dataclass(frozen=True)
class _Point:
    benchmark: str
    arguments: str  # in brackets, or nothing
    value: float | None
    version: str  # of the benchmark


def read(path: Path, value: str | None) -> Gathering:
    if value is not None:
        raise BaselineError(f"{path}: has one value a point; --value-column is for --format csv and sandmark")
    root = path / "results" if (path / "results").is_dir() else path
    known = _known_benchmarks(root)
    gathering = Gathering()
    files = []
    for file in _paths(root):
        try:
            files.append(_result_file(file))
        except BaselineError as error:
            gathering.left_out.append(str(error))
    if not files and not gathering.left_out:
        raise BaselineError(
            f"{path}: no results in it; expected MACHINE/machine.json and files beside it, as asv keeps"
        )
    files.sort(key=lambda one: (*one.place, one.date, one.commit))
    gathering.add_in_order(files, partial(_add_file, known))
    return gathering


def _paths(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        raise BaselineError(f"{root}: not a folder; --format asv takes the results folder of asv")
    for machine in sorted(root.rglob("machine.json")):
        others = ("machine.json", "benchmarks.json")
        yield from (path for path in sorted(machine.parent.glob("*.json")) if path.name not in others)


def _result_file(path: Path) -> _ResultFile:
    document = _load(path)
    member(document, "results", dict, str(path))
    parameters = document.get("params")
    named = parameters.get("machine") if isinstance(parameters, dict) else None
    date = document.get("date")
    if not isinstance(date, (int, float)) or isinstance(date, bool):
        raise BaselineError(f"{path}: key date: expected milliseconds since 1970, the date of the commit")
    return _ResultFile(
        machine=named if isinstance(named, str) else path.parent.name,
        environment=str(document.get("env_name") or path.stem.partition("-")[2]),
        date=date,
        commit=str(document.get("commit_hash") or ""),
        path=path,
    )


def _load(path: Path) -> Any:
    return parse(read_text(path), str(path), _EXPECTED)


def _known_benchmarks(root: Path) -> dict[str, dict[str, Any]]:
    """Beside the machines' folders, or in a parent where one machine's folder was named. Old results lack it."""
    for path in (root / "benchmarks.json", root.parent / "benchmarks.json"):
        if path.is_file():
            document = parse(read_text(path), str(path), "the benchmarks.json of asv")
            if isinstance(document, dict):
                return {name: one for name, one in document.items() if isinstance(one, dict)}
            raise BaselineError(f"{path}: expected an object with the benchmarks")
    return {}


def _add_file(known: Mapping[str, dict[str, Any]], gathering: Gathering, file: _ResultFile, position: int) -> None:
    """All of the file or, if anything in it is wrong, nothing."""
    document = _load(file.path)  # again: all files of a long history need not be in memory at once
    time = _time(file.date)
    for point in [
        point for name, entry in document["results"].items() for point in _points(document, name, entry, file.path)
    ]:
        series = f"{file.machine}/{point.benchmark}{point.arguments} [{file.environment}]"
        gathering.describe(series, _described(point.benchmark, known.get(point.benchmark, {})))
        gathering.add(series, point.value, position=position, time=time, commit=file.commit, workload=point.version)


def _points(document: dict[str, Any], name: str, entry: Any, path: Path) -> list[_Point]:
    """One for each combination of parameters; none if all of them failed or nothing was built."""
    where = f"{path}: key results.{name}"
    result, parameters, version = _unpack(document, name, entry, where)
    if result is None:
        return []
    combinations = list(itertools.product(*parameters))
    if len(combinations) != len(result):
        raise BaselineError(f"{where}: {len(result)} results of {len(combinations)} combinations of parameters")
    return [
        _Point(name, f"({', '.join(map(str, combination))})" if combination else "", number(value, where), version)
        for combination, value in zip(combinations, result, strict=True)
    ]


def _unpack(
    document: dict[str, Any], name: str, entry: Any, where: str
) -> tuple[list[Any] | None, list[list[Any]], str]:
    """Results, the values of each parameter, and the version of the benchmark, of either version of the file."""
    if "result_columns" in document:
        if not isinstance(entry, list):
            raise BaselineError(f"{where}: expected a list, as result_columns says")
        row = dict(zip(document["result_columns"], entry, strict=False))
        result, parameters, version = row.get("result"), row.get("params"), row.get("version")
    else:
        row = entry if isinstance(entry, dict) else {"result": entry}
        versions = document.get("benchmark_version")
        version = versions.get(name) if isinstance(versions, dict) else None
        result, parameters = row.get("result"), row.get("params")
    parameters = parameters or []
    if not isinstance(parameters, list) or not all(isinstance(values, list) for values in parameters):
        raise BaselineError(f"{where}: params: expected a list of lists, the values of each parameter")
    if result is not None and not isinstance(result, list):
        result = [result]
    return result, parameters, str(version or "")


def _described(name: str, known: Mapping[str, Any]) -> Described:
    """asv takes less for better in everything; of a `track_` benchmark only its unit can tell."""
    method = name.rpartition(".")[2]
    kind = str(known.get("type") or "")
    prefix = method.partition("_")[0].lower()
    unit = str(known.get("unit") or _UNITS.get(prefix, ""))
    better: Better = "lower"
    if kind == "track" or (not kind and prefix not in _UNITS):
        better = "lower" if unit in _UNITS.values() else "higher" if is_rate(unit) else "unknown"
    return Described(unit, better)


def _time(date: float) -> str:
    try:
        return f"{datetime.fromtimestamp(date / 1000, UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""
