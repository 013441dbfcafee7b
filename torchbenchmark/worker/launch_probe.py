"""The host probe of GPU tests: a hundred launches of an empty kernel and a wait for the device.

How fast a host can launch sets the latency of most small tests, and on a virtual machine that speed has modes that last
as long as a process. The probe owes nothing to the build, or a slower dispatcher would excuse itself: it calls the
driver, which is the machine's, through ctypes. An empty kernel touches no memory, so the caches stay as they are.
"""

import ctypes
import time

LAUNCHES = 100
# The oldest virtual architecture that every driver in use translates for its GPU.
EMPTY_KERNEL = b""".version 6.0
.target sm_52
.address_size 64
.visible .entry nothing() { ret; }
\0"""


class LaunchProbe:
    """Ready to run once made; the calling thread must have a CUDA context (torch's, after its first tensor)."""

    def __init__(self, driver: ctypes.CDLL | None = None) -> None:
        """Raises OSError if the driver is not there or refuses the kernel."""
        self.driver = driver if driver is not None else ctypes.CDLL("libcuda.so.1")
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), EMPTY_KERNEL)
        self._call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"nothing")
        self.run()

    def run(self) -> float:
        """Wall seconds of the launches and the wait, some tenths of a millisecond."""
        launch, kernel = self.driver.cuLaunchKernel, self.kernel
        began = time.perf_counter()
        for _ in range(LAUNCHES):
            # grid, block, shared memory, the default stream, no parameters
            failed = launch(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        failed = failed or self.driver.cuCtxSynchronize()
        seconds = time.perf_counter() - began
        if failed:
            raise OSError(f"the CUDA driver refused the probe's launches with error {failed}")
        return seconds

    def _call(self, name: str, *arguments: object) -> None:
        if (error := getattr(self.driver, name)(*arguments)) != 0:
            raise OSError(f"the CUDA driver refused {name} with error {error}")
