"""data.js of benchmark-action/github-action-benchmark."""

import json
from pathlib import Path
from typing import Any

import pytest

from baselines.errors import BaselineError
from baselines.histories import Reading, read_histories


def run(date: int, tool: str, *benches: dict[str, Any], commit: str = "c0ffee") -> dict[str, Any]:
    return {
        "commit": {"id": commit, "timestamp": "2025-12-31T23:00:00Z", "message": "m", "author": {"name": "x"}},
        "date": date,
        "tool": tool,
        "benches": list(benches),
    }


def bench(name: str, value: Any, unit: str = "ns/iter", **more: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, **more}


def read(tmp_path: Path, entries: Any, form: str = "window.BENCHMARK_DATA = {}") -> Reading:
    path = tmp_path / "data.js"
    path.write_text(form.replace("{}", json.dumps({"lastUpdate": 1, "repoUrl": "u", "entries": entries}, indent=2)))
    return read_histories(path, "github-action-benchmark")


def test_a_suite_is_read_with_the_number_of_the_run_as_position(tmp_path):
    entries = {
        "Rust": [
            run(1767225600000, "cargo", bench("fib", 10, range="± 1"), bench("sort", 7)),
            run(1767312000000, "cargo", bench("sort", 8)),
            run(1767398400000, "cargo", bench("fib", 12.5), commit="beef"),
        ]
    }
    reading = read(tmp_path, entries)
    fib, sort = reading.histories
    assert (fib.series, fib.unit, fib.positions.tolist(), fib.values.tolist()) == (
        "Rust/fib",
        "ns/iter",
        [0, 2],
        [10, 12.5],
    )
    assert (fib.times, fib.commits) == (("2026-01-01T00:00:00", "2026-01-03T00:00:00"), ("c0ffee", "beef"))
    assert (sort.series, sort.positions.tolist()) == ("Rust/sort", [0, 1])
    assert reading.notes == ()


@pytest.mark.parametrize(
    "form", ["window.BENCHMARK_DATA = {}", "window.BENCHMARK_DATA={};\n", "\ufeffwindow.BENCHMARK_DATA = {}\n", "{}"]
)
def test_the_script_may_end_in_a_semicolon_or_be_the_object_alone(tmp_path, form):
    assert read(tmp_path, {"s": [run(0, "go", bench("a", 1))]}, form).histories[0].series == "s/a"


@pytest.mark.parametrize(
    ("tool", "unit", "better"),
    [
        ("cargo", "ns/iter", "lower"),
        ("googlecpp", "ms/iter", "lower"),
        ("customSmallerIsBetter", "MB", "lower"),
        ("customSmallerIsBetter", "pages/s", "lower"),
        ("customBiggerIsBetter", "points", "higher"),
        ("benchmarkjs", "ops/sec", "higher"),
        ("pytest", "iter/sec", "higher"),
        ("jmh", "ops/ms", "higher"),
        ("jmh", "ms/op", "lower"),
        ("go", "MB/s", "higher"),
        ("another", "s", "unknown"),
        ("another", "steps/s", "higher"),
    ],
)
def test_the_tool_and_then_the_unit_say_which_direction_is_better(tmp_path, tool, unit, better):
    (history,) = read(tmp_path, {"s": [run(0, tool, bench("a", 1, unit))]}).histories
    assert history.better == better


def test_a_series_csv_outweighs_the_tool_and_what_it_lacks_keeps_what_the_tool_says(tmp_path):
    (tmp_path / "series.csv").write_text("series,direction\ns/a,higher\n")
    (tmp_path / "data.js").write_text(json.dumps({"entries": {"s": [run(0, "go", bench("a", 1), bench("b", 1))]}}))
    reading = read_histories(tmp_path / "data.js", "github-action-benchmark", series=tmp_path / "series.csv")
    assert [(one.unit, one.better) for one in reading.histories] == [("ns/iter", "higher"), ("ns/iter", "lower")]


def test_a_unit_that_changes_begins_a_new_history(tmp_path):
    entries = {"s": [run(0, "catch2", bench("a", 900, "us")), run(1, "catch2", bench("a", 1.1, "ms"))]}
    assert [history.unit for history in read(tmp_path, entries).histories] == ["us", "ms"]


def test_values_may_be_texts_or_missing_and_a_benchmark_may_stand_twice_in_a_run(tmp_path):
    benches = [bench("a", "3.5"), bench("a", 4.5), bench("b", None), bench("c", 1)]
    reading = read(tmp_path, {"s": [run(0, "go", *benches)]})
    assert [history.values.tolist() for history in reading.histories] == [[4.0], [1.0]]
    assert reading.notes == (
        "s/a: 1 night more than once; the median of each counts",
        "s/b: 1 night left out (1 without a value)",
        "s/b: no night with a value that can be compared",
    )


def test_the_commits_time_stands_in_where_a_run_has_no_date(tmp_path):
    entry = run(0, "go", bench("a", 1))
    del entry["date"]
    assert read(tmp_path, {"s": [entry]}).histories[0].times == ("2025-12-31T23:00:00Z",)


def test_a_folder_is_searched_for_data_js(tmp_path):
    read(tmp_path, {"s": [run(0, "go", bench("a", 1))]})
    assert read_histories(tmp_path, "github-action-benchmark").histories[0].series == "s/a"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "data.js: key entries: expected an object"),
        ({"s": {}}, "data.js: key entries.s: expected a list of runs"),
        ({"s": [{"tool": "go"}]}, "data.js: key entries.s.0: key benches: expected a list"),
        ({"s": [run(0, "go", {"value": 1})]}, "data.js: key entries.s.0.benches.0: key name: expected a text"),
        ({"s": [run(0, "go", bench("a", "fast"))]}, "data.js: key entries.s.0.benches.0.value: 'fast' is no number"),
        ({"s": []}, "data.js: no points in it"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(tmp_path, entries, message):
    with pytest.raises(BaselineError) as told:
        read(tmp_path, entries)
    assert message in str(told.value)


def test_a_script_that_is_cut_off_is_told(tmp_path):
    (tmp_path / "data.js").write_text('window.BENCHMARK_DATA = {"entries": {"s": [')
    with pytest.raises(BaselineError, match=r"data\.js: no JSON .* damaged or cut off"):
        read_histories(tmp_path / "data.js", "github-action-benchmark")


def test_half_a_character_in_a_name_can_be_written(tmp_path):
    from baselines.histories.csv_files import write_csv

    (tmp_path / "data.js").write_text(
        '{"entries": {"s": [{"benches": [{"name": "a\\ud83d", "value": 1}]}]}}', encoding="utf-8"
    )
    (history,) = read_histories(tmp_path, "github-action-benchmark").histories
    write_csv(tmp_path / "out.csv", ["series"], [[history.series]])
    assert (tmp_path / "out.csv").read_text() == "series\ns/a\\ud83d\n"
