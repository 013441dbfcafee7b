"""The files that go into a score: a reference by name or path, and results that may lie in several files."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from score.errors import ScoreError
from score.taxonomy import PUBLISHED
from torchbenchmark.formats import Measurements, read_measurements

REFERENCES = Path(__file__).parent / "reference"


def reference_names() -> list[str]:
    return sorted(path.stem for path in REFERENCES.glob("*.yaml") if path != PUBLISHED)


def find_reference(name_or_path: str) -> Path:
    """The file of a reference of this package by its name (v1.1), or any file by its path."""
    if name_or_path in reference_names():
        return REFERENCES / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if not path.exists():
        raise ScoreError(
            f"reference {name_or_path}: no such file, nor a built-in reference of that name; "
            f"built in: {', '.join(reference_names())}"
        )
    return path


def read_results(paths: Sequence[Path]) -> list[Measurements]:
    return [read_measurements(path) for path in paths]


def join_latencies(paths: Sequence[Path], parts: Iterable[Measurements]) -> dict[str, float]:
    """The tests of all files together, say of a CPU and a CUDA run. A test in two of them is an error: which counts?"""
    joined: dict[str, float] = {}
    origin: dict[str, Path] = {}
    for path, part in zip(paths, parts, strict=True):
        for test, seconds in part.latencies.items():
            if test in joined:
                raise ScoreError(f"{test} is in {origin[test]} and in {path}; give the results of one run at a time")
            joined[test] = seconds
            origin[test] = path
    return joined
