"""`torchbench baseline history`: each night against the nights before it."""

from io import StringIO

import pytest
from night_factory import A, B, C, night_of, run_of
from rich.console import Console

from baselines.cli import show_history
from baselines.errors import BaselineError
from baselines.history import add_night
from baselines.night_tables import night_table, require_channel, series_table
from baselines.runs import store_run
from baselines.store import open_store
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Status


def lines(table) -> list[str]:
    """The table without its headings, one space between the cells."""
    console = Console(file=StringIO(), width=1000)
    console.print(table)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()[1:]]


def series(nights, *patterns, channel="cpu_time", shown=99):
    """Of each row what follows the version: test, workload, status, value, change."""
    return [line.split(" ", 3)[3] for line in lines(series_table(nights, shown, patterns, channel, "median"))]


def test_every_night_of_a_test_is_held_against_the_median_of_those_before_it():
    nights = [night_of(day, {A: value}) for day, value in enumerate([1.0, 1.2, 1.1, 2.2])]
    assert series(nights, A) == [
        f"{A} w1 ok 1 s",
        f"{A} w1 ok 1.2 s +20.0%",
        f"{A} w1 ok 1.1 s +0.0%",
        f"{A} w1 ok 2.2 s +100.0%",
    ]


def test_nights_that_are_not_shown_are_compared_with_but_no_more_than_seven():
    nights = [night_of(day, {A: 9.0 if day < 4 else 1.0}) for day in range(11)]
    assert series(nights, A, shown=1) == [f"{A} w1 ok 1 s +0.0%"]
    assert [line.split()[-1] for line in series(nights[:5], A, shown=2)] == ["+0.0%", "-88.9%"]


def test_another_workload_or_environment_is_not_compared_with():
    nights = [night_of(0, {A: 1.0}), night_of(1, {A: 3.0}, workloads={A: "w2"})]
    assert series(nights, A)[-1] == f"{A} w2 ok 3 s"
    nights = [night_of(0, {A: 1.0}), night_of(1, {A: 3.0}, fingerprint="env2")]
    assert series(nights, A)[-1] == f"{A} w1 ok 3 s"


def test_a_test_that_failed_has_its_status_and_neither_value_nor_part_in_the_median():
    nights = [night_of(0, {A: 1.0}), night_of(1, {A: Status.OOM}), night_of(2, {A: None}), night_of(3, {A: 1.1})]
    assert series(nights, A) == [f"{A} w1 ok 1 s", f"{A} w1 oom", f"{A} w1 no record", f"{A} w1 ok 1.1 s +10.0%"]


def test_of_a_rate_less_is_slower():
    nights = [night_of(day, {A: {"throughput": value}}) for day, value in enumerate([100.0, 50.0])]
    assert series(nights, A, channel="throughput")[-1] == f"{A} w1 ok 50 1/s +100.0%"


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([A], {A}),
        (["resnet50"], {A}),
        (["res*"], {A}),
        (["test_eval[*-cpu-eager]"], {A, B, C}),
        (["dlrm", "hf_*"], {B, C}),
    ],
)
def test_tests_are_named_as_those_of_a_run(patterns, chosen):
    nights = [night_of(0, {A: 1.0, B: 1.0, C: 1.0})]
    assert {line.split()[0] for line in series(nights, *patterns)} == chosen


def test_a_test_that_no_shown_night_has_is_an_error_with_a_hint():
    nights = [night_of(0, {C: 1.0}), night_of(1, {A: 1.0, B: 1.0})]
    with pytest.raises(BenchmarkError, match=r"unknown test 'resnet5'; did you mean .*resnet50"):
        series(nights, "resnet5")
    assert len(series(nights, "dlrm")) == 1
    with pytest.raises(BenchmarkError, match="unknown test 'dlrm'"):
        series(nights, "dlrm", shown=1)


def test_a_channel_that_no_night_has_is_an_error_that_names_those_there_are():
    nights = [night_of(0, {A: {"cpu_time": 1.0, "latency": 1.0}}), night_of(1, {A: Status.CRASH})]
    require_channel(nights, "latency")
    with pytest.raises(BaselineError, match=r"--channel latancy: no test .* they have: cpu_time, latency$"):
        require_channel(nights, "latancy")
    with pytest.raises(BaselineError, match="--channel flops: "):
        require_channel(nights, "flops")
    require_channel(nights[1:], "flops")
    with pytest.raises(BaselineError, match=r"--channel latancy: .*cpu_time"):
        require_channel(nights[1:], "latancy")


def test_a_night_shows_the_middle_of_its_tests_and_the_one_that_is_slowest_against_its_past():
    nights = [night_of(0, {A: 1.0, B: 1.0, C: 1.0}), night_of(1, {A: 1.0, B: 1.5, C: 1.02})]
    first, second = lines(night_table(nights, 9, "cpu_time", "median"))
    assert "median" not in first and "3 of 3 100% runs/smoke" in first
    assert f"3 of 3 100% median +2.0%, most +50.0% {B} runs/smoke" in second
    (empty,) = lines(night_table([*nights, night_of(2, {A: Status.CRASH})], 1, "cpu_time", "median"))
    assert "0 of 1 0% runs/smoke" in empty


def test_the_command_shows_as_many_nights_as_are_asked_for(tmp_path, capsys):
    store = open_store(str(tmp_path / "store"))
    for day in range(4):
        add_night(store, store_run(store, run_of(day, {A: 2.0**day})).rpartition("/")[0])

    def shown(**options):
        asked = {"nights": 2, "test": None, "channel": None, "statistic": "p20", **options}
        show_history(str(tmp_path / "store"), "smoke", "cpu-4t", **asked)
        return capsys.readouterr().out.splitlines()[1:]

    assert [line.split()[-1][-5:] for line in shown()] == ["r0002", "r0003"]
    assert [line.split()[-1] for line in shown(test=["resnet50"])] == ["+166.7%", "+300.0%"]
    with pytest.raises(BaselineError, match="--channel cputime"):
        shown(channel="cputime")
