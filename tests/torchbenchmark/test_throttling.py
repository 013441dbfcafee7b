"""A measurement during which the GPU was throttled is measured again once, and marked if that does not help."""

import time
from types import SimpleNamespace

import pytest

from torchbenchmark import runner
from torchbenchmark.channels import COUNTING, TIMED_SECTION
from torchbenchmark.isolation import ChildOutcome
from torchbenchmark.records import GpuState, Status
from torchbenchmark.registry import Registry
from torchbenchmark.run_file import RunFile
from torchbenchmark.throttling import LEAST_REPEATED, Throttling

COOL = GpuState(readings=3, clock_sm_mhz=(1980, 1980), throttled=("sw_power_cap",))
HOT = GpuState(readings=3, clock_sm_mhz=(900, 1980), throttled=("sw_power_cap", "hw_thermal_slowdown"))
TURN = (1, "test_eval[m1-cuda-eager]", 0)


def test_the_first_time_is_thrown_away_and_the_second_is_kept_and_marked():
    said = []
    throttling = Throttling(10, said.append)
    assert throttling.throws_away(TURN, HOT)
    assert said == [
        "test_eval[m1-cuda-eager]: the GPU was throttled (hw_thermal_slowdown): measured again at the end of the round"
    ]
    assert not throttling.throws_away(TURN, HOT)
    assert throttling.marks(TURN, HOT) == [
        "measured again: the first time the GPU was throttled (hw_thermal_slowdown)",
        "the GPU was throttled while this was measured (hw_thermal_slowdown)",
    ]


def test_a_second_time_without_throttling_says_that_it_is_the_second():
    throttling = Throttling(10, lambda _: None)
    throttling.throws_away(TURN, HOT)
    assert throttling.marks(TURN, COOL) == [
        "measured again: the first time the GPU was throttled (hw_thermal_slowdown)"
    ]


@pytest.mark.parametrize("state", [None, COOL])
def test_what_is_not_throttled_or_not_known_is_kept_without_a_word(state):
    throttling = Throttling(10, lambda _: None)
    assert not throttling.throws_away(TURN, state)
    assert throttling.marks(TURN, state) == []


@pytest.mark.parametrize(("processes", "repeats"), [(1, LEAST_REPEATED), (200, 20)])
def test_a_gpu_that_is_always_hot_does_not_double_the_night(processes, repeats):
    throttling = Throttling(processes, lambda _: None)
    assert sum(throttling.throws_away((1, f"test {number}", 0), HOT) for number in range(100)) == repeats
    assert throttling.marks((1, "test 99", 0), HOT) == [
        "the GPU was throttled while this was measured (hw_thermal_slowdown)"
    ]


class Zygote:
    """Measures by saying so; its children pass the stages that the driver waits for."""

    name = "r1z0"

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def measure(self, model, spec, *, on_stage, **_):
        self.order.append(spec["test"])
        for stage in ("build", TIMED_SECTION, COUNTING):
            on_stage(stage)
        value = {"unit": "s", "samples": [0.1], "median": 0.1, "mean": 0.1, "p20": 0.1}
        reasons = {"graph_breaks": ["2 x print\nof something"]}
        result = {"batch_size": 1, "channels": {"latency": value}, "notes": ["of the child"], "reasons": reasons}
        return ChildOutcome(result, "ok", "", "", 0.5)


class Nursery(Zygote):
    def __init__(self, order: list[str], place) -> None:
        super().__init__(order)
        self.place = place

    def zygote(self, *_, **__):
        return self

    def spawns(self, _):
        return False


class Watch:
    """Stands for the watch: a state for each measurement, in their order."""

    problem = "nvidia-smi ended without a word"

    def __init__(self, *states: GpuState | None) -> None:
        self.states = list(states)

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def between(self, began: float, ended: float) -> GpuState | None:
        assert began <= ended <= time.monotonic()
        return self.states.pop(0)


class Noting:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def __getattr__(self, _: str):
        return lambda *_: None


@pytest.fixture
def measure(make_header, tmp_path, monkeypatch):
    """Runs two tests of one round with a GPU that says this, one state a measurement."""
    tests = ("test_eval[resnet18-cuda-eager-tiny]", "test_train[resnet18-cuda-eager-tiny]")

    def run(*states: GpuState | None):
        watch, order, reporter = Watch(*states), [], Noting()
        monkeypatch.setattr(runner, "GpuWatch", lambda _: watch)
        monkeypatch.setattr(runner, "Nursery", lambda *_, **fields: Nursery(order, fields["place"]))
        monkeypatch.setattr(runner, "missing_requirement", lambda *_: None)
        file = RunFile(tmp_path / "run.jsonl")
        file.start(make_header(*tests, device="cuda", rounds=1))
        interpreter = SimpleNamespace(gpus=("NVIDIA H200",))
        runner.Runner(file, Registry(), interpreter, reporter).execute()
        file.close()
        assert watch.states == [], "every measurement asks once"
        return file.records, order, reporter.notes

    return run


def test_the_record_of_a_process_says_what_the_gpu_said(measure):
    records, order, notes = measure(COOL, None)
    assert {record.processes[0].gpu for record in records.values()} == {COOL, None}
    assert sorted(order) == ["eval", "train"]
    for record in records.values():
        assert record.processes[0].notes == ("of the child",)
        assert record.processes[0].reasons == {"graph_breaks": ("2 x print of something",)}
    assert notes == ["GPU 0 was not watched to the end: nvidia-smi ended without a word"]


def test_a_throttled_process_is_measured_again_last_in_its_round_and_stands_once_in_its_record(measure):
    records, order, _ = measure(HOT, COOL, COOL)
    assert len(order) == 3
    assert order[0] == order[2] != order[1]
    again = records[f"test_{order[0]}[resnet18-cuda-eager-tiny]"]
    assert [process.gpu for process in again.processes] == [COOL]
    assert again.processes[0].notes[0].startswith("measured again")
    assert all(record.status is Status.OK for record in records.values())


def test_a_process_that_is_throttled_again_is_kept_and_marked(measure):
    records, order, _ = measure(HOT, COOL, HOT)
    kept = records[f"test_{order[0]}[resnet18-cuda-eager-tiny]"].processes
    assert [process.gpu for process in kept] == [HOT]
    assert "the GPU was throttled while this was measured (hw_thermal_slowdown)" in kept[0].notes
