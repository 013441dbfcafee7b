"""A suite divided over machines: balanced, stable when it grows, and one run whoever measures which part."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Shard
from torchbenchmark.shards import SLACK, STEP, divide, parse_shard, read_plan

seconds = st.dictionaries(
    st.text(alphabet="abcdefghij_0123456789", min_size=1, max_size=8),
    st.floats(min_value=0.1, max_value=500.0),
    min_size=8,
    max_size=90,
)


def where(shards):
    return {model: index for index, shard in enumerate(shards) for model in shard}


@settings(deadline=None)
@given(seconds, st.integers(1, 8))
def test_every_model_has_one_shard_and_no_shard_is_longer_than_the_mean_by_more_than_a_tenth_or_one_model(
    models, count
):
    shards = divide(models, count)
    assert sorted(model for shard in shards for model in shard) == sorted(models)
    assert all(shards) and len(shards) == count
    mean, longest = sum(models.values()) / count, max(models.values())
    for shard in shards:
        load = sum(models[model] for model in shard)
        assert load <= max((1 + SLACK) * STEP * mean, mean + longest) * (1 + 1e-9)


def test_the_same_models_are_divided_the_same_way_in_whatever_order_they_come():
    models = {f"model{number}": 1.0 + number % 7 for number in range(40)}
    assert divide(models, 3) == divide(dict(reversed(models.items())), 3)


def longest_first(models, count):
    """The usual division: each model, the longest first, to the shard that has the least so far."""
    loads, shards = [0.0] * count, [[] for _ in range(count)]
    for model in sorted(models, key=lambda model: (-models[model], model)):
        least = loads.index(min(loads))
        loads[least] += models[model]
        shards[least].append(model)
    return shards


def moved_by_a_new_model(division, count):
    moved = 0
    for suite in range(30):
        models = {f"s{suite}m{number}": 5.0 + (number * 37 + suite * 11) % 90 for number in range(84)}
        before = where(division(models, count))
        after = where(division({**models, f"s{suite}new": 20.0 + suite}, count))
        moved += sum(before[model] != after[model] for model in models)
    return moved / (30 * 84)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_model_that_is_added_moves_few_others(count):
    """In suites of the size of V1, against the usual division, which moves a quarter to a half of the models."""
    assert moved_by_a_new_model(divide, count) < moved_by_a_new_model(longest_first, count) / 4


def test_a_model_that_was_never_measured_is_taken_for_a_typical_one():
    models = {"a": 10.0, "b": 10.0, "c": 10.0, "new": None}
    assert [len(shard) for shard in divide(models, 2)] == [2, 2]
    assert [len(shard) for shard in divide(dict.fromkeys("abcdefgh"), 2)] == [4, 4]


@pytest.mark.parametrize("count", [0, 4])
def test_a_shard_without_a_model_is_not_planned(count):
    with pytest.raises(BenchmarkError, match=f"--shards {count}: the suite has 3 models"):
        divide(dict.fromkeys("abc", 1.0), count)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/", "/2", "1/0", "a/b", "1/2/3", "-1/2", "", "1 / 2", "²/3"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(BenchmarkError, match="expected i/n with i from 1 to n"):
        parse_shard(text)


def test_a_shard_is_read_as_it_is_written():
    assert parse_shard("2/3") == Shard(index=2, count=3)
    assert str(parse_shard("2/3")) == "2/3"
    assert parse_shard("2/3").others() == ("1/3", "3/3")
    assert parse_shard("1/1").others() == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "invalid JSON"), ("{}", "run"), ('{"kind": "run"}', "kind"), ("[1]", "object")],
)
def test_a_file_that_is_no_plan_is_told(tmp_path, content, message):
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(BenchmarkError, match=rf"plan\.json: .*{message}.*make it with `torchbench plan`"):
        read_plan(path)
    with pytest.raises(BenchmarkError, match="cannot be read"):
        read_plan(tmp_path / "none.json")
