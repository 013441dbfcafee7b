"""The versions of a package that an index has, in their order, and which of them can be installed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from torchbenchmark.builds.build_errors import BuildUnavailable
from torchbenchmark.builds.nightly_index import fits, why_none_fits
from torchbenchmark.builds.pip import configured_index
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.simple_index import IndexedVersion, IndexedWheel, read_versions
from torchbenchmark.builds.target import Target
from torchbenchmark.errors import BenchmarkError


@dataclass(frozen=True)
class Release:
    """A version, as its index has it now."""

    version: Version
    uploaded: str = ""  # the day, where the index tells
    yanked: bool = False
    why_not: str = ""  # why it cannot be installed; empty if it can


def releases_of(package: str, settings: BuildSettings, target: Target, python: Path) -> list[Release]:
    """All versions, the oldest first, of the index that the provider `release` asks and of the further one, if there is
    one. Raises BenchmarkError if neither has the package."""
    index = settings.index or configured_index(python)
    found: dict[Version, IndexedVersion] = {}
    missing: BenchmarkError | None = None
    for one in filter(None, (index, settings.extra_index)):
        if one.startswith("file:"):
            continue  # pip reads such a folder; it has no page
        try:
            for version, there in read_versions(one, package).items():
                before = found.setdefault(version, there)
                if before is not there:
                    before.wheels += there.wheels
                    before.yanked = before.yanked and there.yanked
        except BuildUnavailable:
            raise
        except BenchmarkError as error:
            missing = missing or error
    if not found and missing is not None:
        raise missing
    return [
        Release(version, there.uploaded, there.yanked, _why_not(version, there, target))
        for version, there in sorted(found.items())
    ]


def _why_not(version: Version, there: IndexedVersion, target: Target) -> str:
    if not there.wheels:
        return f"{version} has no wheel: the index has its source alone, which is not built here"
    if any(fits(wheel, target) for wheel in there.wheels):
        return ""
    return f"{version} {why_none_fits(_even_yanked(there), target)}"


def _even_yanked(there: IndexedVersion) -> Sequence[IndexedWheel]:
    return [wheel for wheel in there.wheels if not wheel.yanked] or there.wheels
