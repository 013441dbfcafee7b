"""The provider `release`: versions from a package index, the subject and what must have a version beside it."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from packaging.version import InvalidVersion, Version

from torchbenchmark.builds.pip import download
from torchbenchmark.builds.provider import Fetched, Request, WheelSource
from torchbenchmark.builds.workshop import Workshop
from torchbenchmark.environment import normalised_name

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")


@dataclass(frozen=True)
class ReleaseAddress:
    """`release:torch==2.12.0` or `release:torch==2.12.0,torchvision==0.27.0`."""

    provider: ClassVar[str] = "release"
    packages: tuple[tuple[str, str], ...]  # name, version

    @classmethod
    def parse(cls, what: str) -> Self:
        packages = []
        for one in what.split(","):
            name, _, version = one.partition("==")
            try:
                if not _NAME.fullmatch(name):
                    raise InvalidVersion
                packages.append((normalised_name(name), str(Version(version))))
            except InvalidVersion as error:
                raise ValueError(f"{one[:60]!r} is not NAME==VERSION, such as torch==2.12.0") from error
        if len({name for name, _ in packages}) != len(packages):
            raise ValueError("a package stands twice")
        return cls(tuple(packages))

    def __str__(self) -> str:
        return f"{self.provider}:{','.join(f'{name}=={version}' for name, version in self.packages)}"

    def exact(self, request: Request) -> Self:
        return self

    def source(self, request: Request) -> WheelSource:
        settings = request.settings
        requirements = [f"{name}=={version}" for name, version in self.packages]

        def make(shop: Workshop) -> Fetched:
            return Fetched(download(shop, request.base, requirements, settings.index, settings.extra_index))

        facts = {"provider": self.provider, "index": settings.index, "extra_index": settings.extra_index}
        return WheelSource(str(self), {**facts, "packages": requirements, **request.platform}, make)
