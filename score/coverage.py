"""How much of a reference a score stands on: what is missing is named, never silently left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from score.errors import ScoreError


@dataclass(frozen=True)
class Coverage:
    scored: tuple[str, ...]  # tests in both
    missing: tuple[str, ...]  # tests of the reference without a result
    extra: tuple[str, ...]  # results the reference knows nothing of: they do not count

    @property
    def reference(self) -> int:
        """Number of tests in the reference."""
        return len(self.scored) + len(self.missing)

    @property
    def fraction(self) -> float:
        return len(self.scored) / self.reference


def cover(reference: Mapping[str, float], results: Mapping[str, float], *, strict: bool = False) -> Coverage:
    """The intersection of both. Raises ScoreError if it is empty or, with `strict`, if any test is missing."""
    coverage = Coverage(
        scored=tuple(sorted(reference.keys() & results.keys())),
        missing=tuple(sorted(reference.keys() - results.keys())),
        extra=tuple(sorted(results.keys() - reference.keys())),
    )
    if not coverage.scored:
        raise ScoreError(
            f"no test of the {len(results)} results is among the {len(reference)} of the reference "
            f"(results: {_example(results)}, reference: {_example(reference)}); "
            "compare with a reference of the same tests (--make-reference writes one)"
        )
    if strict and coverage.missing:
        raise ScoreError(
            f"{len(coverage.missing)} of {coverage.reference} tests of the reference have no result: "
            f"{', '.join(coverage.missing)}; measure them, or score without --strict"
        )
    return coverage


def _example(tests: Mapping[str, float]) -> str:
    return f"{min(tests)} ..." if tests else "none"
