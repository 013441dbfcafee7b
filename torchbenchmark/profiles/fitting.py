"""Which of several commits fit a difference of profiles, by the files that each touched. Pure.

A commit fits a cause, an operator that differs or one of its kernels, if a file that it touched belongs to it by the
rule of `touched`. Its share is what the causes that it fits change, of what all causes of that account change, without
signs, in the account where it is the largest. Commits are ordered by their shares, the largest first; those that are
alike keep their order. It is a hint beside the evidence: a commit that fits nothing may still be the one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torchbenchmark.profiles.attribution import Account, Attribution, Row
from torchbenchmark.profiles.touched import kernels_touched, operators_touched


@dataclass(frozen=True)
class TouchedFiles:
    """The files that a commit touched, and what is known of them."""

    paths: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # path -> text, of those that were read
    operator_list: str = ""  # the subject's own, where it has one

    def of(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The paths by operator or kernel; what has none is left out."""
        by_name = operators_touched(self.paths, names, self.operator_list, self.sources)
        for name, paths in kernels_touched(names, self.sources).items():
            by_name[name] = tuple(dict.fromkeys((*by_name.get(name, ()), *paths)))
        return by_name


@dataclass(frozen=True)
class Fit:
    """How well a commit fits."""

    commit: str
    share: float  # from 0, nothing, to 1
    causes: Mapping[str, tuple[str, ...]]  # operator or kernel -> the touched paths that belong to it


def ordered_by_fit(attribution: Attribution, touched: Mapping[str, TouchedFiles]) -> list[Fit]:
    """All commits, those first that fit best."""
    accounts = [account for test in attribution.tests for account in test.accounts if account.found()]
    fits = [_fit(commit, accounts, files) for commit, files in touched.items()]
    return sorted(fits, key=lambda fit: -fit.share)


def _fit(commit: str, accounts: Sequence[Account], files: TouchedFiles) -> Fit:
    rows = [row for account in accounts for row in account.found()]
    found = files.of([name for row in rows for name in (row.name, *(kernel.name for kernel in row.kernels))])
    shares = [_share(account, found) for account in accounts]
    causes = {row.name: paths for row in rows if (paths := _paths(row, found))}
    return Fit(commit, max(shares, default=0.0), causes)


def _share(account: Account, found: Mapping[str, tuple[str, ...]]) -> float:
    whole = sum(abs(row.change) for row in account.found())
    return sum(abs(row.change) for row in account.found() if _paths(row, found)) / whole if whole > 0 else 0.0


def _paths(row: Row, found: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Of the operator, and of those of its kernels that differ."""
    kernels = [path for kernel in row.kernels if kernel.verdicts for path in found.get(kernel.name, ())]
    return tuple(dict.fromkeys((*found.get(row.name, ()), *kernels)))
