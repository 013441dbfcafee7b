"""The canaries of a shard: one record for each planned one in both runs, whatever happens to them."""

import dataclasses
import sys
from pathlib import Path

import pytest

from torchbenchmark.canaries import measuring
from torchbenchmark.canaries.measuring import Canaries, canary_file, completed, not_measured, planned_canaries, problems
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.records import CanaryOf, PlannedTest, Run, Shard, Status, read_run, replace_lines
from torchbenchmark.registry import load_suite

WRONG = CanarySettings(python="/no/such/python")
NIGHT = "20260102T030405Z-0badcafe"


@pytest.fixture
def night(make_header):
    return make_header("test_eval[resnet18-cpu-eager-tiny]", shard=Shard(index=2, count=3))


@pytest.fixture
def told():
    return []


@pytest.fixture
def canaries(tmp_path, cache, told) -> Canaries:
    """Of a build that cannot be had."""
    return Canaries(WRONG, tmp_path / "shard.jsonl", reporter=None, tell=lambda *of: told.append(of))


def run_in(canaries: Canaries, turn) -> Run:
    return read_run(canary_file(canaries.out, turn))


def test_the_suite_has_five_canaries_or_more_each_of_another_model():
    planned = planned_canaries(WRONG, "cpu", ())
    assert len(planned) >= 5 and len({one.test for one in planned}) == len(planned)
    assert len(load_suite("canary").models) >= 5
    assert len(planned_canaries(WRONG, "cuda", ())) == len(planned)


def test_canaries_whose_build_cannot_be_had_are_errors_with_the_reason_and_are_told(canaries, night, told):
    canaries.first(night)
    canaries.last(night)
    for turn in ("first", "last"):
        run = run_in(canaries, turn)
        assert run.header.canary == CanaryOf(run=NIGHT, shard=Shard(index=2, count=3), turn=turn)
        assert run.header.run == f"{NIGHT}-canary-{turn}-2-of-3"
        assert (run.header.suite, run.header.build.id) == ("canary", "not-frozen")
        assert (run.header.machine_class, run.header.started) == (night.machine_class, night.started)
        assert run.header.plan == planned_canaries(WRONG, "cpu", ()) and not run.missing
        assert {record.status for record in run.records} == {Status.ERROR}
        assert all("/no/such/python: not a usable interpreter" in record.reason for record in run.records)
    assert [which for which, _ in told] == [
        f"the {turn} canaries of run {NIGHT}, shard 2/3" for turn in ("first", "last")
    ]
    assert "0 canaries are measured, and at least 5 should be" in told[0][1]


def test_whatever_goes_wrong_with_canaries_stops_no_night(canaries, night, told, monkeypatch):
    def breaks(*_):
        raise RuntimeError("of nobody's making")

    monkeypatch.setattr(measuring, "frozen_build", breaks)
    canaries.first(night)
    assert {record.reason for record in run_in(canaries, "first").records} == {"RuntimeError: of nobody's making"}
    monkeypatch.setattr(measuring, "_fill", breaks)
    canaries.last(night)
    assert told[-1][1] == ["no record could be kept: RuntimeError: of nobody's making"]


def test_a_shard_that_was_measured_without_first_canaries_has_records_of_them_that_say_so(canaries, night):
    canaries.last(night)
    assert {record.reason for record in run_in(canaries, "first").records} == {"the shard was measured without them"}


def test_what_is_whole_is_not_measured_again_and_what_is_of_another_night_is_replaced(canaries, night, told):
    canaries.first(night)
    before = canary_file(canaries.out, "first").read_bytes()
    told.clear()
    canaries.first(night)
    assert canary_file(canaries.out, "first").read_bytes() == before and not told
    canaries.first(night.model_copy(update={"run": "another"}))
    assert run_in(canaries, "first").header.run == "another-canary-first-2-of-3"


def test_a_run_that_was_torn_by_a_kill_keeps_what_it_had_when_it_is_given_up(canaries, night):
    whole = not_measured(WRONG, night, "first", "as before")
    file = canary_file(canaries.out, "first")
    replace_lines(file, [whole.header, whole.records[0]])
    with file.open("ab") as torn:
        torn.write(b'{"kind": "record", "torn')
    canaries.give_up("first", night, "given up")
    run = run_in(canaries, "first")
    assert not run.missing
    assert [record.reason for record in run.records] == ["as before", *["given up"] * (len(run.records) - 1)]


def test_a_damaged_file_costs_its_canaries_and_not_the_night(canaries, night):
    canary_file(canaries.out, "first").write_text("no record\n")
    canaries.first(night)
    assert not run_in(canaries, "first").missing


def test_what_a_suite_leaves_out_is_left_out_also_where_nothing_is_measured(night):
    run = not_measured(WRONG, night, "last", "nothing")
    skipped = PlannedTest(**{**run.header.plan[0].model_dump(), "skip": "too slow"})
    cut = Run(run.header.model_copy(update={"plan": (skipped, *run.header.plan[1:])}), ())
    first, *others = completed(cut, "nothing").records
    assert (first.status, first.reason) == (Status.SKIPPED, "too slow")
    assert {record.status for record in others} == {Status.ERROR}
    assert not any("too slow" in line for line in problems(completed(cut, "nothing")))


def test_unsupported_canaries_and_those_without_a_record_are_told(night):
    run = not_measured(WRONG, night, "last", "nothing")
    unsupported = run.records[0].model_copy(update={"status": Status.UNSUPPORTED, "reason": "needs timm"})
    ok = tuple(record.model_copy(update={"status": Status.OK, "reason": ""}) for record in run.records[1:-1])
    told = problems(dataclasses.replace(run, records=(unsupported, *ok)))
    assert told == [
        f"{unsupported.test} is not measured: unsupported, needs timm",
        f"{run.records[-1].test} has no record",
        f"{len(ok)} canaries are measured, and at least 5 should be",
    ]
    assert problems(dataclasses.replace(run, records=(*ok, *ok))) == [
        f"{run.records[0].test} has no record",
        f"{run.records[-1].test} has no record",
    ]


class Quiet:
    def __getattr__(self, name):
        return lambda *_: None


def test_a_run_that_was_killed_goes_on_and_no_canary_is_measured_twice(tmp_path, cache, night, told):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: few\ndescription: d\nmodels: [dlrm]\ntests: [eval]\npreset: tiny\nbatch_sizes: [default, 2, 4, 8, 16]\n"
    )
    settings = CanarySettings(python=sys.executable, suite=str(suite))
    changes = {"budget_s": 0.02, "warmup_cap_s": 0.08, "threads": 1}
    quick = night.model_copy(update={"measuring": night.measuring.model_copy(update=changes), "rounds": 1})
    canaries = Canaries(settings, tmp_path / "shard.jsonl", Quiet(), lambda *of: told.append(of))
    canaries.first(quick)
    file = canary_file(canaries.out, "first")
    run = read_run(file)
    assert not told, told
    assert [record.status for record in run.records] == [Status.OK] * 5
    assert run.header.measuring.settings == quick.measuring.settings
    assert (run.header.rounds, run.header.canary.lock != "") == (1, True)
    *kept, lost = run.records
    replace_lines(file, [run.header, *kept])
    canaries.first(quick)
    again = read_run(file)
    assert again.header == run.header and list(again.records[:-1]) == kept
    assert again.records[-1].test == lost.test and again.records[-1].ended > lost.ended
    assert not Path(f"{file}.journal").exists()


def test_a_run_that_was_killed_on_another_build_is_not_mixed_with_this_one(tmp_path, cache, night, told):
    settings = CanarySettings(python=sys.executable)
    run = not_measured(settings, night, "first", "as before")
    file = canary_file(tmp_path / "shard.jsonl", "first")
    replace_lines(file, [run.header, run.records[0]])
    Canaries(settings, tmp_path / "shard.jsonl", Quiet(), lambda *of: told.append(of)).first(night)
    again = read_run(file)
    assert again.records[0].reason == "as before"
    assert all("was begun on build not-frozen, this is" in record.reason for record in again.records[1:])
