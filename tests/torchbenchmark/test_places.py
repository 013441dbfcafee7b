"""Which GPU and which cores each worker gets."""

import pytest

from torchbenchmark.places import gpus_of_one_model, places

H200 = "NVIDIA H200"
CORES = range(16)


@pytest.fixture(autouse=True)
def all_gpus_visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_each_worker_sees_one_gpu_and_has_cores_next_to_one_another():
    found = places("cuda", 4, 2, [H200] * 4, CORES)
    assert [place.variables for place in found] == [{"CUDA_VISIBLE_DEVICES": str(index)} for index in range(4)]
    assert [place.device_index for place in found] == [0, 1, 2, 3]
    assert [place.cpus for place in found] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]


def test_gpus_are_named_as_the_user_named_them(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-8932f937")
    found = places("cuda", 2, 1, [H200] * 2, CORES)
    assert [(place.device_index, place.gpu) for place in found] == [(0, "3"), (1, "GPU-8932f937")]


def test_a_gpu_of_another_model_is_left_alone():
    assert gpus_of_one_model([H200, "NVIDIA T4", H200]) == [0, 2]
    assert [place.gpu for place in places("cuda", 2, 1, [H200, "NVIDIA T4", H200], CORES)] == ["0", "2"]
    assert gpus_of_one_model([]) == []


def test_more_workers_than_gpus_share_them():
    assert [place.gpu for place in places("cuda", 3, 1, [H200] * 2, CORES)] == ["0", "1", "0"]


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (2, 9), (3, 6)])
def test_cores_are_not_divided_where_there_is_one_worker_or_too_few_for_its_threads(workers, threads):
    assert {place.cpus for place in places("cpu", workers, threads, [], CORES)} == {()}


def test_a_worker_of_a_cpu_run_has_cores_and_no_gpu():
    found = places("cpu", 2, 1, [H200], [4, 5, 8])
    assert [(place.gpu, place.device_index, place.cpus, place.variables) for place in found] == [
        (None, None, (4,), {}),
        (None, None, (5,), {}),
    ]
