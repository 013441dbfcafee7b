"""Two finished runs beside each other: what is said, and what is said not to be known."""

import dataclasses

import pytest
from night_factory import A, B, C, run_of

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.finished import compare_runs
from torchbenchmark.paired.terminal import print_finished
from torchbenchmark.records import Status


def test_a_change_is_shown_with_the_spread_of_either_side_and_without_a_verdict():
    one = run_of(0, {A: {"cpu_time": [1.0, 1.1, 1.2]}, B: {"cpu_time": [1.0, 1.0, 1.0]}})
    other = run_of(1, {A: {"cpu_time": [1.15, 1.2, 1.3]}, B: {"cpu_time": [1.5, 1.5, 1.6]}})
    found = compare_runs(one, other)
    rows = {row.test: row for row in found.rows}
    assert rows[A].change == pytest.approx(1.2 / 1.1 - 1) and not rows[A].beyond_spread
    assert rows[B].change == pytest.approx(0.5) and rows[B].beyond_spread
    assert rows[A].a.spread == pytest.approx(0.2 / 1.1) and rows[A].a.processes == 3
    assert found.states == {}
    assert "not measured in pairs" in found.cannot_know[0] and "24.0 hours lie between them" in found.cannot_know


def test_what_moves_the_numbers_beside_the_build_is_named():
    one = run_of(0, {A: 1.0}, fingerprint="env1", facts={"cpu": "a", "driver": "1"})
    other = run_of(1, {A: 1.0}, fingerprint="env2", facts={"cpu": "a", "driver": "2"})
    told = compare_runs(one, other).cannot_know
    assert "two environments, which differ in driver" in told
    assert any(line.startswith("1 round:") for line in told)
    elsewhere = run_of(1, {A: 1.0}, machine_class="cpu-8t")
    assert any(line.startswith("two classes of machines") for line in compare_runs(one, elsewhere).cannot_know)


def test_every_test_of_either_run_is_told():
    one = run_of(0, {A: 1.0, B: Status.CRASH, C: 1.0}, workloads={C: "w1"})
    other = run_of(1, {A: Status.OOM, B: 1.0, C: 1.0}, workloads={C: "w2"})
    only = dataclasses.replace(other, records=other.records[1:])
    states = {test: state for test, (state, _) in compare_runs(one, other).states.items()}
    assert states == {A: "newly failing", B: "fixed", C: "workload changed"}
    assert compare_runs(one, only).states[A][0] == "only in A"
    assert compare_runs(only, one).states[A][0] == "only in B"


def test_counts_are_compared_as_they_are():
    one = run_of(0, {A: {"cpu_time": 1.0, "operators": 412}})
    other = run_of(1, {A: {"cpu_time": 1.0, "operators": 413}})
    (row,) = [row for row in compare_runs(one, other).rows if row.channel == "operators"]
    assert row.change == pytest.approx(1 / 412)


def test_runs_of_two_devices_are_refused():
    with pytest.raises(BenchmarkError, match="nothing to compare"):
        compare_runs(run_of(0, {A: 1.0}), run_of(1, {A: 1.0}, device="cuda"))


def test_two_batch_sizes_are_two_workloads_whatever_their_hash():
    one, other = run_of(0, {A: 1.0, B: 1.0}), run_of(1, {A: 1.0, B: 2.0})
    sizes = {A: None, B: 8}
    one, other = (
        dataclasses.replace(
            run,
            records=tuple(
                record.model_copy(update={"batch_size": sizes[record.test] and sizes[record.test] * factor})
                for record in run.records
            ),
        )
        for run, factor in ((one, 1), (other, 2))
    )
    found = compare_runs(one, other)
    assert found.states == {B: ("batch size changed", "8 and 16")}
    assert {row.test for row in found.rows} == {A}


def test_runs_that_have_nothing_to_show_in_a_table_show_none(capsys):
    one, other = (run_of(day, {A: {"operators": [5.0, 5.0]}}) for day in (0, 1))
    print_finished(compare_runs(one, other, ("operators",)))
    assert capsys.readouterr().out.startswith("counts: 1 is the same")
