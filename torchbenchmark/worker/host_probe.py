"""The host probe: a fixed bit of CPU work that says how fast this host is at this moment.

On a shared machine the speed of a virtual CPU changes by half for seconds or minutes, and everything on it alike. Work
that is the same in every build, measured beside each timed unit, tells such a phase from a slower build. It must owe
nothing to the build, or a slowdown in the build would hide itself: numpy and the interpreter, never torch.
"""

import time

import numpy

REFERENCE_S = 0.001  # the speed of host that times are adjusted to: the probe takes this long there
# How the logarithm of a test's CPU time follows that of the probe. Fitted to the smoke suite on a shared CPU that had
# two speeds (docs/measuring.md): .56 to .95 by test, so an adjusted time is off by at most a seventh in the slow phase.
SLOPE = 0.77

MATRIX = 64  # rows and columns: three of them fit into the first cache
PRODUCTS = 90
ADDITIONS = 9000


class HostProbe:
    def __init__(self) -> None:
        self.left = numpy.linspace(0.0, 1.0, MATRIX * MATRIX, dtype=numpy.float32).reshape(MATRIX, MATRIX)
        self.product = numpy.empty_like(self.left)
        self.run()

    def run(self) -> float:
        """CPU seconds of the probe, about a millisecond: half arithmetic, half the interpreter's own work."""
        left, product = self.left, self.product
        began = time.process_time()
        for _ in range(PRODUCTS):
            numpy.matmul(left, left, out=product)
        total = 0
        for number in range(ADDITIONS):
            total += number
        return time.process_time() - began


def at_reference_speed(seconds: float, probe_seconds: float) -> float:
    """What CPU seconds would be on a host where the probe takes REFERENCE_S."""
    return seconds * (REFERENCE_S / probe_seconds) ** SLOPE
