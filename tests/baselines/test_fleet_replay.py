"""What a small simulated fleet has filed, over all its nights and through the public door."""

import functools
import json

import pytest
from small_fleet import CHANNEL, SmallFleet

from baselines import fleet_replay
from baselines.confirming.bench import PairsWanted
from baselines.confirming.rules import Rules
from baselines.errors import BaselineError
from baselines.fleet_replay import FleetBench, open_fleet, replay_fleet, told

SEEDS = (1, 2)
STEP = {"build": 30, "size": 0.03, "tests": [3]}
CANARIES = range(35, 40)


@functools.lru_cache(maxsize=64)
def _replayed(scenario: str, seed: int) -> dict:
    return replay_fleet(SmallFleet(json.loads(scenario), seed), seed, Rules())


def replayed(scenario: dict, seed: int) -> dict:
    return _replayed(json.dumps(scenario), seed)


def alerts(scenario: dict, seed: int, kind: str | None = None) -> list[dict]:
    return [one for one in replayed(scenario, seed)["alerts"] if kind in (None, one["kind"])]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_code_files_nothing(seed):
    noisy = {"bimodal": [1], "spiky": [2], "missing": [{"test": 4, "first": 10, "last": 33}]}
    assert alerts({}, seed) == alerts(noisy, seed) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "kind"), [(0.03, "regression"), (-0.03, "improvement"), (999.0, "regression")])
def test_a_step_is_filed_once_on_the_second_night_with_its_series_its_sign_and_its_onset(seed, size, kind):
    (alert,) = alerts({"steps": [STEP | {"size": size}]}, seed)
    assert (alert["night"], alert["kind"], alert["tests"]) == (31, kind, [3])
    assert 28 <= alert["onset_lo"] <= 30 <= alert["onset_hi"] <= 31


@pytest.mark.parametrize("alternate", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_second_runner_a_step_is_filed_on_its_first_night(seed, alternate):
    scenario = {"runners": 2, "alternate": alternate, "steps": [STEP]}
    (alert,) = alerts(scenario, seed)
    assert (alert["night"], alert["kind"], alert["tests"]) == (30, "regression", [3])


def test_intervals_hold_the_truth_as_often_as_they_say_and_compare_builds_on_either_side_of_the_step():
    held = []
    for seed in range(1, 7):
        scenario = {"steps": [STEP, STEP | {"build": 40, "tests": [9, 11], "size": 0.05}]}
        fleet = SmallFleet(scenario, seed)
        shown = [one for one in replayed(scenario, seed)["intervals"] if one["confirmed"]]
        assert {one["test"] for one in shown} == {3, 9, 11}
        for one in shown:
            step = 30 if one["test"] == 3 else 40
            assert one["base"] < step <= one["head"]
            truth = 100 * fleet.effect(one["test"], one["base"], one["head"])
            assert 0 < one["lo_pct"] < one["hi_pct"] and one["hi_pct"] - one["lo_pct"] < 2
            held.append(one["lo_pct"] <= truth <= one["hi_pct"])
    assert sum(held) >= len(held) - 3  # of 18, one is expected not to


def test_a_build_against_itself_is_measured_every_night_and_its_interval_holds_zero_as_often_as_it_says():
    shown = [one for seed in SEEDS for one in replayed({}, seed)["intervals"]]
    assert all(one["base"] == one["head"] and not one["confirmed"] for one in shown)
    assert len(shown) == len(SEEDS) * (60 - 14)
    assert 0.9 <= sum(one["lo_pct"] <= 0 <= one["hi_pct"] for one in shown) / len(shown) < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_watcher_is_told_of_every_night_and_sees_the_step_ranked_first_and_confirmed(seed):
    seen = []
    fleet = SmallFleet({"steps": [STEP]}, seed)
    replay_fleet(fleet, seed, Rules(), lambda night, outcome: seen.append((night, outcome)))
    assert [night for night, _ in seen] == list(range(fleet.n_nights))
    tonight = seen[STEP["build"]][1]
    assert [tonight.ranks.argmax()] == STEP["tests"]
    assert [key.test for key in tonight.confirmed] == [fleet.tests[3]]
    assert all(len(outcome.ranks) == len(fleet.tests) for night, outcome in seen if night > Rules().burn_in)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_that_is_reverted_is_a_regression_and_then_an_improvement(seed):
    found = alerts({"steps": [{"build": 26, "size": 0.04, "tests": [5], "until": 38}]}, seed)
    assert [(one["night"], one["kind"], one["tests"]) for one in found] == [
        (27, "regression", [5]),
        (39, "improvement", [5]),
    ]
    assert found[0]["id"] != found[1]["id"]
    assert found[1]["onset_lo"] <= 38 <= found[1]["onset_hi"]


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_of_one_build_are_one_alert_and_of_different_signs_are_two(seed):
    found = alerts({"steps": [STEP | {"tests": [3, 8]}, STEP | {"tests": [9], "size": -0.05}]}, seed)
    assert sorted((one["kind"], one["tests"]) for one in found) == [("improvement", [9]), ("regression", [3, 8])]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_driver_is_one_note_and_no_regression_and_a_step_after_it_is_found(seed):
    driver = {"night": 30, "size": 0.03, "tests": list(range(28))}
    found = alerts({"drivers": [driver], "steps": [{"build": 36, "size": 0.03, "tests": [3, 33]}]}, seed)
    assert [(one["night"], one["kind"]) for one in found] == [(30, "environment"), (37, "regression")]
    assert found[1]["tests"] == [3, 33]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_driver_on_runners_that_take_turns_is_one_note(seed):
    driver = {"night": 30, "size": 0.03, "tests": list(range(28))}
    found = alerts({"drivers": [driver], "runners": 2, "alternate": True}, seed)
    assert {one["kind"] for one in found} == {"environment"}
    assert len({one["id"] for one in found}) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_driver_that_comes_with_the_guilty_build_is_no_note(seed):
    harmless = {"night": 30, "size": 0.0, "tests": []}
    (alert,) = alerts({"drivers": [harmless], "steps": [STEP]}, seed)
    assert (alert["kind"], alert["tests"]) == ("regression", [3])
    (alert,) = alerts({"drivers": [harmless], "steps": [STEP | {"tests": list(range(25))}]}, seed)
    assert (alert["kind"], alert["night"]) == ("regression", 31)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_silent_driver_is_seen_by_the_frozen_build_or_by_a_third_of_the_series(seed):
    of_a_few = {"night": 30, "size": 0.03, "tests": list(CANARIES), "silent": True}
    of_many = of_a_few | {"tests": list(range(14))}
    of_neither = of_a_few | {"tests": list(range(8))}
    # Five canaries are an eighth of the tests; when they are among the bridging tests is chance, so others move too.
    of_canaries = of_a_few | {"tests": [*CANARIES, *range(6, 12)]}
    for driver, notes in ((of_canaries, 1), (of_many, 1), (of_neither, 0)):
        found = alerts({"drivers": [driver]}, seed)
        assert [one["kind"] for one in found] == ["environment"] * notes
        assert all(one["night"] == 30 for one in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_build_that_slows_most_tests_is_one_regression_that_stragglers_join(seed):
    slowed = list(range(20))
    found = alerts({"steps": [{"build": 30, "size": 0.03, "tests": slowed}]}, seed)
    assert {one["kind"] for one in found} == {"regression"} and len({one["id"] for one in found}) == 1
    listed = {test for one in found for test in one["tests"]}
    assert listed >= set(slowed) and len(listed) <= 21  # a night's noise may list one more
    # Three tests that did not run in those two nights
    absent = [{"test": test, "first": 29, "last": 33} for test in slowed[:3]]
    found = alerts({"steps": [{"build": 30, "size": 0.03, "tests": slowed}], "missing": absent}, seed)
    assert found[0]["night"] == 31 and not set(found[0]["tests"]) & set(slowed[:3])
    assert len({one["id"] for one in found}) == 1, "told with the others, not as something else"
    assert {test for one in found[1:] for test in one["tests"]} >= set(slowed[:3])
    assert all((one["onset_lo"], one["onset_hi"]) == (30, 30) for one in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_tests_that_are_missing_or_new_are_found_when_they_are_there(seed):
    missing = [{"test": 3, "first": 28, "last": 32}, {"test": 6, "first": 0, "last": 30}]
    found = alerts({"missing": missing, "steps": [STEP, {"build": 45, "size": 0.04, "tests": [6]}]}, seed)
    assert [(one["kind"], one["tests"]) for one in found] == [("regression", [3]), ("regression", [6])]
    assert found[0]["onset_lo"] <= 30 <= found[0]["onset_hi"] and found[0]["night"] in (34, 35)
    assert found[1]["onset_lo"] <= 45 <= found[1]["onset_hi"]


@pytest.mark.parametrize("seed", SEEDS)
def test_new_tests_on_runners_that_take_turns_are_held_against_both(seed):
    new = [{"test": test, "first": 0, "last": 20} for test in (6, 7)]
    step = {"build": 45, "size": 0.02, "tests": [3, 6, 7]}
    found = alerts({"runners": 2, "alternate": True, "missing": new, "steps": [step]}, seed)
    assert [(one["night"], one["tests"]) for one in found] == [(45, [3, 6, 7])]


def test_what_the_detector_must_not_see_raises_and_nothing_of_the_future_is_asked(monkeypatch):
    fleet = SmallFleet({"steps": [STEP], "nights": 34}, 1)
    for name, arguments in (("truth", (3,)), ("build_events", None), ("env_events", None)):
        with pytest.raises(AssertionError, match="has read"):
            getattr(fleet, name)(*arguments) if arguments else getattr(fleet, name)
    nights = []
    run_night = fleet_replay.run_night

    def watched(seen, *others):
        nights.append(len(seen.nights) - 1)
        assert fleet.asked_night == nights[-1], "asked of a night that has not been"
        return run_night(seen, *others)

    monkeypatch.setattr(fleet_replay, "run_night", watched)
    assert len(replay_fleet(fleet, 1, Rules())["alerts"]) == 1
    assert nights == list(range(34))


def test_the_processes_told_are_those_that_the_fleet_ran():
    class Counting(SmallFleet):
        ran = 0

        def measure(self, *arguments):
            self.ran += 1
            return super().measure(*arguments)

    fleet = Counting({"steps": [STEP], "drivers": [{"night": 40, "size": 0.03, "tests": list(range(28))}]}, 1)
    found = replay_fleet(fleet, 1, Rules())
    assert found["processes"] == fleet.ran > 1000
    assert told(found) == f"seed 1: filed 1 environment, 1 regression; {fleet.ran} processes beside the nightly's"


def test_a_replay_is_a_function_of_fleet_and_seed():
    scenario = {"steps": [STEP], "runners": 2}
    assert replay_fleet(SmallFleet(scenario, 4), 4, Rules()) == replayed(scenario, 4)
    assert replay_fleet(SmallFleet(scenario, 4), 5, Rules()) != replayed(scenario, 4)


def test_the_bench_of_a_fleet_uses_every_process_once_and_throws_a_coin_for_the_order():
    asked = []

    class Recording(SmallFleet):
        def measure(self, test, build, night, runner, zygote, process, slot):
            asked.append((build, runner, zygote, slot))
            return super().measure(test, build, night, runner, zygote, process, slot)

    bench = FleetBench(Recording({"runners": 2}, 1), 20, 1)
    wanted = [PairsWanted("test_eval[m03-cuda-eager]", "build10", "build20")]
    (pairs,) = bench.pairs(wanted, 40, lambda so_far: (), 1)
    assert len(pairs) == 40 and set(pairs[0]) == {CHANNEL} and bench.processes == 80
    assert len({zygote for _, _, zygote, _ in asked}) == 80 and min(zygote for _, _, zygote, _ in asked) >= 1000
    assert [slot for _, _, _, slot in asked] == list(range(80)) and {runner for _, runner, _, _ in asked} == {1}
    base_first = sum(build == 10 for build, _, _, _ in asked[::2])
    assert 10 < base_first < 30
    assert [len(one) for one in bench.pairs(wanted * 2, 5, lambda so_far: [0] if len(so_far[0]) == 2 else ())] == [2, 5]


WRONG = [
    ("small_fleet", "s.yaml:calm", "--fleet small_fleet --scenario s.yaml:calm: write MODULE:CLASS and FILE:NAME"),
    ("small_fleet:SmallFleet", "s.yaml", "write MODULE:CLASS and FILE:NAME"),
    (
        "no_such_module:Fleet",
        "s.yaml:calm",
        "--fleet no_such_module:Fleet: ModuleNotFoundError: No module named 'no_such_module'",
    ),
    (".relative:Fleet", "s.yaml:calm", "--fleet .relative:Fleet: "),
    ("broken_module:Fleet", "s.yaml:calm", "--fleet broken_module:Fleet: "),
    ("small_fleet:NoFleet", "s.yaml:calm", "has no attribute 'NoFleet'"),
    ("small_fleet:CHANNEL", "s.yaml:calm", "the fleet could not be made: TypeError: 'str' object is not callable"),
    (
        "json:JSONDecoder",
        "s.yaml:calm",
        "--fleet json:JSONDecoder --scenario s.yaml:calm: the fleet could not be made: TypeError",
    ),
    ("small_fleet:when", "s.yaml:calm", "the fleet could not be made: TypeError: when() takes 1"),
    ("datetime:timedelta", "s.yaml:number", "--fleet datetime:timedelta: has no tests, n_nights, n_runners, runner,"),
    ("small_fleet:SmallFleet", "none.yaml:calm", "none.yaml: cannot be read: No such file or directory"),
    ("small_fleet:SmallFleet", "bad.yaml:calm", "bad.yaml:2: not valid YAML"),
    ("small_fleet:SmallFleet", "list.yaml:calm", "list.yaml: has no scenario calm; it has none"),
    ("small_fleet:SmallFleet", "s.yaml:wild", "s.yaml: has no scenario wild; it has calm, number"),
    ("small_fleet:SmallFleet", "s.yaml:number", "s.yaml:number: the fleet could not be made: TypeError"),
]


@pytest.mark.parametrize(("named", "scenario", "message"), WRONG)
def test_a_fleet_that_cannot_be_opened_says_why(tmp_path, monkeypatch, named, scenario, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_module.py").write_text("def (:\n")
    (tmp_path / "s.yaml").write_text("calm: {nights: 20}\nnumber: 3\n")
    (tmp_path / "bad.yaml").write_text("calm: [\n")
    (tmp_path / "list.yaml").write_text("- calm\n")
    with pytest.raises(BaselineError) as error:
        open_fleet(named, scenario, 1)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_fleet_is_opened_with_its_scenario_and_its_seed(tmp_path):
    (tmp_path / "s.yaml").write_text("calm: {nights: 20}\n")
    fleet = open_fleet("small_fleet:SmallFleet", f"{tmp_path}/s.yaml:calm", 3)
    assert fleet.n_nights == 20
    assert (fleet.night_values(4, 0) == SmallFleet({"nights": 20}, 3).night_values(4, 0)).all()
