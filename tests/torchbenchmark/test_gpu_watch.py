"""What nvidia-smi tells of the GPU, and a run that goes on when it tells nothing."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbenchmark.gpu_watch import GpuWatch, Reading, faults, parse_reading, summarise
from torchbenchmark.records import GpuState

# As an H200 with driver 580 answers; the last ones as a virtual GPU and a failing one do.
BUSY = "1980, 3201, 41, 412.53, 0x0000000000000000"
IDLE = "345, 3201, 29, 76.18, 0x0000000000000001"
CAPPED = "1755, 3201, 63, 699.87, 0x0000000000000004"
HOT = "1200, 3201, 89, 520.10, 0x0000000000000068"


def reading(line: str, at: float = 0.0) -> Reading:
    found = parse_reading(line, at)
    assert found is not None
    return found


def test_a_line_is_clocks_temperature_power_and_reasons():
    assert reading(CAPPED, 7.0) == Reading(7.0, 1755.0, 3201.0, 63.0, 699.87, 4)


def test_what_a_gpu_does_not_tell_is_none():
    assert reading("1980, [N/A], 41, [Not Supported], 0x0") == Reading(0.0, 1980.0, None, 41.0, None, 0)
    assert reading("1980, 3201, 41, [Unknown Error], [N/A]").reasons is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "No devices were found",
        'Field "clocks_event_reasons.active" is not a valid field to query.',
        "[N/A], [N/A], [N/A], [N/A], [N/A]",
        "1980, 3201, 41, 412.53",
        "1980, 3201, 41, 412.53, 0x0, more",
        "Unable to determine the device handle for GPU0: 0000:00:07.0: GPU is lost.  Reboot, to recover, this, GPU",
    ],
)
def test_a_line_that_tells_nothing_is_no_reading(line):
    assert parse_reading(line, 0.0) is None


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e300"])
def test_a_number_that_no_gpu_has_is_none(number):
    assert reading(f"{number}, 3201, 41, 412.53, 0x0").clock_sm_mhz is None


def test_readings_become_ranges_of_the_clocks_and_the_highest_of_the_rest():
    state = summarise([reading(BUSY), reading(CAPPED), reading("[N/A], 1593, [N/A], [N/A], 0x0")])
    assert state == GpuState(
        readings=3,
        clock_sm_mhz=(1755.0, 1980.0),
        clock_mem_mhz=(1593.0, 3201.0),
        temperature_c=63.0,
        power_w=699.87,
        throttled=("sw_power_cap",),
    )


def test_no_readings_are_no_state():
    assert summarise([]) is None


def test_an_idle_gpu_and_clocks_that_were_set_are_no_throttling():
    assert summarise([reading(IDLE), reading("1980, 3201, 41, 90.0, 0x0000000000000103")]).throttled == ()


def test_every_reason_is_named_and_one_to_come_is_shown_by_its_bit():
    later = reading("1980, 3201, 41, 90.0, 0x0000000000001080")
    assert summarise([reading(HOT), reading(CAPPED), later]).throttled == (
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
        "0x1000",
    )


def test_heat_and_a_failing_supply_are_faults_and_the_power_cap_of_a_full_load_is_none():
    assert faults(summarise([reading(CAPPED)])) == []
    assert faults(summarise([reading(HOT)])) == ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown"]
    assert faults(None) == []


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a script in the place of nvidia-smi; it notes its arguments in the file that is returned."""

    def put(body: str) -> Path:
        asked = tmp_path / "asked"
        script = tmp_path / "bin" / "nvidia-smi"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n{body}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
        return asked

    return put


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def forever(line: str) -> str:
    return f"while :; do echo '{line}'; sleep 0.02; done"


def test_a_run_is_watched_as_it_goes(nvidia_smi):
    nvidia_smi(forever(BUSY))
    began = time.monotonic()
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.between(began, time.monotonic()))
        state = watch.between(began, time.monotonic())
        assert state.clock_sm_mhz == (1980.0, 1980.0)
        assert watch.between(began - 100, began - 50) is None
        assert watch.problem is None


def test_only_the_gpu_that_is_named_is_watched(nvidia_smi):
    asked = nvidia_smi(forever(BUSY))
    with GpuWatch("GPU-5a1e") as watch:
        wait_for(lambda: watch.between(0, time.monotonic()))
    assert "--id=GPU-5a1e " in asked.read_text()


def test_an_old_driver_is_asked_by_the_old_name(nvidia_smi):
    asked = nvidia_smi(
        'case "$*" in *clocks_event_reasons*) echo "Field is not a valid field to query."; exit 2;; esac\n'
        + forever("1410, 1593, 50, 250.00, 0x0000000000000004")
    )
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.between(0, time.monotonic()))
        assert watch.between(0, time.monotonic()).throttled == ("sw_power_cap",)
        assert watch.problem is None
    assert "clocks_throttle_reasons.active" in asked.read_text().splitlines()[1]


def test_the_watch_ends_nvidia_smi_with_the_run(nvidia_smi, tmp_path):
    nvidia_smi(f"echo $$ > {tmp_path}/pid\n{forever(BUSY)}")
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.between(0, time.monotonic()))
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_machine_without_nvidia_smi_is_told_once_and_blocks_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.problem)
        assert watch.problem == "nvidia-smi is not installed"
        assert watch.between(0, time.monotonic()) is None


def test_an_nvidia_smi_that_fails_is_told_with_its_last_words(nvidia_smi):
    nvidia_smi("echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9")
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.problem)
        assert watch.problem.startswith("nvidia-smi ended: NVIDIA-SMI has failed")


def test_an_nvidia_smi_that_dies_leaves_what_it_told(nvidia_smi):
    nvidia_smi(f"echo '{BUSY}'; kill -9 $$")
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.problem)
        assert watch.problem == "nvidia-smi ended without a word"
        assert watch.between(0, time.monotonic()).readings == 1


def test_an_nvidia_smi_that_hangs_and_obeys_nothing_blocks_nothing(nvidia_smi):
    nvidia_smi("trap '' TERM INT HUP; while :; do sleep 0.1; done")
    began = time.monotonic()
    with GpuWatch("0") as watch:
        assert watch.between(0, time.monotonic()) is None
    assert time.monotonic() - began < 5


def test_an_nvidia_smi_that_cannot_be_started_blocks_nothing(nvidia_smi, tmp_path):
    nvidia_smi("")
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/nowhere/at/all\n")
    with GpuWatch("0") as watch:
        wait_for(lambda: watch.problem)
    assert "nvidia-smi ended" in watch.problem
