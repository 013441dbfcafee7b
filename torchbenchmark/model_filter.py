"""Which models are meant: by suite, taxonomy, device, kind of test, duration, and the libraries that they need."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from packaging.utils import canonicalize_name

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.registry import Device, ModelEntry, Registry, Test, Tier, load_suite
from torchbenchmark.requirements import required_names

# The values that there are, whether or not a model has them.
_KNOWN = {"device": get_args(Device), "test": get_args(Test), "tier": get_args(Tier)}

# An option, what was asked for, and what a model has of it.
Question = tuple[str, Collection[str], Callable[[ModelEntry], Collection[str]]]


@dataclass(frozen=True)
class ModelFilter:
    """Of one field any value may fit, but of `without` none may; every field must. An empty one asks for nothing."""

    suites: tuple[str, ...] = ()  # names, or paths of YAML files
    categories: tuple[str, ...] = ()  # in upper or lower case, as domains
    domains: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()  # by duration
    requires: tuple[str, ...] = ()  # distributions
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def chosen(self, registry: Registry) -> list[ModelEntry]:
        """The models that fit. Raises BenchmarkError for a value that there is not, and if no model fits."""
        found = list(registry.models.values())
        for option, wanted, has in self._questions():
            _require_known(option, wanted, registry.models.values(), has)
            if wanted:
                avoid = option == "without"
                found = [entry for entry in found if avoid == set(wanted).isdisjoint(has(entry))]
        if self.suites:
            listed = {model for suite in self.suites for model in load_suite(suite).models}
            found = [entry for entry in found if entry.name in listed]
        if not found:
            raise BenchmarkError("no model is all that was asked for; ask for less")
        return found

    def _questions(self) -> Iterator[Question]:
        yield "category", _lower(self.categories), lambda entry: [entry.metadata.category.lower()]
        yield "domain", _lower(self.domains), lambda entry: [entry.metadata.domain.lower()]
        yield "device", self.devices, lambda entry: entry.metadata.devices
        yield "test", self.tests, lambda entry: entry.metadata.tests
        yield "tier", self.tiers, lambda entry: [entry.metadata.tier]
        yield "requires", _canonical(self.requires), lambda entry: required_names(entry.metadata.requires)
        yield "without", _canonical(self.without), lambda entry: required_names(entry.metadata.requires)


def _require_known(
    option: str,
    wanted: Collection[str],
    entries: Iterable[ModelEntry],
    has: Callable[[ModelEntry], Collection[str]],
) -> None:
    known = _KNOWN.get(option) or sorted({value for entry in entries for value in has(entry)})
    for value in wanted:
        if value not in known:
            hint = _of_the_other(option, value, entries) or f"known: {', '.join(known)}"
            raise BenchmarkError(f"--{option} {value!r}: no model has that; {hint}")


def _of_the_other(option: str, value: str, entries: Iterable[ModelEntry]) -> str:
    """What to write for a category that was taken for a domain, or the other way round; empty for anything else."""
    if option == "domain" and value in {entry.metadata.category.lower() for entry in entries}:
        return f"it is a category: --category {value}"
    if option == "category" and value in {entry.metadata.domain.lower() for entry in entries}:
        return f"it is a domain: --domain {value}"
    return ""


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _canonical(names: Iterable[str]) -> list[str]:
    return [canonicalize_name(name) for name in names]
