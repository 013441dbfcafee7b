"""The formats of histories: one line here and one file each."""

from collections.abc import Callable
from pathlib import Path

from baselines.errors import BaselineError
from baselines.histories import asv, github_action_benchmark, points_csv, sandmark
from baselines.histories.gathering import Gathering
from baselines.histories.history import Reading
from baselines.histories.series_csv import read_series

# Given a path and the name of the column of values, if the user named one.
FORMATS: dict[str, Callable[[Path, str | None], Gathering]] = {
    "csv": points_csv.read,
    "sandmark": sandmark.read,
    "github-action-benchmark": github_action_benchmark.read,
    "asv": asv.read,
}


def read_histories(
    points: Path, format_name: str = "csv", *, series: Path | None = None, value_column: str | None = None
) -> Reading:
    """The histories in a file or folder. Raises BaselineError naming file and line or key.

    Of a folder, files that cannot be read are left out and told as long as others can: runs are killed as they write.
    """
    if format_name not in FORMATS:
        raise BaselineError(f"--format {format_name}: no such format; known are {', '.join(FORMATS)}")
    if not points.exists():
        raise BaselineError(f"{points}: no such file or folder; check the name")
    described = read_series(series) if series is not None else None
    gathering = FORMATS[format_name](points, value_column)
    if not gathering.series:
        why = f"; left out: {gathering.left_out[0]}" if gathering.left_out else ""
        raise BaselineError(f"{points}: no points in it{why}")
    return gathering.histories(described)
