"""The results folder of asv, both versions of its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from baselines.errors import BaselineError
from baselines.histories import Reading, read_histories

DAY = 86_400_000
COLUMNS = ["result", "params", "version", "started_at", "duration"]


class Results:
    """A results folder that is written file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def benchmarks(self, **benchmarks: dict[str, Any]) -> None:
        named = {name.replace("__", "."): one for name, one in benchmarks.items()}
        (self.root / "benchmarks.json").write_text(json.dumps({**named, "version": 2}))

    def commit(self, commit: str, day: int, machine: str = "box", environment: str = "py3.12", **document: Any) -> None:
        folder = self.root / machine
        folder.mkdir(exist_ok=True)
        (folder / "machine.json").write_text(json.dumps({"machine": machine, "version": 1}))
        common = {
            "commit_hash": commit,
            "date": 1767225600000 + day * DAY,
            "env_name": environment,
            "params": {"machine": machine},
            "python": "3.12",
        }
        (folder / f"{commit[:8]}-{environment}.json").write_text(json.dumps(common | document))

    def read(self) -> Reading:
        return read_histories(self.root, "asv")


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path / "results")


def version_2(**rows: list[Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "result_columns": COLUMNS,
        "results": {name.replace("__", "."): row for name, row in rows.items()},
    }


def described(reading: Reading) -> dict[str, list[tuple[int, float]]]:
    return {
        one.series: list(zip(one.positions.tolist(), one.values.tolist(), strict=True)) for one in reading.histories
    }


def test_a_benchmark_without_parameters_is_one_series_by_commit_date(results):
    results.benchmarks(mod__time_a={"unit": "seconds", "type": "time", "version": "v"})
    results.commit("bbbb", 1, **version_2(mod__time_a=[[2.0], [], "v"]))
    results.commit("aaaa", 2, **version_2(mod__time_a=[[3.0], [], "v"]))
    results.commit("cccc", 0, **version_2(mod__time_a=[[1.0], [], "v"]))
    reading = results.read()
    (history,) = reading.histories
    assert described(reading) == {"box/mod.time_a [py3.12]": [(0, 1.0), (1, 2.0), (2, 3.0)]}
    assert (history.unit, history.better, history.commits) == ("seconds", "lower", ("cccc", "bbbb", "aaaa"))
    assert history.times[0] == "2026-01-01T00:00:00"


def test_each_combination_of_parameters_is_a_series_in_the_order_of_their_product(results):
    rows = version_2(mod__time_a=[[1.0, 2.0, None, float("nan")], [["10", "20"], ["'x'", "'y'"]]])
    results.commit("aaaa", 0, **rows)
    reading = results.read()
    assert described(reading) == {
        "box/mod.time_a(10, 'x') [py3.12]": [(0, 1.0)],
        "box/mod.time_a(10, 'y') [py3.12]": [(0, 2.0)],
    }
    assert [note.partition(":")[0] for note in reading.notes[::2]] == [
        "box/mod.time_a(20, 'x') [py3.12]",
        "box/mod.time_a(20, 'y') [py3.12]",
    ]


def test_version_1_has_numbers_or_objects(results):
    results.commit("aaaa", 0, version=1, results={"m.time_a": 1.5, "m.time_b": None, "m.mem_c": {"result": [8]}})
    results.commit(
        "bbbb",
        1,
        version=1,
        results={"m.time_a": {"result": 2.5}, "m.time_d": {"result": [3, 4], "params": [["1", "2"]]}},
    )
    reading = results.read()
    assert described(reading) == {
        "box/m.time_a [py3.12]": [(0, 1.5), (1, 2.5)],
        "box/m.mem_c [py3.12]": [(0, 8.0)],
        "box/m.time_d(1) [py3.12]": [(1, 3.0)],
        "box/m.time_d(2) [py3.12]": [(1, 4.0)],
    }
    assert [one.unit for one in reading.histories] == ["seconds", "bytes", "seconds", "seconds"]


def test_machines_and_environments_are_histories_of_their_own(results):
    for machine in ("box", "tower"):
        for environment in ("py3.11", "py3.12"):
            results.commit("aaaa", 0, machine, environment, **version_2(t__time_a=[[1.0], []]))
    assert list(described(results.read())) == [
        f"{machine}/t.time_a [{environment}]" for machine in ("box", "tower") for environment in ("py3.11", "py3.12")
    ]


def test_a_commit_in_which_a_benchmark_failed_is_a_gap(results):
    results.commit("aaaa", 0, **version_2(t__time_a=[[1.0], []]))
    results.commit("bbbb", 1, **version_2(t__time_a=[]))
    results.commit("cccc", 2, **version_2(t__time_a=[[1.1], []]))
    assert described(results.read()) == {"box/t.time_a [py3.12]": [(0, 1.0), (2, 1.1)]}


@pytest.mark.parametrize("version", [1, 2])
def test_another_version_of_a_benchmark_begins_a_new_history(results, version):
    for day, of_benchmark in enumerate(["old", "old", "new"]):
        one = {"results": {"t.time_a": 1.0 + day}, "benchmark_version": {"t.time_a": of_benchmark}}
        results.commit(
            "abc"[day] * 4, day, **(one if version == 1 else version_2(t__time_a=[[1.0 + day], [], of_benchmark]))
        )
    reading = results.read()
    assert [one.positions.tolist() for one in reading.histories] == [[0, 1], [2]]
    assert reading.notes[0].endswith("its benchmark changes from version old to new at 2; a new history begins there")


def test_only_a_track_benchmark_needs_its_unit_to_tell_which_direction_is_better(results):
    results.benchmarks(
        t__track_rate={"unit": "steps/s", "type": "track"},
        t__track_loss={"unit": "unit", "type": "track"},
        t__Custom__peakmem_x={"unit": "bytes", "type": "peakmemory"},
    )
    rows = version_2(t__track_rate=[[1.0], []], t__track_loss=[[1.0], []], t__Custom__peakmem_x=[[1.0], []])
    results.commit("aaaa", 0, **rows)
    assert [one.better for one in results.read().histories] == ["higher", "unknown", "lower"]


def test_the_project_or_one_machines_folder_may_be_named_too(results, tmp_path):
    results.benchmarks(t__track_a={"unit": "requests/s", "type": "track"})
    results.commit("aaaa", 0, **version_2(t__track_a=[[1.0], []]))
    for path in (tmp_path, results.root / "box"):
        (history,) = read_histories(path, "asv").histories
        assert (history.series, history.unit) == ("box/t.track_a [py3.12]", "requests/s")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            version_2(t__time_a=[[1.0, 2.0], [["x"]]]),
            "aaaa-py3.12.json: key results.t.time_a: 2 results of 1 combinations",
        ),
        (version_2(t__time_a=[["slow"], []]), "aaaa-py3.12.json: key results.t.time_a: 'slow' is no number"),
        (version_2(t__time_a=[[1.0], ["x"]]), "key results.t.time_a: params: expected a list of lists"),
        ({"results": {}, "date": "monday"}, "aaaa-py3.12.json: key date: expected milliseconds"),
        ({"results": []}, "aaaa-py3.12.json: key results: expected an object"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(results, document, message):
    results.commit("aaaa", 0, **document)
    with pytest.raises(BaselineError) as told:
        results.read()
    assert message in str(told.value)


def test_a_folder_without_results_is_told(results):
    with pytest.raises(BaselineError, match="no results in it"):
        results.read()
    with pytest.raises(BaselineError, match="--value-column is for"):
        read_histories(results.root, "asv", value_column="mean")


def test_a_file_that_is_cut_off_or_wrong_is_left_out_as_a_whole_and_told(results):
    results.commit("aaaa", 0, **version_2(t__time_a=[[1.0], []]))
    results.commit("bbbb", 1, **version_2(t__time_a=[[2.0], []], t__time_b=[["slow"], []]))
    (results.root / "box" / "cccc-py3.12.json").write_text("{cut")
    reading = results.read()
    assert described(reading) == {"box/t.time_a [py3.12]": [(0, 1.0)]}
    told = [note for note in reading.notes if note.startswith("left out: ")]
    assert ["cccc-py3.12.json: no JSON" in told[0], "bbbb-py3.12.json: key results.t.time_b" in told[1]] == [True, True]
