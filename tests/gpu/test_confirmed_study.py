"""What the study of confirmed changes computes and tells, without a GPU."""

import dataclasses
import json
import math
import random
import types

import longer_operator
import pytest
import torch
from calibrated import plan_of
from confirmed import Study, as_it_must_be, spread_of, table, truths
from planted import difference, rows_that_add

TESTS = {"hf_Bert train": "test_train[hf_Bert-cuda-eager]", "hf_Bert eval": "test_eval[hf_Bert-cuda-eager]"}


def found(**changed) -> dict:
    """A study that ended well, of which some things are otherwise."""
    tried = {"kind": "regression", "verdict": "confirmed", "pairs": 11, "e_value": 470.0, "threshold": 200.0}
    again = {"persistent": True, "answered": True, "effect": 0.0298, "low": 0.029, "high": 0.031}
    itself = {**tried, "verdict": "futile", "pairs": 2, "e_value": 0.1}
    whole = {
        "truth": {name: {"log_ratio": 0.03, "least": 0.0299, "most": 0.0301} for name in TESTS},
        "slowed": [{**tried, "test": test} for test in TESTS.values()],
        "again": [{**again, "test": test} for test in TESTS.values()],
        "against_itself": [{"tried": [{**itself, "test": test} for test in TESTS.values()]}],
    }
    return {**whole, **changed}


def test_it_is_as_it_must_be_only_if_all_are_confirmed_hold_the_truth_and_nothing_is_of_the_build_itself():
    whole = found()
    assert as_it_must_be(whole, TESTS)
    assert "holds the truth" in table(whole, TESTS) and table(whole, TESTS).count(" yes") == 2

    assert not as_it_must_be(found(again=whole["again"][:1]), TESTS), "one was not confirmed"
    beside = [whole["again"][0], {**whole["again"][1], "low": 0.0301}]
    assert not as_it_must_be(found(again=beside), TESTS)
    assert " NO" in table(found(again=beside), TESTS)
    gone = [whole["again"][0], {**whole["again"][1], "persistent": False}]
    assert not as_it_must_be(found(again=gone), TESTS)
    assert " gone" in table(found(again=gone), TESTS)
    (itself,) = whole["against_itself"]
    alarm = {"tried": [{**itself["tried"][0], "verdict": "confirmed"}]}
    assert not as_it_must_be(found(against_itself=[itself, alarm]), TESTS)
    assert "against itself, 2: 1 of 1 confirmed" in table(found(against_itself=[itself, alarm]), TESTS)


def test_a_study_that_has_only_begun_is_told_too():
    begun = {"truth": found()["truth"]}
    assert "not finished" in table(begun, TESTS) and "+3.05%" in table(begun, TESTS)


def test_the_truth_is_the_middle_of_the_processes():
    profiles = [{"seconds": 1.0, "log_ratio": ratio} for ratio in (0.031, 0.029, 0.0305)]
    assert truths({"a": {"profiles": profiles}}) == {"a": {"log_ratio": 0.0305, "least": 0.029, "most": 0.031}}


def test_a_test_with_too_few_processes_has_no_spread():
    values = {
        "a": {"gpu_time": (1.0, math.exp(0.01), math.exp(0.02))},
        "b": {"gpu_time": (1.0, 1.1)},
        "c": {"latency": (1.0, 1.0, 1.0)},
    }
    assert spread_of(values, "gpu_time", 3) == {"a": pytest.approx(math.sqrt(2 * 1e-4 / 0.6931))}
    assert spread_of({}, "gpu_time", 3) == {}


@pytest.mark.parametrize("short", [0, 1 << 18])
def test_the_rows_that_add_a_share_are_found_though_the_first_guess_is_far_off(short):
    def seconds(rows: int) -> float:
        return 5e-3 + 25 * (max(0, rows - (1 << 17)) * 1e-12 + 1e-6 * (rows > 0))  # a start, and no time below a size

    rows = rows_that_add(0.03, seconds, short, 1 << 20, 1 << 28)
    base, added = difference(seconds, short, rows, 2)
    assert added / base == pytest.approx(0.03, rel=0.02)


def test_two_tests_that_make_the_same_call_are_refused():
    assert plan_of({"a": {"calls": ["4x8 1e-05 train"], "rows": 7}}) == {"4x8 1e-05 train": 7}
    with pytest.raises(ValueError, match="b: calls layer_norm as another test does"):
        plan_of({name: {"calls": ["4x8 1e-05 train"], "rows": 7} for name in ("a", "b")})


def test_only_planned_calls_write_more_rows_and_none_computes_anything_else(monkeypatch):
    functional = types.SimpleNamespace(layer_norm=torch.nn.functional.layer_norm)
    monkeypatch.setattr(longer_operator, "rows", {"2x4 1e-05 eval": 1000})
    monkeypatch.setattr(longer_operator, "calls", set())
    longer_operator.slow_down(functional)
    there = torch.randn(2, 4)

    def operators(gradients: bool) -> list[str]:
        with torch.profiler.profile() as seen, torch.set_grad_enabled(gradients):
            result = functional.layer_norm(there, (4,))
        assert torch.equal(result, torch.nn.functional.layer_norm(there, (4,)))
        return [event.name for event in seen.events()]

    assert "aten::fill_" in operators(False) and "aten::fill_" not in operators(True)
    assert longer_operator.calls == {"2x4 1e-05 eval", "2x4 1e-05 train"}


class Simulated:
    """A bench whose slowed build is 3 % slower; pairs spread by 0.1 %."""

    processes_used = 0

    def pairs(self, wanted, rounds, decided, runner=0):
        chance, found = random.Random(0), [[] for _ in wanted]
        for _ in range(rounds):
            left = set(decided(found))
            for index, one in enumerate(wanted):
                if index not in left:
                    truth = 0.03 if one.head == "slowed" else 0.0
                    found[index].append({"gpu_time": truth + chance.gauss(0.0, 0.001)})
        return found


def test_a_study_goes_from_its_trials_to_a_result_that_is_as_it_must_be(tmp_path, monkeypatch):
    study = Study(tmp_path, "cuda", "full", 0.03)
    study.found["truth"] = {name: {"log_ratio": 0.03, "least": 0.03, "most": 0.03} for name in study.names}
    monkeypatch.setattr(study, "bench", lambda stage: Simulated())
    trials = [study.trial(test, "usual", "slowed", 0.0014, len(study.names)) for test in study.tests.values()]
    study.try_slowed(trials)
    assert len(study.found["again"]) == 4
    nothing = [dataclasses.replace(trial, head="usual") for trial in trials]
    study.try_against_itself(1, nothing)
    study.show_against_itself(nothing)
    (tried,), shown = [one["tried"] for one in study.found["against_itself"]], study.found["intervals_against_itself"]
    assert {one["candidates"] for one in tried} == {8} and {one["verdict"] for one in tried} == {"futile"}
    assert [one["low"] <= 0 <= one["high"] for one in shown].count(True) >= 3
    kept = json.loads((tmp_path / "confirmed.json").read_text())
    assert as_it_must_be(kept, study.tests)
    assert (tmp_path / "confirmed.txt").read_text().count("confirmed  ") == 4
