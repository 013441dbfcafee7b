"""The provider of last night's build: an index of nightly wheels and a date. A date that is not there is an error,
never silently another date."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from torchbenchmark.builds.address import ExtraIndex, Index
from torchbenchmark.builds.pinned import Distribution, ExactRequirement, PinnedBuild, PinnedWheel, PythonVersion
from torchbenchmark.builds.simple_index import IndexedWheel, read_page
from torchbenchmark.builds.target import Target, target_of_version
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.terminal import console

_MOST_NAMED = 6  # of the dates or platforms that an error names
_UNKNOWN_PATCH = 999  # of a Python of which only major and minor are known: `>=3.10.2` lets it pass


def _night(value: Any) -> Any:
    """`latest`, or a date as YAML or a string has it; pydantic alone would take 20261127 for seconds since 1970."""
    if value == "latest" or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        return date.fromisoformat(value)
    raise ValueError("expected latest or a date such as 2026-11-27")


Night = Annotated[Literal["latest"] | date, BeforeValidator(_night)]


class NightlyBuild(BaseModel):
    """`build:` in a nightly's configuration; docs/configuration.md describes every key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: Index
    packages: Annotated[tuple[Distribution, ...], Field(min_length=1)] = ("torch",)  # the subject first
    date: Night = "latest"
    extra_index: ExtraIndex | None = None  # where dependencies come from; None for what pip is configured to use
    max_age_days: Annotated[int, Field(ge=0)] = 3
    python: PythonVersion | None = None  # None for that of the interpreter which runs the bot
    requirements: tuple[ExactRequirement, ...] = ()  # installed beside: what the models need

    @field_validator("packages")
    @classmethod
    def _once(cls, packages: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(packages)) != len(packages):
            raise ValueError("a package stands twice")
        return packages

    def allows(self, pin: PinnedBuild) -> bool:
        """Whether the pin is one that this configuration could have been resolved to, on whatever day."""
        return (
            (pin.index, pin.extra_index, pin.requirements) == (self.index, self.extra_index, self.requirements)
            and tuple(wheel.name for wheel in pin.wheels) == self.packages
            and self.date in ("latest", pin.date)
            and self.python in (None, pin.python)
        )


@dataclass(frozen=True)
class _Offer:
    """The dated wheels of one package, and which of them fit."""

    package: str
    dated: dict[date, list[IndexedWheel]]
    fitting: dict[date, list[IndexedWheel]]


def resolve(
    build: NightlyBuild,
    target: Target | None = None,
    today: date | None = None,
    tell: Callable[[str], None] | None = None,
) -> PinnedBuild:
    """The exact wheels that the configuration means today (UTC), for the target (default: the configured Python here).

    `tell` is told what a reader should know. Raises BenchmarkError if the index cannot give what is asked for.
    """
    target = target or target_of_version(build.python)
    today = today or datetime.now(UTC).date()
    offers = [_offer(build.index, package, target) for package in build.packages]
    if build.date == "latest":
        chosen = _latest(build, offers, target, today, tell or _print_note)
    else:
        chosen = build.date
        for offer in offers:
            _require_date(build.index, offer, chosen, target)
    return PinnedBuild(
        index=build.index,
        extra_index=build.extra_index,
        date=chosen,
        python=target.python,
        wheels=tuple(_best(build.index, offer, chosen, target) for offer in offers),
        requirements=build.requirements,
    )


def _print_note(text: str) -> None:
    console.print(f"build: {text}", markup=False, style="yellow")


def _offer(index: str, package: str, target: Target) -> _Offer:
    dated: dict[date, list[IndexedWheel]] = {}
    fitting: dict[date, list[IndexedWheel]] = {}
    for wheel in read_page(index, package):
        if (night := _date_of(wheel.version)) is not None:
            dated.setdefault(night, []).append(wheel)
            if not wheel.yanked and fits(wheel, target):
                fitting.setdefault(night, []).append(wheel)
    if not dated:
        raise BenchmarkError(f"{index}: has no dated wheel (.devYYYYMMDD) of {package}; is it an index of nightlies?")
    return _Offer(package, dated, fitting)


def _date_of(version: Version) -> date | None:
    text = str(version.dev or "")
    if len(text) != len("20261127"):
        return None
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def fits(wheel: IndexedWheel, target: Target) -> bool:
    """Whether pip would install the wheel there."""
    if target.rank(wheel.tags) is None:
        return False
    version = target.version if target.version.count(".") > 1 else f"{target.version}.{_UNKNOWN_PATCH}"
    try:
        return SpecifierSet(wheel.requires_python).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True  # as pip takes it


def fitting_dates(build: NightlyBuild, target: Target) -> frozenset[date]:
    """The dates of which all packages have a wheel for the target. Raises BenchmarkError for what is no such index."""
    return frozenset(set.intersection(*(set(_offer(build.index, one, target).fitting) for one in build.packages)))


def _require_date(index: str, offer: _Offer, night: date, target: Target) -> None:
    """Raises BenchmarkError unless the package has a wheel of the date for the target."""
    if night in offer.fitting:
        return
    if night not in offer.dated:
        raise BenchmarkError(
            f"{index}: has no wheel of {offer.package} of {night}; {_nearest(night, offer.fitting or offer.dated)}"
        )
    raise BenchmarkError(f"{index}: {offer.package} of {night} {why_none_fits(offer.dated[night], target)}")


def _nearest(night: date, there: Iterable[date]) -> str:
    before = [other for other in there if other < night]
    after = [other for other in there if other > night]
    near = [*([str(max(before))] if before else []), *([str(min(after))] if after else [])]
    return f"the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(near)}"


def why_none_fits(wheels: Sequence[IndexedWheel], target: Target) -> str:
    """Why the target can install none of these wheels, as the end of a sentence."""
    kept = [wheel for wheel in wheels if not wheel.yanked]
    if not kept:
        return "was withdrawn (yanked)"
    there = sorted({"-".join(wheel.file.removesuffix(".whl").split("-")[-3:]) for wheel in kept})
    more = f" and {len(there) - _MOST_NAMED} more" if len(there) > _MOST_NAMED else ""
    asked = {wheel.requires_python for wheel in kept if target.rank(wheel.tags) is not None}
    requires = f", those for it require Python {one_line(', '.join(sorted(asked)))}" if asked else ""
    return f"has no wheel for {target}{requires}; there are {', '.join(there[:_MOST_NAMED])}{more}"


def _latest(
    build: NightlyBuild, offers: Sequence[_Offer], target: Target, today: date, tell: Callable[[str], None]
) -> date:
    """The newest date that all packages have a wheel of, if it is not too old."""
    tomorrow = today + timedelta(days=1)  # an index may be ahead by a time zone, and by no more
    nights = [{night for night in offer.fitting if night <= tomorrow} for offer in offers]
    for offer, having in zip(offers, nights, strict=True):
        if future := sorted(set(offer.fitting) - having):
            tell(f"{offer.package} has wheels of the future ({future[0]}), which are left out")
        if not having:
            newest = max(offer.dated)
            why = why_none_fits(offer.dated[newest], target)
            raise BenchmarkError(f"{build.index}: {offer.package}, of which the newest is of {newest}, {why}")
    each = ", ".join(f"{offer.package} {max(having)}" for offer, having in zip(offers, nights, strict=True))
    common = set.intersection(*nights)
    if not common:
        raise BenchmarkError(f"{build.index}: has no date of which all packages have a wheel; the newest are {each}")
    chosen = max(common)
    unfit = sorted(
        f"{offer.package} of {max(offer.dated)} {why_none_fits(offer.dated[max(offer.dated)], target)}"
        for offer in offers
        if chosen < max(offer.dated) <= tomorrow and max(offer.dated) not in offer.fitting
    )
    if (today - chosen).days > build.max_age_days:
        raise BenchmarkError(
            f"{build.index}: the newest build that is whole is of {chosen}, {(today - chosen).days} days old, and "
            f"`max_age_days` is {build.max_age_days} (newest that fit: {each}){''.join(f'; {one}' for one in unfit)}"
        )
    if any(max(having) != chosen for having in nights):
        tell(f"{chosen} is the newest date that all packages have a wheel of (newest that fit: {each})")
    for one in unfit:
        tell(one)
    return chosen


def _best(index: str, offer: _Offer, night: date, target: Target) -> PinnedWheel:
    """The newest version of the date, and of its wheels the one that pip would take."""
    newest = max(Version(wheel.version.public) for wheel in offer.fitting[night])
    wheels = [wheel for wheel in offer.fitting[night] if Version(wheel.version.public) == newest]
    labels = sorted({wheel.version.local or "no label" for wheel in wheels})
    if len(labels) > 1:
        raise BenchmarkError(
            f"{index}: {offer.package} {newest} is there as {', '.join(labels[:_MOST_NAMED])}, and which is the newer "
            "cannot be told; name the index of one of them, such as .../nightly/cu130"
        )
    best = max(wheels, key=lambda wheel: (-(target.rank(wheel.tags) or 0), wheel.build))
    return PinnedWheel(name=offer.package, version=str(best.version), file=best.file, sha256=best.sha256)
