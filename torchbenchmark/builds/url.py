"""The provider `url`: wheels at an address with a date or a commit in it: a bucket, the artifacts of a CI, a folder."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import ClassVar, Self

from torchbenchmark.builds.address import address_of
from torchbenchmark.builds.build_errors import BuildFailed
from torchbenchmark.builds.download import download_file, file_name
from torchbenchmark.builds.provider import SHA, Fetched, Request, WheelSource, source_key
from torchbenchmark.builds.workshop import Workshop, sha256_of
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_DATES = ("date", "yyyymmdd")
_KNOWN = (*_DATES, "sha", "python")
_check_url = address_of("https", "http", "file")
_WHEEL = re.compile(r"[A-Za-z0-9_.+!-]{1,255}\.whl")
_MOST_WHEELS = 50  # in one archive
_LARGEST_UNPACKED = 32 * 2**30  # bytes of all of them: wheels are compressed already, a bomb is not


@dataclass(frozen=True)
class UrlAddress:
    """`url:https://host/torch-{yyyymmdd}-{python}.whl@2026-11-20`, `url:https://host/{sha}/torch.whl@1a2b3c4`, or an
    address without a placeholder. `#sha256=` at the end says what the file must be."""

    provider: ClassVar[str] = "url"
    template: str
    value: str = ""  # a date or a commit; empty where the template asks for none
    sha256: str = ""

    @classmethod
    def parse(cls, what: str) -> Self:
        what, marked, fragment = what.partition("#")
        if marked and not re.fullmatch(r"sha256=[0-9a-f]{64}", fragment):
            raise ValueError("has a part after # that is not sha256= and 64 digits")
        names = set(_PLACEHOLDER.findall(what))
        if unknown := sorted(names - set(_KNOWN)):
            raise ValueError(f"{{{unknown[0][:20]}}} is not known; there are {{{'}, {'.join(_KNOWN)}}}")
        dated, by_commit = bool(names & set(_DATES)), "sha" in names
        if dated and by_commit:
            raise ValueError("asks for a date and a commit; write one of them out")
        template, value = what, ""
        if dated or by_commit:
            template, _, value = what.rpartition("@")
        if dated and not _is_date(value):
            raise ValueError("has the placeholder of a date; it must end with @ and one, such as @2026-11-20")
        if by_commit and not SHA.fullmatch(value):
            raise ValueError("has {sha}; it must end with @ and 7 to 64 hexadecimal digits")
        if ".." in template.split("/"):
            raise ValueError("holds ../, which leads out of where it says")
        if set("{}") & set(_PLACEHOLDER.sub("", template)):
            raise ValueError("holds a brace that is no placeholder")
        _check_url(_PLACEHOLDER.sub("x", template))
        if not _PLACEHOLDER.sub("x", template).endswith((".whl", ".zip")):
            raise ValueError("must name a .whl, or a .zip with wheels in it")
        return cls(template, value, fragment.removeprefix("sha256="))

    def __str__(self) -> str:
        value = f"@{self.value}" if self.value else ""
        return f"{self.provider}:{self.template}{value}{f'#sha256={self.sha256}' if self.sha256 else ''}"

    @property
    def is_local(self) -> bool:
        return self.template.startswith("file:")

    def exact(self, request: Request) -> Self:
        return self

    def source(self, request: Request) -> WheelSource:
        url, *beside = self.urls(request)
        facts = {"provider": self.provider, "url": url, "sha256": self.sha256}
        if beside:
            facts["beside"] = beside
        key = source_key(facts)

        def make(shop: Workshop) -> Fetched:
            known = request.cache.source(key)
            etag = known.etag if known is not None and request.cache.has_wheels(known) else None
            got = self._get(url, shop, None if beside else etag)
            more = [wheel for other in beside for wheel in replace(self, sha256="")._get(other, shop, None).wheels]
            return replace(got, wheels=(*got.wheels, *more)) if more else got

        return WheelSource(str(self), facts, make, lasting=bool(self.value or self.sha256))

    def urls(self, request: Request) -> list[str]:
        """All that is asked for: the address itself, then what comes along by the settings. Raises BenchmarkError."""
        python = request.target.python
        if not self.value:
            return [self.url(python)]
        beside = []
        for template in request.settings.url.beside:
            try:
                beside.append(self.parse(f"{template}@{self.value}").url(python))
            except ValueError as error:
                raise BenchmarkError(f"`builds.url.beside` {error}") from error
        return [self.url(python), *beside]

    def url(self, python: str) -> str:
        """The address that is asked, for a version of Python such as 3.12."""
        values = {
            "date": self.value,
            "yyyymmdd": self.value.replace("-", ""),
            "sha": self.value,
            "python": f"cp{python.replace('.', '')}",
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.template)

    def _get(self, url: str, shop: Workshop, etag: str | None) -> Fetched:
        name = file_name(url)
        if not re.fullmatch(r"[A-Za-z0-9_.+!-]{1,255}", name):
            raise BuildFailed(f"{url}: the last part is not the plain name of a file")
        path = shop.folder / name
        got = download_file(url, path, etag)
        if not got.changed:
            return Fetched((), etag, unchanged=True)
        if self.sha256 and (found := sha256_of(path)) != self.sha256:
            raise BuildFailed(f"{url}: has the SHA-256 {found}, not {self.sha256}, which the address says")
        wheels = (path,) if name.endswith(".whl") else _unpack(path, shop.folder / f"unpacked-{name}", url)
        return Fetched(wheels, got.etag)


def _unpack(archive: Path, folder: Path, url: str) -> tuple[Path, ...]:
    """The wheels of a .zip, as artifacts of a CI are: by their last name, wherever in it they are."""
    folder.mkdir()
    found: list[Path] = []
    unpacked = 0
    with ExitStack() as stack:
        with _readable(url):
            opened = stack.enter_context(zipfile.ZipFile(archive))
        for member in opened.infolist():
            name = member.filename.rpartition("/")[2]
            if not _WHEEL.fullmatch(name) or member.is_dir():
                continue
            unpacked += member.file_size
            if len(found) >= _MOST_WHEELS or unpacked > _LARGEST_UNPACKED:
                raise BuildFailed(f"{url}: holds too much: {len(found) + 1} wheels, {unpacked} bytes")
            if (folder / name).exists():
                raise BuildFailed(f"{url}: holds {name} twice")
            with open(folder / name, "wb") as file:
                for block in _blocks(opened, member, url):
                    file.write(block)
            found.append(folder / name)
    return tuple(sorted(found))


def _blocks(archive: zipfile.ZipFile, member: zipfile.ZipInfo, url: str) -> Iterator[bytes]:
    with ExitStack() as stack:
        with _readable(url):
            content = stack.enter_context(archive.open(member))
        while True:
            with _readable(url):
                block = content.read(2**20)
            if not block:
                return
            yield block


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """What goes wrong in reading an archive is the archive's fault. Each of its compressions has errors of its own, and
    a damaged directory gives whatever its numbers lead to; only writing has a fault of ours, and is not in here."""
    try:
        yield
    except Exception as error:
        raise BuildFailed(f"{url}: is no archive that can be read ({one_line(error)})") from error


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
