"""Wheels of nights that the store has kept: a date whose wheels the index has removed can be built from there. They go
into the cache of builds, under its limit, as if they had been got by their address."""

from datetime import UTC, datetime

from baselines.kept_wheels import KeptBuild, fetch, kept
from baselines.store import Store
from baselines.stored_builds import stored_build
from torchbenchmark.builds.cache_records import CachedWheel, SourceRecord
from torchbenchmark.builds.download import file_name
from torchbenchmark.builds.nightly import NightlyAddress
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.builds.provider import BuildAddress, Request
from torchbenchmark.builds.url import UrlAddress


class KeptNights:
    """The kept builds of a store, by their date; asked once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, list[tuple[KeptBuild, PinnedBuild]]] | None = None

    def find(self, address: BuildAddress, request: Request) -> tuple[KeptBuild, PinnedBuild] | None:
        """The kept build that an address means: of its date, index and packages, or with the files that it names."""
        night = address.night if isinstance(address, NightlyAddress) else getattr(address, "value", "")
        return next((one for one in self._by_date().get(night, ()) if _is_meant(one[1], address, request)), None)

    def bring(self, address: BuildAddress, request: Request) -> bool:
        """Put the wheels of the kept build into the cache, if there is one. Raises BaselineError for damaged ones."""
        found = self.find(address, request)
        if found is None or not isinstance(address, NightlyAddress | UrlAddress):
            return False
        build, pin = found
        names = {wheel.file: wheel for wheel in pin.wheels}
        ours = build.model_copy(update={"wheels": tuple(one for one in build.wheels if one.file in names)})
        key = address.source(request).key
        with request.cache.workshop(key) as shop:
            files = fetch(self.store, ours, shop.folder)
            sizes = {path.name: path.stat().st_size for path in files}
            wheels = tuple(
                CachedWheel(
                    name=names[one.file].name,
                    version=names[one.file].version,
                    file=one.file,
                    sha256=one.sha256,
                    bytes=sizes[one.file],
                )
                for one in ours.wheels
            )
            record = SourceRecord(key=key, address=str(address), ended=datetime.now(UTC), wheels=wheels)
            request.cache.import_source(record, files)
        return True

    def _by_date(self) -> dict[str, list[tuple[KeptBuild, PinnedBuild]]]:
        if self._known is None:
            self._known = {}
            for name, build in kept(self.store).items():
                if (stored := stored_build(self.store, name)) is not None:
                    self._known.setdefault(stored.pin.date.isoformat(), []).append((build, stored.pin))
        return self._known


def _is_meant(pin: PinnedBuild, address: BuildAddress, request: Request) -> bool:
    if pin.python != request.target.python:
        return False
    if isinstance(address, NightlyAddress):
        wanted = address.build(request)
        return pin.index == wanted.index and tuple(wheel.name for wheel in pin.wheels) == wanted.packages
    if isinstance(address, UrlAddress):
        return {file_name(url) for url in address.urls(request)} == {wheel.file for wheel in pin.wheels}
    return False
