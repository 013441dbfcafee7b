"""The provider `nightly`: the dated wheels of an index of nightlies, chosen as the nightly itself chooses them."""

from dataclasses import dataclass, replace
from datetime import date
from typing import ClassVar, Self

from torchbenchmark.builds.address import address_of
from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound, BuildUnavailable
from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.builds.pip import download
from torchbenchmark.builds.provider import Fetched, Request, WheelSource
from torchbenchmark.builds.workshop import Workshop, sha256_of
from torchbenchmark.errors import BenchmarkError

_check_index = address_of("https", "http")


@dataclass(frozen=True)
class NightlyAddress:
    """`nightly:https://host/nightly/cu130@2026-11-20`, or `@latest`."""

    provider: ClassVar[str] = "nightly"
    index: str
    night: str

    @classmethod
    def parse(cls, what: str) -> Self:
        index, _, night = what.rpartition("@")
        if night != "latest":
            try:
                if date.fromisoformat(night).isoformat() != night:
                    raise ValueError
            except ValueError:
                raise ValueError("must end with @latest or @ and a date, such as @2026-11-20") from None
        return cls(_check_index(index), night)

    def __str__(self) -> str:
        return f"{self.provider}:{self.index}@{self.night}"

    def build(self, request: Request) -> NightlyBuild:
        """What is to be looked for in the index, as a nightly's configuration would say it."""
        settings = request.settings
        others = [name for name in settings.nightly.packages if name != request.subject]
        return NightlyBuild(
            index=self.index,
            packages=(request.subject, *others),
            date=self.night,
            extra_index=settings.extra_index,
            max_age_days=settings.nightly.max_age_days,
        )

    def exact(self, request: Request) -> Self:
        if self.night != "latest":
            return self
        return replace(self, night=self._pin(request).date.isoformat())

    def _pin(self, request: Request) -> PinnedBuild:
        try:
            return resolve(self.build(request), request.target)
        except BuildUnavailable:
            raise
        except BenchmarkError as error:
            raise BuildNotFound(str(error)) from error

    def source(self, request: Request) -> WheelSource:
        exact = self.exact(request)
        build = exact.build(request)

        def make(shop: Workshop) -> Fetched:
            pin = exact._pin(request)
            requirements = [wheel.requirement for wheel in pin.wheels]
            files = {file.name: file for file in download(shop, request.base, requirements, self.index, None)}
            for wheel in pin.wheels:
                got = files.get(wheel.file)
                if got is None or (wheel.sha256 is not None and sha256_of(got) != wheel.sha256):
                    raise BuildFailed(
                        f"pip took {', '.join(sorted(files))}, not the wheel that {self.index} lists ({wheel.file}, "
                        f"sha256 {wheel.sha256})"
                    )
            return Fetched(tuple(files.values()))

        facts = {"provider": self.provider, "index": self.index, "date": exact.night}
        return WheelSource(str(exact), {**facts, "packages": list(build.packages), **request.platform}, make)
