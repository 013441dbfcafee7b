"""The flat reference of a score, as TorchBench V1 writes it: `<test id>: {norm: seconds}`, comments in the head."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats.measurements import (
    EXPECTED_FORMATS,
    Measurements,
    Provenance,
    checked_seconds,
    checked_test_id,
    file_name,
)
from torchbenchmark.yaml_files import load_yaml

_TITLE = (
    "Reference of a score: mean seconds per iteration of each test. Written by `torchbench score --make-reference`."
)
_ORIGIN = "Origin: "
_OF_THE_HEAD = ("#", "---", "%")  # comments, and how a document of YAML may begin


def read(path: Path) -> Measurements:
    """The content of the file, with the comments of its head: a reference that is made of it goes on saying them."""
    document = load_yaml(path)
    lines = (line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
    head = itertools.takewhile(lambda line: line.startswith(_OF_THE_HEAD) or not line, lines)
    lines = (line.removeprefix("#").strip() for line in head if line.startswith("#"))
    return _measurements_of(document, str(path), tuple(line for line in lines if line not in ("", _TITLE)))


def _measurements_of(document: object, source: str, head: tuple[str, ...]) -> Measurements:
    if document is None:
        raise BenchmarkError(f"{source}: no entry in it; expected {EXPECTED_FORMATS}")
    if not isinstance(document, dict):
        raise BenchmarkError(f"{source}: nothing torchbench can read; expected {EXPECTED_FORMATS}")
    latencies = {}
    for name, entry in document.items():
        test = checked_test_id(name, f"{source}: key {name}")
        if not isinstance(entry, dict) or set(entry) != {"norm"}:
            raise BenchmarkError(f"{source}: key {test}: expected exactly {{norm: seconds}} below it")
        latencies[test] = checked_seconds(entry["norm"], f"{source}: key {test}.norm")
    if not latencies:
        raise BenchmarkError(f"{source}: no entry in it; expected {EXPECTED_FORMATS}")
    return Measurements(latencies, Provenance(file_name(source), head=head))


def format_reference(latencies: Mapping[str, float], provenances: Sequence[Provenance]) -> str:
    """The text of a reference file, sorted by test id. No clock goes in: the same results give the same bytes."""
    entries = {test: {"norm": float(seconds)} for test, seconds in latencies.items()}
    head = [_TITLE, *(line for one in provenances for line in _origin_lines(one))]
    return "".join(f"# {_one_line(line)}\n" for line in head) + yaml.safe_dump(entries, sort_keys=True, width=1000)


def write_reference(path: Path, latencies: Mapping[str, float], provenances: Sequence[Provenance]) -> None:
    text = format_reference(latencies, provenances)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(
            f"{path}: cannot be written: {error.strerror}; name a file in a folder of yours"
        ) from error


def _origin_lines(provenance: Provenance) -> list[str]:
    if provenance.head and provenance.head[0].startswith(_ORIGIN):
        return list(provenance.head)
    facts = (
        ("build", provenance.build),
        ("measured", provenance.measured),
        ("class", provenance.machine_class),
    )
    known = [f"{what} {value}" for what, value in facts if value]
    more = (("Machine", provenance.machine), ("Versions", provenance.versions), ("Command", provenance.command))
    return [
        "; ".join([f"{_ORIGIN}{provenance.origin}", *known]),
        *provenance.head,
        *(f"{what}: {value}" for what, value in more if value),
    ]


def _one_line(text: str) -> str:
    """A file name may hold a line break or a byte that YAML refuses, even in a comment."""
    return "".join(character if character.isprintable() else "?" for character in text)
