"""The parts of the search against what can be worked out by other means."""

from itertools import combinations

import numpy as np
import pytest
from bisecting import RULES, search
from scipy import integrate, stats

from bot.bisection.buildable import build_chances
from bot.bisection.information import information
from bot.bisection.levels import LEVELS, NOISE_WEIGHTS, SCALES, SHARED, ZERO, level_curve, smear, step_prior
from bot.bisection.posterior import posterior_of_times
from bot.bisection.state import with_build, with_probes

PAIRS = {1: (0.002, -0.004), 2: (0.011, 0.006, 0.013), 3: (0.016, 0.021), 4: (0.019, 0.02, 0.012)}


def test_the_posterior_is_that_of_going_through_every_set_of_changes():
    """Four commits, all measured: the joint probability of each set of places is a sum over the levels of its path."""
    state = search(4, weights=[1.0, 2.0, 1.0, 4.0])
    state = with_build(state, "0", ok=True)
    for place, values in PAIRS.items():
        state = with_probes(with_build(state, str(place), ok=True), str(place), values)
    known = posterior_of_times(state)

    sd, shared = RULES.pair_sd, RULES.build_sd
    steps = step_prior(RULES.smallest / sd)
    curves = {place: level_curve(values, sd, sd, shared) for place, values in PAIRS.items()}
    bases = np.repeat([smear(times * shared / sd)[ZERO] for times in SHARED], len(SCALES), axis=0)
    share = dict(zip(PAIRS, np.array([1, 2, 1, 4]) / 8, strict=True))
    joint = {}
    for count in range(4):
        for places in combinations(PAIRS, count):
            state_now = bases * NOISE_WEIGHTS[:, None]
            for place in PAIRS:
                if place in places:
                    state_now = state_now @ steps * np.expm1(RULES.further * share[place])
                state_now = state_now * curves[place]
            prior = RULES.nothing if not places else (1 - RULES.nothing) / np.expm1(RULES.further)
            joint[places] = state_now.sum() * prior
    total = sum(joint.values())
    for count in range(4):
        alone = sum(chance for places, chance in joint.items() if len(places) == count)
        assert known.counts[count] == pytest.approx(alone / total, rel=1e-9)
    for number in range(3):
        for place in PAIRS:
            here = sum(chance for places, chance in joint.items() if places[number : number + 1] == (place,))
            assert known.change[number, place - 1] == pytest.approx(here / total, rel=1e-9)


def test_a_curve_is_the_likelihood_of_students_t_with_what_the_build_shares():
    values, sd, shared = (0.004, 0.013), 0.01, 0.004
    curve = level_curve(values, sd, sd, shared)
    levels = LEVELS[ZERO - 8 : ZERO + 12] * sd
    number = SHARED.index(2.0) * len(SCALES) + 1  # the second scale, with twice the shared sd

    def likelihood(level: float) -> float:
        def of(shift: float) -> float:
            pairs = stats.t.pdf(np.array(values), 5, loc=level + shift, scale=SCALES[1] * sd)
            return float(pairs.prod() * stats.norm.pdf(shift, scale=2 * shared))

        return integrate.quad(of, -0.06, 0.06, limit=200)[0]

    expected = np.array([likelihood(level) for level in levels])
    found = curve[number, ZERO - 8 : ZERO + 12]
    assert found / found.sum() == pytest.approx(expected / expected.sum(), rel=0.02)


@pytest.mark.parametrize(("separation", "bits"), [(1.0, 0.16), (1.5, 0.32), (2.0, 0.49), (3.0, 0.76), (5.0, 0.98)])
def test_the_information_of_a_pair_is_that_of_the_simulations(separation, bits):
    assert information(np.array(0.5), np.array(separation)) == pytest.approx(bits, abs=0.011)


def test_information_lies_between_nothing_and_the_entropy():
    chances = np.linspace(0, 1, 51)
    entropy = stats.entropy(np.stack([chances, 1 - chances]), base=2)
    for separation in (0.0, 0.1, 1.0, 4.0, np.inf):
        bits = information(chances, np.array(separation))
        assert (bits >= 0).all()
        assert (bits <= entropy + 1e-9).all()
    assert information(chances, np.array(np.inf)) == pytest.approx(entropy, abs=1e-6)


def test_neighbours_of_a_failed_commit_are_less_likely_to_build():
    asked = np.array([10, 49, 51, 60, 90])
    before = build_chances(101, {}, asked)
    lone = build_chances(101, {50: False}, asked)
    run = build_chances(101, {48: False, 50: False, 52: False, 54: False}, asked)
    assert (lone < before).all()
    assert lone[1] == pytest.approx(lone[2], rel=0.05)
    assert lone[1] < lone[3] < lone[4]
    assert run[2] < lone[2] < 0.8
    assert build_chances(101, {50: False, 49: True, 53: True}, np.array([51]))[0] > lone[2]


def test_where_failures_stand_alone_their_neighbours_are_not_avoided():
    tried = {place: place % 5 != 0 for place in range(1, 60)}
    beside, far = build_chances(101, {**tried, 80: False}, np.array([81, 95]))
    assert beside == pytest.approx(far, abs=0.05)
