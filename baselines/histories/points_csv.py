"""Format `csv`: one row a point, with the columns series, value and, if there are, i, time (or date), commit, unit."""

import re
from pathlib import Path

from baselines.errors import BaselineError
from baselines.histories.csv_files import Rows, open_csv
from baselines.histories.gathering import Gathering

_VALUE = "value"
_NO_VALUE = {"", "nan", "na", "n/a", "null", "none"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}\s*", re.ASCII)


def read(path: Path, value: str | None) -> Gathering:
    """`value` names another column than `value`."""
    if path.is_dir():
        raise BaselineError(f"{path}: is a folder; name a CSV file, or add --format sandmark or --format asv")
    gathering = Gathering()
    with open_csv(path) as file:
        rows = Rows(file, path)
        series = rows.required("series", "is this a file of another --format?")
        values = rows.required(value or _VALUE, "--value-column names the column of the values")
        position, time, commit, unit = (
            rows.column("i"),
            rows.column("time", "date"),
            rows.column("commit"),
            rows.column("unit"),
        )
        for row in rows:
            if not row[series]:
                raise rows.error("series", "empty; every row needs the name of its series")
            gathering.add(
                row[series],
                _number(row[values], value or _VALUE, rows),
                position=None if position is None else _integer(row[position], rows),
                time="" if time is None else row[time],
                commit="" if commit is None else row[commit],
                unit="" if unit is None else row[unit],
            )
    return gathering


def _number(text: str, column: str, rows: Rows) -> float | None:
    try:
        if "_" not in text:  # Python takes 1_000 for a number, no other program does
            return float(text)
    except ValueError:
        if text.strip().lower() in _NO_VALUE:
            return None
    raise rows.error(column, f"{text[:80]!r} is no number; write 1.25 or 3e-4, or nothing for a night without a value")


def _integer(text: str, rows: Rows) -> int:
    if not _INTEGER.fullmatch(text):
        raise rows.error("i", f"{text[:80]!r} is no whole number; i counts the nights of a series: 0, 1, 2 ...")
    return int(text)
