"""How often the methods of torchbenchmark.statistics err on noise that is known: the tables of docs/statistics.md.

`python tests/bench/statistics_error_rates.py` prints every table (minutes); `--only e_process` one; `--repeats .1` is a
tenth of the repetitions. Seeds are fixed: the same numpy prints the same figures.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from torchbenchmark.statistics.covariate import adjusted_log_ratios, covariate_interval
from torchbenchmark.statistics.location import collapse_to_location
from torchbenchmark.statistics.moderated_variance import VariancePrior
from torchbenchmark.statistics.pairs_needed import pairs_needed
from torchbenchmark.statistics.sign_e_process import SIGN_BETS, SOFT_BETS, decide, e_path
from torchbenchmark.statistics.sign_flip import sign_flip_test
from torchbenchmark.statistics.signed_rank import signed_rank_interval, signed_rank_test
from torchbenchmark.statistics.simultaneous import max_t_intervals, moderated_intervals
from torchbenchmark.statistics.variance_components import variance_components

Row = tuple[str, ...]
Generator = np.random.Generator
SPREAD = 0.01  # sd of a pair's log ratio


def rate(hits: int, repeats: int) -> str:
    share = hits / repeats
    return f"{share:.4f} ± {np.sqrt(max(share * (1 - share), 1 / repeats) / repeats):.4f}"


def normal(rng: Generator, size) -> np.ndarray:
    return rng.standard_normal(size)


def student3(rng: Generator, size) -> np.ndarray:
    return rng.standard_t(3, size) / np.sqrt(3)


def two_modes(rng: Generator, size) -> np.ndarray:
    """Each side of a pair is in a slow mode, three sd slower, once in four times."""
    modes = 3.0 * ((rng.random(size) < 0.25).astype(float) - (rng.random(size) < 0.25))
    return rng.standard_normal(size) + modes


def skewed(rng: Generator, size) -> np.ndarray:
    """What pairs are not when their order is a coin: exponential, less its mean of 1."""
    return rng.exponential(size=size) - 1


SHAPES = {"normal": normal, "Student t, 3 degrees": student3, "two modes": two_modes}


def iterations_are_no_replicates(scale: float) -> Iterator[Row]:
    yield "test of two identical builds at .01", "false"
    repeats, processes, iterations = int(2000 * scale), 7, 30
    for offset in (0.0, 0.005, 0.015):
        rng = np.random.default_rng(1)
        pooled = ranked = paired = 0
        for _ in range(repeats):
            stalls = (rng.random((2, processes, iterations)) < 0.05) * rng.exponential(0.3, (2, processes, iterations))
            noise = rng.normal(0, offset, (2, processes, 1)) + rng.normal(0, 0.01, stalls.shape) + stalls
            pooled += stats.ttest_ind(noise[0].ravel(), noise[1].ravel(), equal_var=False).pvalue < 0.01
            ranked += stats.mannwhitneyu(noise[0].ravel(), noise[1].ravel()).pvalue < 0.01
            locations = [[collapse_to_location(process) for process in side] for side in noise]
            paired += sign_flip_test(np.subtract(*locations), alternative="greater").p_value < 0.01
        name = f"{processes} processes a side x {iterations} iterations, process sd {100 * offset:g} %: "
        yield name + "Welch over iterations", rate(pooled, repeats)
        yield name + "Mann-Whitney over iterations", rate(ranked, repeats)
        yield name + "sign flips over pairs of locations", rate(paired, repeats)


def pairs(scale: float) -> Iterator[Row]:
    yield "pairs, n = 12", "signed-rank interval .95 covers", "signed rank p <= .01", "sign flips p <= .01"
    repeats = int(4000 * scale)
    for name, shape in {**SHAPES, "skewed (centre: the mean)": skewed}.items():
        rng = np.random.default_rng(2)
        samples = SPREAD * shape(rng, (repeats, 12))
        covers = sum(signed_rank_interval(sample).contains(0.0) for sample in samples)
        ranks = sum(signed_rank_test(sample).p_value <= 0.01 for sample in samples)
        flips = sum(sign_flip_test(sample).p_value <= 0.01 for sample in samples)
        yield name, rate(covers, repeats), rate(ranks, repeats), rate(flips, repeats)


def e_process(scale: float) -> Iterator[Row]:
    yield "H0 true at its edge (median = margin), 200 pairs, looked at after each", "E ever >= 100", "allowed"
    margin, repeats, length = 0.005, int(20_000 * scale), 200

    def serial(rng: Generator, size) -> np.ndarray:
        """The spread of a pair depends on the pair before: calm and wild phases."""
        noise, spread = rng.standard_normal(size), np.ones(size)
        for pair in range(1, size[1]):
            spread[:, pair] = 0.3 + 0.9 * np.abs(noise[:, pair - 1] * spread[:, pair - 1])
        return noise * spread

    def half_at_margin(rng: Generator, size) -> np.ndarray:
        """Half of the pairs exactly at the margin, half above it: where a tie that is no loss would be a gift."""
        return np.where(rng.random(size) < 0.5, 0.0, 1.0)

    rng = np.random.default_rng(3)
    for name, shape in {
        **SHAPES,
        "calm and wild phases": serial,
        "half of the pairs at the margin": half_at_margin,
    }.items():
        samples = margin + SPREAD * shape(rng, (repeats, length))
        hits = sum(e_path(sample, margin=margin).max() >= 100 for sample in samples)
        yield f"sign bets, {name}", rate(hits, repeats), "0.01"
    for name, shape in {"normal": normal, "two modes": two_modes, "skewed (median at the margin)": None}.items():
        noise = rng.exponential(size=(repeats, length)) - np.log(2) if shape is None else shape(rng, (repeats, length))
        samples = margin + SPREAD * noise
        hits = sum(
            e_path(sample, margin=margin, bets=SIGN_BETS + SOFT_BETS, pair_sd=SPREAD).max() >= 100 for sample in samples
        )
        yield f"sign and soft bets, {name}", rate(hits, repeats), "0.01" if shape else "none: not symmetric"


def e_process_power(scale: float) -> Iterator[Row]:
    yield "one of 20 candidates, at most 24 pairs, effect", "sign bets confirm", "pairs", "sign and soft bets", "pairs"
    margin, repeats = 0.005, int(2000 * scale)
    for beyond in (-0.5, 0.0, 0.75, 1.0, 1.25, 1.5, 2.0):
        rng = np.random.default_rng(4)
        samples = margin + SPREAD * (beyond + rng.standard_normal((repeats, 24)))
        row = [f"margin {beyond:+.2f} sd of a pair"]
        for bets in (SIGN_BETS, SIGN_BETS + SOFT_BETS):
            decisions = [decide(sample, margin=margin, candidates=20, bets=bets, pair_sd=SPREAD) for sample in samples]
            row.append(rate(sum(decision.verdict == "confirmed" for decision in decisions), repeats))
            row.append(f"{np.mean([decision.pairs for decision in decisions]):.1f}")
        yield tuple(row)


def false_family(intervals_of: Callable[[np.ndarray], tuple], samples: np.ndarray) -> int:
    return sum(not all(interval.contains(0.0) for interval in intervals_of(sample)) for sample in samples)


def correlated(
    rng: Generator, repeats: int, pairs: int, series: int, correlation: float, d0: float, shape=normal
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of series, and the true variances about s0^2 = SPREAD^2 that the prior describes (d0 degrees)."""
    common = shape(rng, (repeats, pairs, 1))
    own = shape(rng, (repeats, pairs, series))
    variances = SPREAD**2 * d0 / rng.chisquare(d0, (repeats, 1, series))
    return (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own) * np.sqrt(variances), variances


def simultaneous(scale: float) -> Iterator[Row]:
    yield "no difference in any series; intervals of 99 % together", "any interval misses 0", "median half width, %"
    d0 = 20.0
    cases = []
    for series in (40, 3):
        for correlation in (0.0, 0.9):
            cases.append((6, series, correlation, normal, 1.0))
    cases += [(6, 40, 0.5, student3, 1.0), (6, 40, 0.5, two_modes, 1.0)]
    cases += [(6, series, 0.5, normal, wrong) for series in (40, 10, 3, 1) for wrong in (2.0, 0.5)]
    for n, series, correlation, shape, wrong in cases:
        rng = np.random.default_rng(5)
        repeats = int(2000 * scale)
        samples, _ = correlated(rng, repeats, n, series, correlation, d0, shape)
        samples /= np.sqrt(shape(np.random.default_rng(0), 10**6).var())
        prior = VariancePrior(np.full(series, (SPREAD / wrong) ** 2), np.full(series, d0))
        name = f"n = {n}, m = {series}, correlation {correlation:g}, {shape.__name__}"
        if wrong != 1:
            name += f", tonight {wrong:g} times the prior's sd"
        methods = {"prior weighed": prior, "prior believed": prior}
        if wrong == 1:
            methods["no prior"] = None
        for method, known in methods.items():

            def intervals(sample, known=known, method=method):
                return moderated_intervals(sample, known, 0.99, believe_prior=method == "prior believed")

            half = np.median([interval.half_width for sample in samples[:50] for interval in intervals(sample)])
            yield f"{name}: {method}", rate(false_family(intervals, samples), repeats), f"{100 * half:.2f}"


def unknown_spread(scale: float) -> Iterator[Row]:
    yield "sds of the series exp(N(0, .5)), one for all in the prior; 99 %", "any interval misses 0", "half width, %"
    repeats, known = int(4000 * scale), 1000.0  # degrees: a table that is sure of itself
    for n in (3, 6):
        for series in (3, 12, 40):
            rng = np.random.default_rng(10)
            sds = SPREAD * np.exp(rng.normal(0, 0.5, (repeats, 1, series)))
            samples = sds * rng.standard_normal((repeats, n, series))
            prior = VariancePrior(np.full(series, SPREAD**2), np.full(series, known))
            for method, call in {
                "prior weighed": lambda sample, prior=prior: moderated_intervals(sample, prior),
                "prior believed": lambda sample, prior=prior: moderated_intervals(sample, prior, believe_prior=True),
                "no prior": moderated_intervals,
            }.items():
                half = np.median([interval.half_width for sample in samples[:50] for interval in call(sample)])
                yield (
                    f"n = {n}, m = {series}: {method}",
                    rate(false_family(call, samples), repeats),
                    f"{100 * half:.2f}",
                )


def max_t(scale: float) -> Iterator[Row]:
    yield "no difference in any of 40 series, pairs n, together", "any interval misses 0", "median half width, %"
    d0 = 20.0
    for level in (0.95, 0.99):
        for n, correlation, shape in (
            *((12, correlation, normal) for correlation in (0.0, 0.9)),
            (12, 0.5, student3),
            (12, 0.5, two_modes),
            (12, 0.5, skewed),
            (20, 0.9, normal),
        ):
            rng = np.random.default_rng(6)
            repeats = int(600 * scale)
            samples, _ = correlated(rng, repeats, n, 40, correlation, d0, shape)
            samples /= np.sqrt(shape(np.random.default_rng(0), 10**6).var())
            prior = VariancePrior(np.full(40, SPREAD**2), np.full(40, d0))
            resamples = int(50 / (1 - level))
            for method, call in {
                "max-t": lambda sample, level=level, resamples=resamples: max_t_intervals(
                    sample, level, resamples=resamples
                ),
                "t, prior": lambda sample, level=level, prior=prior: moderated_intervals(sample, prior, level),
                "t": lambda sample, level=level: moderated_intervals(sample, None, level),
            }.items():
                half = np.median([interval.half_width for sample in samples[:20] for interval in call(sample)])
                name = f"{level:g}, n = {n}, correlation {correlation:g}, {shape.__name__}: {method}"
                yield name, rate(false_family(call, samples), repeats), f"{100 * half:.2f}"


def covariate(scale: float) -> Iterator[Row]:
    yield "test sd 1 %, probe sd 10 %, slope .8, n = 12", "interval .95 covers", "median half width, %"
    repeats = int(4000 * scale)
    for noise in (0.0, 0.03):
        rng = np.random.default_rng(7)
        host = rng.normal(0, 0.1, (repeats, 12))
        probes = host + noise * rng.standard_normal(host.shape)
        ratios = 0.8 * host + SPREAD * rng.standard_normal(host.shape)
        for name, call in {
            "not adjusted, signed rank": lambda d, _: signed_rank_interval(d),
            "slope 1.2, signed rank": lambda d, p: signed_rank_interval(adjusted_log_ratios(d, p)),
            "slope .77, signed rank": lambda d, p: signed_rank_interval(adjusted_log_ratios(d, p, 0.77)),
            "covariance": lambda d, p: covariate_interval(d, p).interval,
        }.items():
            intervals = [call(d, p) for d, p in zip(ratios, probes, strict=True)]
            half = np.median([interval.half_width for interval in intervals])
            covers = sum(interval.contains(0.0) for interval in intervals)
            yield f"probe's own error {100 * noise:g} %: {name}", rate(covers, repeats), f"{100 * half:.2f}"


def components(scale: float) -> Iterator[Row]:
    yield "12 zygotes x 1 - 5 processes x 3 iterations, planted sd 1.0 / 0.6 / 0.5 %", "mean estimate, sd in %", "error"
    repeats = int(2000 * scale)
    rng = np.random.default_rng(8)
    processes = np.arange(12) % 5 + 1
    process = np.repeat(np.arange(processes.sum()), 3)
    zygote = np.repeat(np.repeat(np.arange(12), processes), 3)
    seen = []
    for _ in range(repeats):
        values = 0.01 * rng.standard_normal(12)[zygote] + 0.006 * rng.standard_normal(processes.sum())[process]
        found = variance_components(values + 0.005 * rng.standard_normal(len(values)), zygote, process, resamples=200)
        levels = (found.zygote, found.process, found.iteration)
        seen.append([(level.estimate, level.standard_error) for level in levels])
    table = np.array(seen)
    for index, name in enumerate(("zygote", "process", "iteration")):
        mean, spread = table[:, index, 0].mean(), table[:, index, 0].std()
        told = f"of the variance: bootstrap says {table[:, index, 1].mean():.1e}, true {spread:.1e}"
        yield name, f"{100 * np.sqrt(mean):.3f}", told


def needed(scale: float) -> Iterator[Row]:
    yield "6 pairs, then as many more as are said to be needed for +-.4 sd at .95", "reached", "mean pairs in the end"
    repeats = int(4000 * scale)
    for assurance in (None, 0.8):
        rng = np.random.default_rng(9)
        reached, ends = 0, []
        for _ in range(repeats):
            first = rng.standard_normal(6)
            more = pairs_needed(first.var(ddof=1), 6, 0.4, assurance=assurance)
            sample = np.append(first, rng.standard_normal(more or 0))
            reached += pairs_needed(sample.var(ddof=1), len(sample), 0.4) == 0
            ends.append(len(sample))
        name = "as the variance is" if assurance is None else f"assurance {assurance}"
        yield name, rate(reached, repeats), f"{np.mean(ends):.1f}"


TABLES = (
    *(iterations_are_no_replicates, pairs, e_process, e_process_power, simultaneous, unknown_spread, max_t, covariate),
    *(components, needed),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[table.__name__ for table in TABLES], help="one table instead of all")
    parser.add_argument("--repeats", type=float, default=1.0, help="share of the repetitions, 1 by default")
    arguments = parser.parse_args()
    for table in TABLES:
        if arguments.only in (None, table.__name__):
            rows = table(arguments.repeats)
            head = next(rows)
            print(f"\n{table.__name__}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
            for row in rows:
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
