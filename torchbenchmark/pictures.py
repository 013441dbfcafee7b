"""Figures of matplotlib as files, PNG or SVG. matplotlib is imported only when one is drawn."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from torchbenchmark.errors import BenchmarkError, SentinelError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110


def require_matplotlib(error: type[SentinelError] = BenchmarkError) -> None:
    if find_spec("matplotlib") is None:
        raise error(
            "matplotlib is not installed, which draws the pictures: pip install 'torchbench-sentinel[pictures]', or "
            "pip install matplotlib"
        )


@contextmanager
def figure_of(
    path: Path, inches: tuple[float, float], salt: str, error: type[SentinelError] = BenchmarkError
) -> "Iterator[Figure]":
    """A figure to draw on, which is then written to `path`; the folder is made. The same figure and `salt` give the
    same bytes. Raises `error` if there is no matplotlib, or the file cannot be written or is of no kind it knows."""
    require_matplotlib(error)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a foreign name that no font has
        figure = Figure(figsize=inches, layout="constrained")
        yield figure
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
        except (OSError, ValueError) as problem:
            raise error(f"{path}: cannot be drawn: {problem}; name a .png or .svg file") from problem


def title_of(text: str, longest: int) -> str:
    """A title that is cut where a figure would end."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
