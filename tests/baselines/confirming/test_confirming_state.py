"""What is stored between nights is all that the next night needs, and a night can be begun again."""

import functools
import random

import pytest
from small_fleet import SmallFleet, seen_of

from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from baselines.confirming.state import ClassState, Onset, common
from baselines.fleet_replay import FleetBench

RULES = Rules()
SCENARIOS = {
    "much": {
        "steps": [
            {"build": 18, "size": 0.03, "tests": [3]},
            {"build": 22, "size": 0.008, "tests": [4, 5, 6]},
            {"build": 36, "size": 0.03, "tests": list(range(20))},
        ],
        "drivers": [{"night": 28, "size": 0.03, "tests": list(range(28))}],
        "bimodal": [1],
        "spiky": [2],
        "missing": [{"test": 7, "first": 20, "last": 30}],
        "nights": 42,
    },
    "turns": {
        "steps": [{"build": 22, "size": 0.03, "tests": [3]}],
        "drivers": [{"night": 26, "size": 0.03, "tests": list(range(28))}],
        "runners": 2,
        "alternate": True,
        "nights": 32,
    },
}


class Killed(Exception):
    pass


class Mortal(FleetBench):
    """Is killed when it has run so many processes."""

    def __init__(self, *arguments, life: int) -> None:
        super().__init__(*arguments)
        self.life = life

    def _process(self, *arguments):
        if self.processes >= self.life:
            raise Killed
        return super()._process(*arguments)


@functools.lru_cache(maxsize=4)
def nights_of(name: str):
    """(fleet, and of every night what was seen, the stored state before it, its outcome, the stored state after)."""
    fleet = SmallFleet(SCENARIOS[name], 3)
    state = ClassState()
    nights = []
    for night in range(fleet.n_nights):
        seen, before = seen_of(fleet, night), state.model_dump_json(by_alias=True)
        outcome = run_night(seen, state, FleetBench(fleet, night, 3), RULES)
        nights.append((seen, before, outcome, state.model_dump_json(by_alias=True)))
    return fleet, nights


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_state_that_is_stored_and_read_after_every_night_comes_to_the_same(name):
    fleet, nights = nights_of(name)
    kinds = {filed.kind for _, _, outcome, _ in nights for filed in outcome.filed}
    assert kinds == {"regression", "environment"}
    for night, (seen, before, outcome, after) in enumerate(nights):
        state = ClassState.model_validate_json(before)
        assert run_night(seen, state, FleetBench(fleet, night, 3), RULES) == outcome, night
        assert state.model_dump_json(by_alias=True) == after, night
        assert ClassState.model_validate_json(after) == state, night


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_night_that_is_killed_anywhere_and_begun_again_from_what_is_stored_comes_to_the_same(name):
    fleet, nights = nights_of(name)
    for night, (seen, before, outcome, after) in enumerate(nights):
        for life in {1, outcome.processes // 2, outcome.processes - 1}:
            if not 0 < life < outcome.processes:
                continue
            with pytest.raises(Killed):
                run_night(seen, ClassState.model_validate_json(before), Mortal(fleet, night, 3, life=life), RULES)
        state = ClassState.model_validate_json(before)
        assert run_night(seen, state, FleetBench(fleet, night, 3), RULES) == outcome
        assert state.model_dump_json(by_alias=True) == after


def test_onsets_have_the_nights_in_common_that_lie_in_all():
    _, nights = nights_of("turns")
    when = nights[-1][0].nights
    one, other, third = (Onset(low=when[low], high=when[high]) for low, high in ((1, 4), (3, 6), (5, 8)))
    assert common([one, other]) == Onset(low=when[3], high=when[4])
    assert common([one, other, third]) is None and common([one]) == one
    assert one.overlaps(other) and not one.overlaps(third)


class Flaky(FleetBench):
    """A fifth of the builds is gone, a pair in seven fails, one in twenty comes without its channel, and on some nights
    nothing can be measured."""

    def __init__(self, fleet: SmallFleet, night: int, seed: int) -> None:
        super().__init__(fleet, night, seed)
        self._chance = random.Random(f"flaky {seed} {night}")
        self._dead = self._chance.random() < 0.15
        self._gone = {build for build in range(night) if self._chance.random() < 0.2}

    def has(self, build: str, runner: int = 0) -> bool:
        return int(build.removeprefix("build")) not in self._gone

    def pairs(self, wanted, rounds, decided, runner=0):
        assert all(self.has(build) for one in wanted for build in (one.base, one.head))
        found = super().pairs(wanted, rounds, decided, runner)
        return [[self._spoiled(pair) for pair in pairs if self._works(0.15)] for pairs in found]

    def again(self, tests, build, processes):
        assert self.has(build)
        return {test: values for test, values in super().again(tests, build, processes).items() if self._works(0.1)}

    def _works(self, failing: float) -> bool:
        return self._chance.random() > failing and not self._dead

    def _spoiled(self, pair):
        return pair if self._chance.random() > 0.05 else {}


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_fails_a_night_ends_the_same_if_it_is_begun_again_and_what_is_filed_holds_together(seed):
    fleet = SmallFleet(SCENARIOS["much"] | {"runners": 1 + seed % 2, "alternate": seed == 1}, seed)
    chance, state, filed = random.Random(seed), ClassState(), []
    for night in range(fleet.n_nights):
        if chance.random() < 0.08:
            continue  # nothing was detected that night
        seen, other = seen_of(fleet, night, window=30), ClassState.model_validate_json(state.model_dump_json())
        outcome = run_night(seen, state, Flaky(fleet, night, seed), RULES)
        assert run_night(seen, other, Flaky(fleet, night, seed), RULES) == outcome
        assert other == ClassState.model_validate_json(state.model_dump_json())
        filed += outcome.filed
    assert filed
    for one in filed:
        assert one.onset.low <= one.onset.high <= one.night
        assert all(interval.base < one.onset.high and interval.head == one.night for interval in one.intervals)
