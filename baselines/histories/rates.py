"""Whether a unit is a rate, of which more is better: steps/s, MB/s, ops/ms, iter/sec."""

import re

_RATE = re.compile(r"\S.*(/\s*|\bper\s+)(ns|us|µs|μs|ms|s|sec|secs|second|seconds|min|minute|h|hour)", re.IGNORECASE)
_SHORT = {"fps", "ips", "ops", "qps", "rps", "tps", "hz", "khz", "mhz", "ghz", "flops"}


def is_rate(unit: str) -> bool:
    unit = unit.strip()
    return unit.lower() in _SHORT or _RATE.fullmatch(unit) is not None
