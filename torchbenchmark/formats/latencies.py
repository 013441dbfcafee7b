"""One reader for every format of results, told apart by what is in the file, never by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats import pytest_benchmark, reference_yaml, run_records
from torchbenchmark.formats.measurements import EXPECTED_FORMATS, Measurements


@dataclass(frozen=True)
class Format:
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str], Measurements]


# In the order of asking: records are JSON line by line, so they come before JSON. A new format is one line here.
FORMATS = (
    Format(run_records.recognises, run_records.read),
    Format(pytest_benchmark.recognises, pytest_benchmark.read),
)


def read_measurements(path: Path) -> Measurements:
    """Times and provenance of a file in any known format. Raises BenchmarkError naming file and line or key."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}; check the name") from error
    if not content.strip():
        raise BenchmarkError(f"{path}: empty; expected {EXPECTED_FORMATS}")
    for known in FORMATS:
        if known.recognises(content):
            return known.read(content, str(path))
    # YAML has no mark of its own: any text might be it.
    return reference_yaml.read(path)


def read_latencies(path: Path) -> dict[str, float]:
    """{test id: mean seconds per iteration} of a file in any known format."""
    return read_measurements(path).latencies
