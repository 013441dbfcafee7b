"""series.csv: what the series of any format are. Columns series and, if there are, unit and direction."""

from pathlib import Path

from baselines.histories.csv_files import Rows, open_csv
from baselines.histories.history import Better, Described

_BETTER: dict[str, Better | None] = {
    "": None,
    "lower": "lower",
    "higher": "higher",
    "unknown": "unknown",
}


def read_series(path: Path) -> dict[str, Described]:
    """{series: its unit and which direction is better}. Other columns are for people."""
    found: dict[str, Described] = {}
    with open_csv(path) as file:
        rows = Rows(file, path)
        series, unit, direction = rows.required("series"), rows.column("unit"), rows.column("direction")
        for row in rows:
            name = row[series]
            if not name:
                raise rows.error("series", "empty; every row needs the name of its series")
            if name in found:
                raise rows.error("series", f"{name!r} stands twice; keep one row a series")
            text = "" if direction is None else row[direction].strip().lower()
            if text not in _BETTER:
                raise rows.error(
                    "direction", f"{text[:80]!r} is not lower, higher or unknown: which values are better?"
                )
            found[name] = Described((row[unit] or None) if unit is not None else None, _BETTER[text])
    return found
