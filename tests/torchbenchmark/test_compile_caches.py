"""Which process of a run compiles cold, which fills the cache and which finds it warm, and where that cache lies."""

from pathlib import Path

import pytest

from torchbenchmark.compile_caches import CompileCaches
from torchbenchmark.environment import COMPILER_CACHES, worker_variables
from torchbenchmark.experiment import Experiment

COMPILED = Experiment.parse("test_eval[resnet18-cuda-inductor]")
OTHER = Experiment.parse("test_train[resnet18-cuda-inductor]")
EAGER = Experiment.parse("test_eval[resnet18-cuda-eager]")


@pytest.fixture
def caches(tmp_path: Path) -> CompileCaches:
    return CompileCaches(tmp_path / "run.jsonl.scratch")


def measured(caches: CompileCaches, number: int, experiment: Experiment = COMPILED) -> str:
    """One process of that round, which ended well; its mode."""
    turn = caches.turn(experiment, number)
    folder = Path(turn["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"kept-in-round-{number}").touch()
    caches.ended(experiment, number)
    return turn["mode"]


def test_the_first_round_is_cold_the_second_fills_and_all_later_ones_are_warm(caches):
    assert [measured(caches, number) for number in (1, 2, 3, 4)] == ["cold", "fill", "warm", "warm"]


def test_every_process_of_the_first_round_finds_an_empty_folder(caches):
    assert measured(caches, 1) == "cold"
    for index in (0, 1):
        turn = caches.turn(COMPILED, 1, index)
        assert turn["mode"] == "cold"
        assert not Path(turn["folder"]).exists()


def test_cold_processes_beside_each_other_share_no_folder(caches):
    first, second = (Path(caches.turn(COMPILED, 1, index)["folder"]) for index in (0, 1))
    first.mkdir(parents=True)
    second.mkdir()
    caches.turn(COMPILED, 1, 1)
    assert first.exists() and not second.exists()
    second.mkdir()
    caches.forget(COMPILED)
    assert not first.exists() and not second.exists()


def test_what_is_kept_stays_for_the_later_rounds(caches):
    measured(caches, 2)
    folder = Path(caches.turn(COMPILED, 3)["folder"])
    assert [path.name for path in folder.iterdir()] == ["kept-in-round-2"]


def test_a_process_that_failed_has_filled_nothing(caches):
    caches.turn(COMPILED, 2)
    assert caches.turn(COMPILED, 3)["mode"] == "fill"


def test_a_resumed_run_fills_its_caches_anew(caches, tmp_path):
    """Its scratch folder is a new one: round 2 was measured before, and yet nothing is there."""
    measured(caches, 2)
    assert measured(CompileCaches(tmp_path / "another"), 3) == "fill"


def test_tests_share_no_folder_and_neither_do_runs(caches, tmp_path):
    folders = {
        caches.turn(COMPILED, 2)["folder"],
        caches.turn(OTHER, 2)["folder"],
        CompileCaches(tmp_path / "another").turn(COMPILED, 2)["folder"],
    }
    assert len(folders) == 3
    measured(caches, 2)
    assert measured(caches, 2, OTHER) == "fill"


def test_a_decided_test_leaves_nothing_behind(caches):
    measured(caches, 2)
    caches.forget(COMPILED)
    assert not Path(caches.turn(COMPILED, 3)["folder"]).exists()


def test_eager_tests_are_told_of_no_cache(caches):
    assert caches.turn(EAGER, 1) is None


def test_no_setting_of_this_machine_reaches_a_build(monkeypatch):
    for name in COMPILER_CACHES:
        monkeypatch.setenv(name, "1")
    assert not set(COMPILER_CACHES) & set(worker_variables())
