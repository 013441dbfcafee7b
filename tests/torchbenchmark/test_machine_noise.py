"""What is known to make a machine noisy, from the files and answers of machines that are not here."""

import dataclasses

import pytest

from torchbenchmark.machine_noise import Readings, examine

QUIET = {
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "/sys/devices/system/cpu/smt/control": "off",
    "/proc/cpuinfo": "flags : fpu vme",
    "/sys/fs/cgroup/cpu.max": "max 100000",
    "/proc/swaps": "Filename Type Size Used Priority",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
}
GPU = "NVIDIA H200, Enabled, 40, 345 MHz, 1980 MHz, 700.00 W, 700.00 W, Disabled, 0 %\n"


def machine(files=None, *, gpu: str | None = GPU, apps: str = "", probe=(0.001,) * 50, **fields) -> Readings:
    there = {**QUIET, **(files or {})}

    def smi(query: str) -> str | None:
        return None if gpu is None else apps if "compute-apps" in query else gpu

    quiet = Readings(read=there.get, cpus=8, load=0.1, smi=smi, probe=lambda: list(probe), steal=lambda: 0.0)
    return dataclasses.replace(quiet, **fields)


def noisy(readings: Readings, threads: int = 4, device: str = "cuda") -> dict[str, str]:
    return {one.what: one.cure for one in examine(readings, threads, device) if one.noisy}


def test_a_quiet_machine_has_nothing_to_cure():
    assert noisy(machine()) == {}


@pytest.mark.parametrize(
    ("readings", "what", "cure"),
    [
        (
            {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"},
            "CPU governor",
            "--governor performance",
        ),
        ({"/sys/devices/system/cpu/intel_pstate/no_turbo": "0"}, "turbo", "no_turbo"),
        ({"/sys/devices/system/cpu/smt/control": "on"}, "SMT", "echo off"),
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, "virtual machine", "machine of one's own"),
        ({"/sys/fs/cgroup/cpu.max": "150000 100000"}, "CPU quota", "without a CPU limit"),
        ({"/proc/swaps": "Filename Type Size Used Priority\n/swap file 100 2048 -2"}, "swap", "swapoff"),
        ({"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}, "huge pages", "madvise"),
    ],
)
def test_each_cause_is_named_with_its_cure(readings, what, cure):
    found = noisy(machine(readings))
    assert list(found) == [what] and cure in found[what]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"load": 3.0}, "load"),
        ({"cpus": 4}, "CPUs"),
        ({"steal": lambda: 0.08}, "stolen CPU time"),
        ({"probe": (0.001,) * 40 + (0.002,) * 10}, "host probe"),
        ({"gpu": GPU.replace("Enabled", "Disabled")}, "GPU 0 NVIDIA H200: persistence"),
        ({"gpu": GPU.replace(" 40,", " 88,")}, "GPU 0 NVIDIA H200: temperature"),
        ({"gpu": GPU.replace("700.00 W, 700", "500.00 W, 700")}, "GPU 0 NVIDIA H200: power limit"),
        ({"gpu": GPU.replace("0 %", "97 %")}, "GPU 0 NVIDIA H200: busy"),
        ({"apps": "4711, python\n"}, "other work on the GPU"),
        ({"gpu": None}, "GPU"),
    ],
)
def test_what_moves_and_what_the_gpu_says_is_looked_at_too(fields, what):
    assert list(noisy(machine(**fields))) == [what]


def test_fields_that_a_gpu_does_not_tell_are_no_findings():
    gpu = "NVIDIA X, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]\n"
    assert noisy(machine(gpu=gpu)) == {}
    assert noisy(machine(gpu="an answer of one field\n")) == {}


def test_the_gpu_is_looked_at_only_where_tests_run_on_it():
    assert noisy(machine(gpu=None), device="cpu") == {}
