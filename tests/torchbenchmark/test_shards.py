"""A suite divided over machines: balanced, stable when it grows, and one run whoever measures which part."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from night_factory import FIRST_NIGHT, A, B, C, run_of

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import MOST_SHARDS, Shard, Status
from torchbenchmark.shards import SLACK, STEP, RunPlan, divide, durations, parse_shard, read_plan, write_plan

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


def test_a_model_whose_recorded_time_is_nothing_is_taken_for_a_typical_one():
    assert [len(shard) for shard in divide({"a": 0.0, "b": 0.0, "c": 0.0}, 3)] == [1, 1, 1]
    assert [len(shard) for shard in divide({"a": 10.0, "b": 10.0, "c": 10.0, "d": 0.0}, 2)] == [2, 2]


def test_only_what_ended_ok_says_how_long_a_model_takes():
    run = run_of(0, {A: 1.0, B: Status.TIMEOUT, C: None})
    assert durations(run) == {"resnet50": 1.0}


@pytest.mark.parametrize("count", [0, 4])
def test_a_shard_without_a_model_is_not_planned(count):
    with pytest.raises(BenchmarkError, match=f"--shards {count}: the suite has 3 models"):
        divide(dict.fromkeys("abc", 1.0), count)


@pytest.mark.parametrize(
    "text",
    [
        "0/2",
        "3/2",
        "1",
        "1/",
        "/2",
        "1/0",
        "a/b",
        "1/2/3",
        "-1/2",
        "",
        "1 / 2",
        "²/3",
        "1/1001",
        "1/" + "9" * 5000,
        "1/2\n",
        "१/२",
    ],
)
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
    [
        ("", "invalid JSON"),
        ("{}", "run"),
        ('{"kind": "run"}', "kind"),
        ("[1]", "expected keys with values, found a list"),
    ],
)
def test_a_file_that_is_no_plan_is_told(tmp_path, content, message):
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(BenchmarkError, match=rf"plan\.json: .*{message}.*make it with `torchbench plan`"):
        read_plan(path)
    with pytest.raises(BenchmarkError, match="cannot be read"):
        read_plan(tmp_path / "none.json")


PLAN = RunPlan(
    run="r1", started=FIRST_NIGHT, seed=1, suite="smoke", device="cpu", rounds=1, processes=1, subject="torch",
    timeout_s=1, shards=(("dlrm",),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("run", "../../x", "run"),
        ("run", "", "run"),
        ("run", "a\nb", "run"),
        ("run", "x" * 101, "run"),
        ("started", "2026-03-01T02:00:00", "started"),
        ("shards", [["dlrm"], []], "shards"),
        ("shards", [["dlrm"], ["dlrm"]], "two shards"),
        ("shards", [[f"m{number}"] for number in range(MOST_SHARDS + 1)], "shards"),
        ("rounds", 0, "rounds"),
    ],
)
def test_a_plan_that_cannot_be_a_run_is_refused_by_key(tmp_path, key, value, message):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**PLAN.model_dump(mode="json", by_alias=True), key: value}))
    with pytest.raises(BenchmarkError, match=rf"plan\.json: .*{message}"):
        read_plan(path)


def test_a_plan_is_read_as_it_was_written_and_one_that_cannot_be_written_leaves_nothing(tmp_path):
    write_plan(PLAN, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == PLAN
    (tmp_path / "taken").mkdir()
    with pytest.raises(BenchmarkError, match="taken: cannot be written"):
        write_plan(PLAN, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json", "taken"]
