"""How much of the noise each level of replication makes: zygote > process > iteration.

Analysis of variance of a nested random model, Henderson's method 1 (1953; Searle, Casella and McCulloch 1992):

    y_ijk = mu + zygote_i + process_ij + iteration_ijk

Mean squares are set equal to their expectations, which for unbalanced data hold the coefficients below. Unbiased
whatever the distributions, if effects are independent. Iterations in sequence are not quite: their slow part is counted
with the process, so the iteration's component is what shuffling would show, not what more iterations would save.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from torchbenchmark.statistics.samples import FloatArray, finite_vector, same_length

FEWEST_ZYGOTES_FOR_ERROR = 5  # a bootstrap of fewer says nothing


@dataclass(frozen=True)
class Component:
    """The variance that one level adds, in the squared unit of the values (of logarithms: .01^2 is 1 %)."""

    estimate: float  # may be negative: then the level adds less than its estimate's own error
    standard_error: float | None  # bootstrap over zygotes; None with fewer than five
    degrees: int  # of the mean square of the level

    @property
    def variance(self) -> float:
        return max(0.0, self.estimate)

    @property
    def clipped(self) -> bool:
        """The variance is 0 because the estimate was negative."""
        return self.estimate < 0


@dataclass(frozen=True)
class VarianceComponents:
    zygote: Component
    process: Component | None  # None: one process a zygote, and its noise is in the zygote's component
    iteration: Component | None  # None: one value a process, and its noise is in the process's component
    mean: float

    @property
    def clipped(self) -> tuple[str, ...]:
        """The levels whose estimate was negative and counts as 0; to be told wherever the components are shown."""
        levels = {"zygote": self.zygote, "process": self.process, "iteration": self.iteration}
        return tuple(name for name, component in levels.items() if component is not None and component.clipped)

    def variance_of_mean(self, zygotes: int, processes: int = 1, iterations: int = 1) -> float:
        """Of a mean over so many zygotes, each with so many processes, each with so many iterations."""
        if min(zygotes, processes, iterations) < 1:
            raise ValueError("variance of a mean: at least 1 zygote, 1 process and 1 iteration are needed")
        process = self.process.variance if self.process else 0.0
        iteration = self.iteration.variance if self.iteration else 0.0
        return (self.zygote.variance + (process + iteration / iterations) / processes) / zygotes


@dataclass(frozen=True)
class _PerZygote:
    """Sums from which the mean squares of any choice of zygotes follow; each of shape (zygotes,)."""

    values: FloatArray
    processes: FloatArray
    total: FloatArray
    square_of_total: FloatArray  # over the number of values
    squares_of_counts: FloatArray  # of values, over the processes
    square_between: FloatArray  # between the processes
    square_within: FloatArray  # within the processes


def variance_components(
    values: ArrayLike,
    zygotes: ArrayLike,
    processes: ArrayLike | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> VarianceComponents:
    """Components of `values`, shape (N,), balanced or not; best of logarithms, so that they are relative.

    zygotes, processes: labels, shape (N,), of any type; a process is known by both labels. Without `processes` each
    value is a process of its own, such as its location: that is the usual call. At least two zygotes. A level that is
    never repeated inside the one above it cannot be told apart from it, and is None.
    """
    numbers = finite_vector(values, "values", at_least=2)
    zygote_of = _labels(zygotes, len(numbers), "zygote labels")
    process_of = _labels(range(len(numbers)) if processes is None else processes, len(numbers), "process labels")
    if zygote_of.max() == 0:
        raise ValueError("variance components: one zygote alone; at least 2 are needed, 5 for standard errors")
    mean = float(numbers.mean())
    sums = _sums_per_zygote(numbers - mean, zygote_of, process_of)
    count = len(sums.values)
    estimates, degrees = _solve(sums, np.ones((1, count)))
    errors: list[float | None] = [None] * 3
    if count >= FEWEST_ZYGOTES_FOR_ERROR:
        draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
        draws = draws[(draws > 0).sum(axis=1) > 1].astype(np.float64)
        resampled, _ = _solve(sums, draws)
        errors = [_spread(resampled[:, level]) for level in range(3)]
    zygote, process, iteration = (
        None if np.isnan(estimate) else Component(float(estimate), error, int(free))
        for estimate, error, free in zip(estimates[0], errors, degrees, strict=True)
    )
    assert zygote is not None
    return VarianceComponents(zygote, process, iteration, mean)


def _labels(labels: ArrayLike, length: int, what: str) -> np.ndarray:
    """Labels as whole numbers from 0 on."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{what}: shape {array.shape}, but one label each is needed, shape (n,)")
    same_length(array, np.empty(length), f"{what} and values")
    return np.unique(array, return_inverse=True)[1]


def _sums_per_zygote(numbers: FloatArray, zygote_of: np.ndarray, process_of: np.ndarray) -> _PerZygote:
    process_of = np.unique(zygote_of * (int(process_of.max()) + 1) + process_of, return_inverse=True)[1]
    values_in_process = np.bincount(process_of).astype(np.float64)
    process_mean = np.bincount(process_of, numbers) / values_in_process
    zygote_of_process = np.zeros(len(values_in_process), dtype=np.int64)
    zygote_of_process[process_of] = zygote_of

    values = np.bincount(zygote_of).astype(np.float64)
    total = np.bincount(zygote_of, numbers)
    between = values_in_process * (process_mean - (total / values)[zygote_of_process]) ** 2
    return _PerZygote(
        values=values,
        processes=np.bincount(zygote_of_process).astype(np.float64),
        total=total,
        square_of_total=total**2 / values,
        squares_of_counts=np.bincount(zygote_of_process, values_in_process**2),
        square_between=np.bincount(zygote_of_process, between),
        square_within=np.bincount(zygote_of, (numbers - process_mean[process_of]) ** 2),
    )


def _solve(sums: _PerZygote, draws: FloatArray) -> tuple[FloatArray, tuple[int, int, int]]:
    """Estimates (zygote, process, iteration) for each row of draws, shape (r, zygotes): how often each zygote is in.

    E[MS within] = s_i; E[MS between processes] = s_i + k1 s_p; E[MS between zygotes] = s_i + k2 s_p + k3 s_z. NaN
    where a level has no degrees of freedom. Degrees are those of the data themselves.
    """
    n = draws @ sums.values
    zygotes = draws.sum(axis=1)
    processes = draws @ sums.processes
    counts_over_values = draws @ (sums.squares_of_counts / sums.values)
    free_zygote, free_process, free_iteration = zygotes - 1, processes - zygotes, n - processes
    with np.errstate(divide="ignore", invalid="ignore"):
        within = draws @ sums.square_within / free_iteration
        between = draws @ sums.square_between / free_process
        among = (draws @ sums.square_of_total - (draws @ sums.total) ** 2 / n) / free_zygote
        k1 = (n - counts_over_values) / free_process
        k2 = (counts_over_values - draws @ sums.squares_of_counts / n) / free_zygote
        k3 = (n - draws @ sums.values**2 / n) / free_zygote
        iteration = np.where(free_iteration > 0, within, np.nan)
        iteration_or_none = np.where(free_iteration > 0, within, 0.0)
        process = np.where(free_process > 0, (between - iteration_or_none) / k1, np.nan)
        # Of one process a zygote, the noise stays in the zygote's component, less what the iterations are known to add.
        process_or_none = np.where(free_process > 0, process, 0.0)
        zygote = (among - iteration_or_none - k2 * process_or_none) / k3
    free = (int(len(sums.values) - 1), int(sums.processes.sum() - len(sums.values)))
    return np.stack([zygote, process, iteration], axis=1), (*free, int(sums.values.sum() - sums.processes.sum()))


def _spread(resampled: FloatArray) -> float | None:
    known = resampled[np.isfinite(resampled)]
    return float(known.std(ddof=1)) if len(known) > 1 else None
