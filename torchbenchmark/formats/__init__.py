"""Import and export of results, one file per format. `read_latencies` reads them all."""

from torchbenchmark.formats.latencies import read_latencies, read_measurements
from torchbenchmark.formats.measurements import Measurements, Provenance
from torchbenchmark.formats.reference_yaml import format_reference, write_reference

__all__ = [
    "Measurements",
    "Provenance",
    "format_reference",
    "read_latencies",
    "read_measurements",
    "write_reference",
]
