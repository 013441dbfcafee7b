"""Format `sandmark`: the *.summary.bench files of ocaml-bench/sandmark-nightly, or a CSV of points made from them.

Folders HOST/YYYYMMDD_HHMMSS/COMMIT/VARIANT_1.KIND.summary.bench (without HOST or COMMIT in old ones). A file of `orun`
has a JSON object a line with name and time_secs, a file of `perfstat` blocks of text as `perf stat` prints them, both
perhaps after a line of JSON about the machine.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from baselines.errors import BaselineError
from baselines.histories import points_csv
from baselines.histories.gathering import Gathering
from baselines.histories.history import Described
from baselines.histories.json_files import number, parse, read_text

_ENDING = ".summary.bench"
_TIMESTAMP = re.compile(r"\d{8}_\d{6}")
_COMMIT = re.compile(r"[0-9a-f]{7,40}|head")
_COMMAND = re.compile(r"\s*Performance counter stats for '(.*)':\s*")
_ELAPSED = re.compile(r"\s*([0-9][0-9.,]*) seconds time elapsed.*")
_PINNED = re.compile(r"taskset\s+(?:--cpu-list|-c)\s+\S+\s+")
_SECONDS = "time_secs"  # of orun; wall time, as perf stat's


@dataclass(frozen=True)
class _Run:
    """One file: one run of all programs with one compiler."""

    host: str
    kind: str  # orun, perfstat
    variant: str
    time: str
    commit: str
    path: Path

    @property
    def place(self) -> tuple[str, str, str]:
        return self.host, self.kind, self.variant


def read(path: Path, value: str | None) -> Gathering:
    """`value` names another member of orun's objects than time_secs, such as maxrss_kB."""
    if path.is_file() and not path.name.endswith(_ENDING):
        return points_csv.read(path, value)
    files = [path] if path.is_file() else sorted(path.rglob(f"*{_ENDING}"))
    if not files:
        raise BaselineError(f"{path}: no *{_ENDING} in it; name a folder of sandmark-nightly, or a CSV of points")
    gathering = Gathering()
    runs = []
    for file in files:
        try:
            runs.append(_run_of(file))
        except BaselineError as error:
            gathering.left_out.append(str(error))
    runs.sort(key=lambda run: (*run.place, run.time, str(run.path)))
    gathering.add_in_order(runs, partial(_add_run, value))
    return gathering


def _run_of(path: Path) -> _Run:
    folders = path.parent.parts
    place = next((index for index in reversed(range(len(folders))) if _TIMESTAMP.fullmatch(folders[index])), None)
    if place is None:
        raise BaselineError(f"{path}: no folder YYYYMMDD_HHMMSS above it, which tells when it ran")
    try:
        time = datetime.strptime(folders[place], "%Y%m%d_%H%M%S")
    except ValueError as error:
        raise BaselineError(f"{path}: {folders[place]} is no time") from error
    stem, _, kind = path.name.removesuffix(_ENDING).rpartition(".")
    host = folders[place - 1] if place else ""
    return _Run(
        host="" if host in ("sequential", "parallel", "perfstat") else host,
        kind=kind,
        variant=_variant(re.sub(r"_\d+$", "", stem)),
        time=f"{time:%Y-%m-%dT%H:%M:%S}",
        commit=next((name for name in folders[place + 1 :] if _COMMIT.fullmatch(name)), ""),
        path=path,
    )


def _variant(name: str) -> str:
    """The trunk is one history: 5.1.0+trunk and, later, 5.2.0+trunk. A release is itself."""
    version, _, rest = name.partition("+")
    return rest if rest.startswith("trunk") and version else name


def _add_run(member: str | None, gathering: Gathering, run: _Run, position: int) -> None:
    text = read_text(run.path)
    if run.kind == "perfstat":
        if member is not None:
            raise BaselineError(f"{run.path}: perf stat's files give the time elapsed; leave --value-column out")
        points, unit = list(_perfstat(text)), "s"
    else:
        points = list(_orun(text, run.path, member or _SECONDS))
        unit = "s" if (member or _SECONDS).endswith("_secs") else ""
    for name, value in points:
        series = "/".join(part for part in (run.host, run.kind, run.variant, name) if part)
        gathering.describe(series, Described(unit, None))
        gathering.add(series, value, position=position, time=run.time, commit=run.commit)


def _orun(text: str, path: Path, member: str) -> Iterator[tuple[str, float | None]]:
    """An object without a name is about the machine; a program that failed has no time."""
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{line_number}"
        found = parse(line, where, "one JSON object a line, as orun writes")
        if isinstance(found, dict) and isinstance(found.get("name"), str):
            yield found["name"], number(found.get(member), f"{where}: key {member}")


def _perfstat(text: str) -> Iterator[tuple[str, float | None]]:
    """A program that was killed has its counters and no time elapsed."""
    program: str | None = None
    for line in text.split("\n"):
        if command := _COMMAND.fullmatch(line):
            if program is not None:
                yield program, None
            program = _program(command[1])
        elif program is not None and (elapsed := _ELAPSED.fullmatch(line)):
            yield program, float(elapsed[1].replace(",", ""))
            program = None
    if program is not None:
        yield program, None


def _program(command: str) -> str:
    """`taskset --cpu-list 5 ./fft.exe 12` is `fft 12`."""
    words = _PINNED.sub("", command, count=1).split()
    if words:
        words[0] = words[0].removeprefix("./").removesuffix(".exe")
    return " ".join(words)
