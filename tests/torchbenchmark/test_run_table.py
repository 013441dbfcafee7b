"""The table at the end of a run shows what counts on its device."""

import pytest

from torchbenchmark import cli
from torchbenchmark.cli import TerminalReporter, print_run
from torchbenchmark.records import Channel, Process, Run, Status

TEST = "test_eval[m1-cuda-eager]"


def channel(value: float, unit: str = "s") -> Channel:
    return Channel(unit=unit, samples=(value,), median=value, mean=value, p20=value)


@pytest.fixture
def shown(monkeypatch):
    """Runs something and returns what it printed, on lines of enough width."""
    monkeypatch.setattr(cli.console, "width", 200)

    def show(action, *arguments) -> str:
        with cli.console.capture() as captured:
            action(*arguments)
        return captured.get()

    return show


def on_cuda(process: Process, launches: float) -> Process:
    channels = {
        "latency": channel(0.020),
        "gpu_time": channel(0.0125),
        "launches": channel(launches, "1"),
        "gpu_memory": channel(3 * 2**20, "B"),
        "first_batch": channel(0.5),
    }
    return process.model_copy(update={"channels": channels})


def test_a_cuda_run_shows_kernel_time_launches_and_gpu_memory(shown, make_header, make_record, make_process):
    record = make_record(TEST, on_cuda(make_process(), 334), on_cuda(make_process(), 334))
    text = shown(print_run, Run(make_header(TEST, device="cuda"), (record,)))
    assert "kernel time" in text
    for cell in ("12.500 ms", " 334 ", "20.000 ms", "3.0 MiB"):
        assert cell in text


def test_of_two_processes_the_time_between_them_is_shown(shown, make_header, make_record, make_process):
    record = make_record(TEST, make_process(0.020), make_process(0.030))
    assert "25.000 ms" in shown(print_run, Run(make_header(TEST, device="cuda"), (record,)))


def test_launches_that_differ_between_processes_are_shown_as_a_range(shown, make_header, make_record, make_process):
    record = make_record(TEST, on_cuda(make_process(), 334), on_cuda(make_process(), 336))
    assert "334 to 336" in shown(print_run, Run(make_header(TEST, device="cuda"), (record,)))


def test_a_cuda_run_without_a_profiler_shows_dashes_and_its_latency(shown, make_header, make_record, make_process):
    text = shown(print_run, Run(make_header(TEST, device="cuda"), (make_record(TEST, make_process(0.020)),)))
    assert "20.000 ms" in text
    assert text.count(" - ") == 4


def test_a_cpu_run_has_no_column_of_the_gpu(shown, make_header, make_record, make_process):
    text = shown(
        print_run,
        Run(make_header("test_eval[m1-cpu-eager]"), (make_record("test_eval[m1-cpu-eager]", make_process()),)),
    )
    assert "CPU time" in text
    assert "launches" not in text


def test_a_failed_test_has_a_dash_in_every_column(shown, make_header, make_record):
    text = shown(print_run, Run(make_header(TEST, device="cuda"), (make_record(TEST, status=Status.CRASH),)))
    assert text.count(" - ") == 5


def test_what_is_told_of_a_process_names_its_kernel_time(shown, make_process):
    text = shown(TerminalReporter().measured, TEST, on_cuda(make_process(), 5))
    assert "20.000 ms, kernels 12.500 ms (1.5 s)" in text
