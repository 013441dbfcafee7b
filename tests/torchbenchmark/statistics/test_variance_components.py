"""Which level of replication makes the noise."""

import numpy as np
import pytest

from torchbenchmark.statistics.variance_components import variance_components

# Sokal and Rohlf, Biometry, box 10.1: wing lengths of 12 mosquitoes in 3 cages, each measured twice.
WINGS = np.array(
    [
        *(58.5, 59.5, 77.8, 80.9, 84.0, 83.6, 70.1, 68.3),
        *(69.8, 69.8, 56.0, 54.5, 50.7, 49.3, 63.8, 65.8),
        *(56.6, 57.5, 77.8, 79.2, 69.9, 69.2, 62.1, 64.5),
    ]
)
CAGES, FEMALES = np.repeat(["a", "b", "c"], 8), np.repeat(np.arange(12), 2)


def unbalanced(seed=0):
    """Labels of 8 zygotes with 1 to 4 processes of 1 to 5 iterations."""
    rng = np.random.default_rng(seed)
    zygotes = np.repeat(np.arange(8), [1, 2, 3, 4, 2, 3, 4, 1])
    iterations = rng.integers(1, 6, len(zygotes))
    return np.repeat(zygotes, iterations), np.repeat(np.arange(len(zygotes)), iterations)


def test_mosquito_wings_have_the_published_components():
    found = variance_components(WINGS, CAGES, FEMALES)
    assert found.zygote.estimate == pytest.approx(17.7064, abs=1e-4)
    assert found.process.estimate == pytest.approx(94.9424, abs=1e-4)
    assert found.iteration.estimate == pytest.approx(1.3017, abs=1e-4)
    assert (found.zygote.degrees, found.process.degrees, found.iteration.degrees) == (2, 9, 12)
    assert found.zygote.standard_error is None  # three cages


def test_labels_may_come_in_any_order_and_processes_may_be_numbered_anew_in_each_zygote():
    found = variance_components(WINGS, CAGES, FEMALES)
    shuffled = np.random.default_rng(1).permutation(len(WINGS))
    again = variance_components(WINGS[shuffled], CAGES[shuffled], (FEMALES % 4)[shuffled])
    assert again.zygote.estimate == pytest.approx(found.zygote.estimate)
    assert again.process.estimate == pytest.approx(found.process.estimate)
    assert again.mean == pytest.approx(WINGS.mean())


@pytest.mark.parametrize("planted", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 2.0, 7.0)])
def test_unbalanced_estimates_are_unbiased_exactly(planted):
    """An estimate is a quadratic form y'Qy; its mean is trace(QV), got here from the estimates of basis vectors."""
    zygotes, processes = unbalanced()
    n = len(zygotes)
    covariance = planted[0] * np.equal.outer(zygotes, zygotes) + planted[1] * np.equal.outer(processes, processes)
    covariance = covariance + planted[2] * np.eye(n)
    means = np.zeros(3)
    weights, vectors = np.linalg.eigh(covariance)
    for weight, vector in zip(weights, vectors.T, strict=True):
        if weight > 1e-12:
            found = variance_components(np.sqrt(weight) * vector, zygotes, processes, resamples=2)
            means += [found.zygote.estimate, found.process.estimate, found.iteration.estimate]
    assert means == pytest.approx(np.array(planted), abs=1e-9)


def test_planted_components_are_recovered_within_their_standard_errors():
    rng = np.random.default_rng(3)
    zygotes, processes = np.repeat(np.arange(60), 12), np.repeat(np.arange(240), 3)
    values = 0.010 * rng.standard_normal(60)[zygotes] + 0.006 * rng.standard_normal(240)[processes]
    found = variance_components(values + 0.003 * rng.standard_normal(720), zygotes, processes)
    for component, sd in ((found.zygote, 0.010), (found.process, 0.006), (found.iteration, 0.003)):
        assert abs(component.variance - sd**2) < 3 * component.standard_error < 1.5 * sd**2
    assert found.clipped == ()


def test_standard_errors_are_the_spread_of_the_estimates_over_repetitions():
    rng = np.random.default_rng(4)
    zygotes = np.repeat(np.arange(25), 3)
    found = [
        variance_components(rng.standard_normal(25)[zygotes] + 0.5 * rng.standard_normal(75), zygotes, resamples=200)
        for _ in range(200)
    ]
    for level in ("zygote", "process"):
        estimates = np.std([getattr(one, level).estimate for one in found])
        told = np.mean([getattr(one, level).standard_error for one in found])
        assert told == pytest.approx(estimates, rel=0.2)


def test_a_level_that_adds_nothing_may_be_estimated_below_zero_and_counts_as_zero_and_is_told():
    values = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # zygotes agree better than their processes would let them
    found = variance_components(values, [0, 0, 1, 1, 2, 2])
    assert found.zygote.estimate < 0
    assert (found.zygote.variance, found.zygote.clipped, found.clipped) == (0.0, True, ("zygote",))
    assert found.process.variance == pytest.approx(2.0)


def test_one_process_a_zygote_leaves_its_noise_in_the_zygotes_component():
    values = np.random.default_rng(5).standard_normal(9)
    found = variance_components(values, np.arange(9))
    assert found.process is None and found.iteration is None
    assert found.zygote.estimate == pytest.approx(values.var(ddof=1))


def test_values_without_repetition_inside_a_process_have_no_iteration_component():
    found = variance_components(WINGS, CAGES)
    assert found.iteration is None
    between_and_within = (1720.6775 + 15.62) / 21
    assert found.process.estimate == pytest.approx(between_and_within, abs=1e-4)


def test_the_variance_of_a_mean_says_what_more_of_each_level_saves():
    found = variance_components(WINGS, CAGES, FEMALES)
    assert found.variance_of_mean(1) == pytest.approx(17.7064 + 94.9424 + 1.3017, abs=1e-3)
    assert found.variance_of_mean(3, 4, 2) == pytest.approx((17.7064 + (94.9424 + 1.3017 / 2) / 4) / 3, abs=1e-3)
    assert found.variance_of_mean(1, 10**9) == pytest.approx(17.7064, abs=1e-3)


def test_a_large_common_level_costs_no_digits():
    found, far = (variance_components(WINGS + shift, CAGES, FEMALES) for shift in (0, 1e9))
    assert far.iteration.estimate == pytest.approx(found.iteration.estimate, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [0, 0]), "one zygote alone"),
        (([1.0], [0]), "at least 2"),
        (([1.0, np.nan], [0, 1]), "not finite"),
        (([1.0, 2.0, 3.0], [0, 1]), "2 and 3 values"),
        (([1.0, 2.0], [0, 1], [[0], [1]]), "one label each"),
    ],
)
def test_data_without_levels_are_refused_with_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        variance_components(*arguments)
    with pytest.raises(ValueError, match="at least 1 zygote"):
        variance_components(WINGS, CAGES).variance_of_mean(0)
