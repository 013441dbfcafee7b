"""pytest-benchmark JSON, as TorchBench V0 to V2 left it."""

import json
from pathlib import Path

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats import read_latencies, read_measurements

ALEXNET = "test_train[alexnet-cpu-eager]"
YOLO = "test_eval[yolov3-cuda-jit]"


def save(folder: Path, document: object) -> Path:
    path = folder / "results.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def benchmark(name: object, mean: object) -> dict[str, object]:
    return {"name": name, "stats": {"mean": mean, "median": 99.0, "rounds": 20}}


def test_the_mean_in_seconds_is_read_and_not_the_median(tmp_path: Path) -> None:
    path = save(tmp_path, {"benchmarks": [benchmark(ALEXNET, 1.25), benchmark(YOLO, 3)]})
    assert read_latencies(path) == {ALEXNET: 1.25, YOLO: 3.0}


def test_the_format_is_told_by_content_and_not_by_the_name_of_the_file(tmp_path: Path) -> None:
    path = save(tmp_path, {"benchmarks": [benchmark(ALEXNET, 1.25)]}).rename(tmp_path / "results.yaml")
    assert read_latencies(path) == {ALEXNET: 1.25}


def test_one_trailing_freeze_is_stripped(tmp_path: Path) -> None:
    path = save(tmp_path, {"benchmarks": [benchmark("test_eval[alexnet-cuda-jit-freeze]", 0.5)]})
    assert read_latencies(path) == {"test_eval[alexnet-cuda-jit]": 0.5}


def test_a_second_freeze_is_not_stripped_and_so_is_no_test_id(tmp_path: Path) -> None:
    path = save(tmp_path, {"benchmarks": [benchmark("test_eval[alexnet-cuda-jit-freeze-freeze]", 0.5)]})
    with pytest.raises(BenchmarkError, match=r"benchmarks\.0\.name.*'freeze'"):
        read_latencies(path)


def test_a_name_that_stands_twice_is_an_error_also_when_only_freeze_tells_them_apart(tmp_path: Path) -> None:
    frozen = "test_eval[yolov3-cuda-jit-freeze]"
    for twice in ([ALEXNET, ALEXNET], [YOLO, frozen]):
        path = save(tmp_path, {"benchmarks": [benchmark(name, 1.0) for name in twice]})
        with pytest.raises(BenchmarkError, match=r"results\.json: key benchmarks\.1\.name: .* stands twice"):
            read_latencies(path)


def test_what_the_file_knows_of_build_date_and_machine_is_told(tmp_path: Path) -> None:
    document = {
        "machine_info": {"pytorch_version": "1.9.0", "cpu": {"brand_raw": "Xeon 8259CL"}},
        "datetime": "2021-09-17T01:16:50",
        "benchmarks": [benchmark(ALEXNET, 1.0)],
    }
    provenance = read_measurements(save(tmp_path, document)).provenance
    assert (provenance.origin, provenance.build) == ("results.json", "torch 1.9.0")
    assert (provenance.measured, provenance.machine_class) == ("2021-09-17", "Xeon 8259CL")


def test_machine_facts_of_an_unknown_shape_are_left_empty(tmp_path: Path) -> None:
    document = {"machine_info": [1], "datetime": 7, "benchmarks": [benchmark(ALEXNET, 1.0)]}
    provenance = read_measurements(save(tmp_path, document)).provenance
    assert (provenance.build, provenance.measured, provenance.machine_class) == ("", "", "")


@pytest.mark.parametrize("mean", ["NaN", "Infinity", "-Infinity", "0", "0.0", "-1.5", "1" + "0" * 400])
def test_a_time_that_is_not_finite_and_above_zero_is_refused_with_its_key(tmp_path: Path, mean: str) -> None:
    path = save(tmp_path, f'{{"benchmarks": [{{"name": "{ALEXNET}", "stats": {{"mean": {mean}}}}}]}}')
    with pytest.raises(
        BenchmarkError, match=r"results\.json: key benchmarks\.0\.stats\.mean .*no time of an iteration"
    ):
        read_latencies(path)


@pytest.mark.parametrize("mean", ['"0.5"', "true", "null", "[1.0]"])
def test_a_time_that_is_no_number_is_refused_with_its_key(tmp_path: Path, mean: str) -> None:
    path = save(tmp_path, f'{{"benchmarks": [{{"name": "{ALEXNET}", "stats": {{"mean": {mean}}}}}]}}')
    with pytest.raises(BenchmarkError, match=r"results\.json: key benchmarks\.0\.stats\.mean .*expected seconds"):
        read_latencies(path)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"benchmarks": []}, r"key benchmarks: empty"),
        ({"benchmarks": {ALEXNET: 1.0}}, r"without a list 'benchmarks'"),
        ({"tests": {ALEXNET: 1.0}}, r"without a list 'benchmarks'"),
        ([1, 2], r"without a list 'benchmarks'"),
        ({"benchmarks": [3]}, r"benchmarks\.0: expected an object with 'name', found int"),
        ({"benchmarks": [{"name": ALEXNET}]}, r"benchmarks\.0: 'stats' is missing"),
        ({"benchmarks": [{"name": ALEXNET, "stats": None}]}, r"benchmarks\.0\.stats: expected an object with 'mean'"),
        ({"benchmarks": [{"name": ALEXNET, "stats": {}}]}, r"benchmarks\.0\.stats: 'mean' is missing"),
        ({"benchmarks": [benchmark(None, 1.0)]}, r"benchmarks\.0\.name: a test id must be text, found None"),
        ({"benchmarks": [benchmark("test_sorting", 1.0)]}, r"benchmarks\.0\.name: 'test_sorting' is not a test id"),
        ('{"benchmarks": [', r"not a JSON document"),
        ('{"model": "alexnet"}\n{"model": "yolov3"}\n', r"not a JSON document"),
        ("[" * 100_000, r"not a JSON document"),
    ],
)
def test_json_of_another_shape_is_refused_and_the_place_is_named(
    tmp_path: Path, document: object, complaint: str
) -> None:
    with pytest.raises(BenchmarkError, match=rf"results\.json: .*{complaint}"):
        read_latencies(save(tmp_path, document))
