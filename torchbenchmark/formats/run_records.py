"""Times out of a run's records: per test the mean over all timed iterations of all processes that ended ok."""

import json
import math

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats.measurements import Measurements, Provenance, checked_seconds, checked_test_id, file_name
from torchbenchmark.records import Run, Status, decode_run

CHANNEL = "latency"

# Of what an environment knows, what people ask first.
_MACHINE = ("gpu.name", "gpu.driver_version", "gpu.power.limit", "gpu.clocks.max.sm", "cpu", "cpus", "kernel")
_GZIP_MAGIC = b"\x1f\x8b"


def recognises(content: bytes) -> bool:
    """Records are the only gzipped format, and the only one whose first line alone is an object with a kind."""
    if content.startswith(_GZIP_MAGIC):
        return True
    try:
        header = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "kind" in header


def read(content: bytes, source: str) -> Measurements:
    """The file of a run. Raises BenchmarkError with file and line for what is not one."""
    return measurements_of(decode_run(content, source), source)


def measurements_of(run: Run, source: str) -> Measurements:
    """The tests that ended ok. One without a sample of the latency is left out: to a score it is a missing test."""
    latencies = {}
    for record in run.records:
        samples = record.samples(CHANNEL) if record.status is Status.OK else []
        if not samples:
            continue
        where = f"{source}: {checked_test_id(record.test, source)}"
        latencies[record.test] = math.fsum(checked_seconds(sample, where) for sample in samples) / len(samples)
    if not latencies:
        raise BenchmarkError(
            f"{source}: none of the {len(run.header.plan)} planned tests ended ok with a {CHANNEL}; "
            "see `reason` in its records, and measure again"
        )
    return Measurements(latencies, _provenance(run, source))


def _provenance(run: Run, source: str) -> Provenance:
    header = run.header
    facts = header.environment.facts
    machine = [f"{name.removeprefix('gpu.')} {facts[name]}" for name in _MACHINE if name in facts]
    locks = {name.removeprefix("lock."): version for name, version in facts.items() if name.startswith("lock.")}
    versions = header.build.libraries | header.build.wheels | locks | {"python": header.build.python}
    return Provenance(
        origin=file_name(source),
        build=f"{header.build.subject} {header.build.version}",
        measured=header.started.date().isoformat(),
        machine_class=header.machine_class,
        machine=", ".join(machine),
        versions=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        command=_command(run),
    )


def _command(run: Run) -> str:
    """What measures the same again, as far as a header knows it."""
    header, measuring = run.header, run.header.measuring
    options = {"--suite": header.suite, "--device": header.device, "--rounds": header.rounds}
    options |= {"--processes": header.processes, "--budget": measuring.budget_s, "--threads": measuring.threads}
    words = [
        f"{option} {value:g}" if isinstance(value, float) else f"{option} {value}" for option, value in options.items()
    ]
    chosen = [word if word.startswith("--") else f"--filter '{word}'" for word in header.selection]
    return " ".join(["torchbench run", *words, *chosen])
