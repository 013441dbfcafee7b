"""The host probe of GPU tests, against a driver that only notes what it is asked."""

import subprocess
import sys
from pathlib import Path

import pytest

from torchbenchmark.worker import launch_probe
from torchbenchmark.worker.launch_probe import EMPTY_KERNEL, LAUNCHES, LaunchProbe


class Driver:
    """Stands for libcuda; `failing` names the call that gives error 700."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.calls: list[str] = []

    def __getattr__(self, name: str):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: object) -> int:
            self.calls.append(name)
            return 700 if name == self.failing else 0

        return call


def test_a_run_is_a_hundred_launches_and_one_wait():
    driver = Driver()
    probe = LaunchProbe(driver)
    driver.calls.clear()
    assert probe.run() > 0
    assert driver.calls == ["cuLaunchKernel"] * LAUNCHES + ["cuCtxSynchronize"]


def test_the_kernel_is_loaded_and_run_once_before_anything_is_timed():
    driver = Driver()
    LaunchProbe(driver)
    assert driver.calls[:2] == ["cuModuleLoadData", "cuModuleGetFunction"]
    assert driver.calls.count("cuCtxSynchronize") == 1


@pytest.mark.parametrize("failing", ["cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuCtxSynchronize"])
def test_a_driver_that_refuses_is_told_with_its_error(failing):
    with pytest.raises(OSError, match=r"the CUDA driver refused .* with error 700"):
        LaunchProbe(Driver(failing))


def test_a_machine_without_a_driver_is_an_error_of_the_system():
    try:
        import ctypes

        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(OSError, match="libcuda"):
            LaunchProbe()
    else:
        pytest.skip("this machine has the CUDA driver")


def test_the_kernel_is_text_that_ends_in_a_zero_as_the_driver_wants_it():
    assert EMPTY_KERNEL.endswith(b"}\n\0")
    assert EMPTY_KERNEL.count(b"\0") == 1


def test_the_probe_owes_nothing_to_the_build():
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('launch_probe', {str(Path(launch_probe.__file__))!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
