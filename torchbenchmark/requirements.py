"""What a model needs of the build's interpreter, compared with what that holds: distributions by name, with a version
where not every one would do (`timm>=1.0`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion


@dataclass(frozen=True)
class Unmet:
    """A requirement that an interpreter does not meet."""

    requirement: Requirement
    found: str | None  # the version that is there and does not do; None if there is none

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        return f"{self.requirement} ({'not' if self.found is None else self.found + ' is'} installed)"


def parse_requirement(text: str) -> Requirement:
    """A name with or without versions. Raises ValueError for what cannot be compared with a list of distributions."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is not the name of a distribution, with or without versions (timm>=1.0)") from error
    if requirement.extras or requirement.url or requirement.marker:
        raise ValueError(f"{text!r} says more than a name and versions (timm>=1.0), which is all that can be checked")
    return requirement


def required_names(requires: Iterable[str]) -> set[str]:
    return {canonicalize_name(parse_requirement(text).name) for text in requires}


def unmet(requires: Iterable[str], distributions: Mapping[str, str]) -> tuple[Unmet, ...]:
    """Those of `requires` that are missing from `distributions` (normalised name -> version), or there in a version
    that does not do. A nightly meets what the releases before it meet: torch 2.14.0.dev1 is >=2.13, and not >=2.14."""
    requirements = [parse_requirement(text) for text in requires]
    found = [(requirement, distributions.get(canonicalize_name(requirement.name))) for requirement in requirements]
    return tuple(Unmet(requirement, version) for requirement, version in found if not _meets(requirement, version))


def _meets(requirement: Requirement, version: str | None) -> bool:
    if version is None or not requirement.specifier:
        return version is not None
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except InvalidVersion:  # that of some builds from source: nothing can be said of it
        return False
