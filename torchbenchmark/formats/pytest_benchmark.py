"""Times out of the JSON that pytest-benchmark saves, the format of TorchBench V0 to V2.

https://pytest-benchmark.readthedocs.io: `benchmarks[].name` and `benchmarks[].stats.mean`, in seconds. A benchmark that
failed has no entry.
"""

import json

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats.measurements import (
    EXPECTED_FORMATS,
    Measurements,
    Provenance,
    checked_seconds,
    checked_test_id,
    file_name,
)

# V1 marks a jit test of a frozen module so; to the score it is the same test.
_FROZEN = "-freeze]"


def recognises(content: bytes) -> bool:
    """Any JSON: no other format is a whole JSON document, so what is wrong with it is best said here."""
    return content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def read(content: bytes, source: str) -> Measurements:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(
            f"{source}: not a JSON document ({error}); it is damaged, cut off or of another program: "
            f"expected {EXPECTED_FORMATS}"
        ) from error
    return measurements_of(document, source)


def measurements_of(document: object, source: str) -> Measurements:
    benchmarks = document.get("benchmarks") if isinstance(document, dict) else None
    if not isinstance(benchmarks, list):
        raise BenchmarkError(f"{source}: JSON without a list 'benchmarks'; expected {EXPECTED_FORMATS}")
    if not benchmarks:
        raise BenchmarkError(f"{source}: key benchmarks: empty; every benchmark failed or none ran, measure again")
    latencies: dict[str, float] = {}
    for index, benchmark in enumerate(benchmarks):
        key = f"{source}: key benchmarks.{index}"
        test = checked_test_id(without_freeze(_member(benchmark, "name", key)), f"{key}.name")
        if test in latencies:
            raise BenchmarkError(f"{key}.name: {test} stands twice; keep one entry a test")
        mean = _member(_member(benchmark, "stats", key), "mean", f"{key}.stats")
        latencies[test] = checked_seconds(mean, f"{key}.stats.mean ({test})")
    return Measurements(latencies, _provenance(document, source))


def without_freeze(name: object) -> object:
    """The name without one trailing `-freeze` inside its brackets."""
    return name.removesuffix(_FROZEN) + "]" if isinstance(name, str) and name.endswith(_FROZEN) else name


def _member(container: object, name: str, key: str) -> object:
    if not isinstance(container, dict):
        raise BenchmarkError(f"{key}: expected an object with {name!r}, found {type(container).__name__}")
    if name not in container:
        raise BenchmarkError(f"{key}: {name!r} is missing; save the file again with pytest-benchmark")
    return container[name]


def _provenance(document: dict, source: str) -> Provenance:
    """Free text in this format: what is there in the usual place is told, what is not stays empty."""
    machine = document.get("machine_info")
    machine = machine if isinstance(machine, dict) else {}
    cpu = machine.get("cpu")
    version = _text(machine.get("pytorch_version"))
    return Provenance(
        origin=file_name(source),
        build=f"torch {version}" if version else "",
        measured=_text(document.get("datetime"))[:10],
        machine_class=_text(cpu.get("brand_raw")) if isinstance(cpu, dict) else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
