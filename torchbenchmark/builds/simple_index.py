"""Reads a package's page of a simple index: PEP 503 (HTML) and PEP 691 (JSON). What stands on the page is foreign:
it is bounded, and whatever is not the plain name of a wheel of this package is left out."""

import base64
import http.client
import json
import netrc
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from torchbenchmark import __version__
from torchbenchmark.builds.build_errors import BuildUnavailable
from torchbenchmark.environment import normalised_name
from torchbenchmark.errors import BenchmarkError

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
JSON_TYPES = ("application/vnd.pypi.simple.v1+json", "application/json")
LARGEST_PAGE = 32 * 2**20  # bytes; the pages of torch's nightlies have a few million
READ_DEADLINE_S = 120
ANSWER_TIMEOUT_S = 30
PAUSES_S = (1.0, 4.0)  # before the second and the third attempt
MOST_FILES = 200_000  # on one page
LONGEST_ANCHOR = 8000  # characters of `<a …>`
MOST_TAGS = 64  # of one wheel: a compressed set in a file's name can multiply to millions

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+!-]{1,255}")
# Tags alone are given to the standard parser, which takes a time quadratic in the length of what is not closed. Nothing
# here runs across a `<`, so a page is read in linear time whatever it holds.
_ANCHOR = re.compile(r"""<a\s(?:[^<>"']|"[^"<]*"|'[^'<]*')*+>""", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=T|$)", re.ASCII)


@dataclass(frozen=True)
class IndexedWheel:
    """A wheel that the index has."""

    file: str
    version: Version
    build: tuple[int, str] | tuple[()]
    tags: frozenset[Tag]
    sha256: str | None
    requires_python: str
    yanked: bool


@dataclass
class IndexedVersion:
    """A version that the index has."""

    wheels: list[IndexedWheel]  # none where there is the source alone
    uploaded: str = ""  # the first day of a file, as 2026-11-20, where the index tells
    yanked: bool = True  # all that there is of it


def read_page(index: str, package: str) -> list[IndexedWheel]:
    """The wheels of a package. Raises BenchmarkError naming index and package."""
    entries = _entries(index, package)
    wheels = [wheel for entry in entries if (wheel := _wheel(package, entry)) is not None]
    if not wheels:
        raise BenchmarkError(
            f"{_address(index, package)}: lists no wheel of {package}; is it the page of a simple package index?"
        )
    return wheels


def read_versions(index: str, package: str) -> dict[Version, IndexedVersion]:
    """The versions of a package, be they wheels or source alone. Raises BenchmarkError naming index and package."""
    found: dict[Version, IndexedVersion] = {}
    for entry in _entries(index, package):
        wheel = _wheel(package, entry)
        version = wheel.version if wheel is not None else _version_of_source(package, entry)
        if version is None:
            continue
        there = found.setdefault(version, IndexedVersion([]))
        there.wheels += [wheel] if wheel is not None else []
        there.uploaded = min(filter(None, (there.uploaded, entry.uploaded)), default="")
        there.yanked = there.yanked and entry.yanked
    if not found:
        raise BenchmarkError(
            f"{_address(index, package)}: lists no version of {package}; is it the page of a simple package index?"
        )
    return found


def _address(index: str, package: str) -> str:
    return f"{index}/{normalised_name(package)}/"


def _entries(index: str, package: str) -> "list[_Entry]":
    url = _address(index, package)
    content, kind = _fetch(url, package, index)
    entries = _entries_of_json(content, url) if kind in JSON_TYPES else _entries_of_html(content)
    by_name = {entry.file: entry for entry in islice(entries, MOST_FILES + 1)}
    if len(by_name) > MOST_FILES:
        raise BenchmarkError(f"{url}: lists more than {MOST_FILES} files")
    return list(by_name.values())


@dataclass(frozen=True)
class _Entry:
    file: str
    sha256: str | None = None
    requires_python: str = ""
    yanked: bool = False
    uploaded: str = ""


def _version_of_source(package: str, entry: _Entry) -> Version | None:
    """The version of an entry that is the source of the package, if it is."""
    if not _PLAIN_NAME.fullmatch(entry.file):
        return None
    try:
        name, version = parse_sdist_filename(entry.file)
    except (InvalidSdistFilename, InvalidVersion):
        return None
    return version if name == normalised_name(package) else None


def _wheel(package: str, entry: _Entry) -> IndexedWheel | None:
    """The entry as a wheel of the package, if it is one."""
    if not (entry.file.endswith(".whl") and _PLAIN_NAME.fullmatch(entry.file)):
        return None
    combinations = 1
    for part in entry.file.removesuffix(".whl").split("-")[-3:]:
        combinations *= part.count(".") + 1
    if combinations > MOST_TAGS:
        return None
    try:
        name, version, build, tags = parse_wheel_filename(entry.file)
    except (InvalidWheelFilename, InvalidVersion, ValueError):
        return None
    if name != normalised_name(package):
        return None
    sha256 = entry.sha256 if entry.sha256 and _SHA256.fullmatch(entry.sha256) else None
    return IndexedWheel(entry.file, version, build, tags, sha256, entry.requires_python, entry.yanked)


def _entries_of_json(content: bytes, url: str) -> Iterator[_Entry]:
    try:
        page = json.loads(content)
        files: list[Any] = page["files"]
        version = str(page.get("meta", {}).get("api-version", "1.0"))
        if not isinstance(files, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BenchmarkError(f"{url}: answers JSON that is no page of a simple package index (PEP 691)") from error
    if version.partition(".")[0] != "1":
        raise BenchmarkError(f"{url}: answers in version {version[:20]!r} of the index's interface; only 1 is known")
    for file in files:
        if isinstance(file, dict) and isinstance(file.get("filename"), str):
            hashes = file.get("hashes")
            sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
            requires = file.get("requires-python")
            uploaded = _DAY.match(str(file.get("upload-time") or ""))
            yield _Entry(
                file["filename"],
                sha256 if isinstance(sha256, str) else None,
                requires if isinstance(requires, str) else "",
                file.get("yanked", False) not in (False, None),
                uploaded[0] if uploaded else "",
            )


def _entries_of_html(content: bytes) -> Iterator[_Entry]:
    for anchor in _ANCHOR.finditer(_without_comments(content.decode("utf-8", errors="replace"))):
        if len(anchor[0]) <= LONGEST_ANCHOR:
            parser = _Anchors()
            parser.feed(anchor[0])
            parser.close()
            yield from parser.entries


def _without_comments(page: str) -> str:
    kept, position = [], 0
    while (start := page.find("<!--", position)) >= 0:
        kept.append(page[position:start])
        end = page.find("-->", start)
        if end < 0:
            return "".join(kept)
        position = end + len("-->")
    return "".join([*kept, page[position:]])


class _Anchors(HTMLParser):
    """An anchor of a page; the last part of the address is the file's name, as PEP 503 has it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.entries: list[_Entry] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag != "a" or not given.get("href"):
            return
        try:
            parts = urlsplit(given["href"] or "")
        except ValueError:
            return
        digest = re.search(r"(?:^|&)sha256=([0-9a-f]{64})", parts.fragment)
        self.entries.append(
            _Entry(
                unquote(parts.path.rpartition("/")[2]),
                digest[1] if digest else None,
                given.get("data-requires-python") or "",
                "data-yanked" in given,
            )
        )


def _fetch(url: str, package: str, index: str) -> tuple[bytes, str]:
    """(content, media type) of a page; what may pass is tried again."""
    problem = ""
    for pause in (0.0, *PAUSES_S):
        time.sleep(pause)
        try:
            return _fetch_once(url)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise BenchmarkError(f"{index}: has no package {package} (HTTP {error.code} for {url})") from error
            if error.code in (401, 403):
                raise BuildUnavailable(
                    f"{url}: HTTP {error.code}, access refused; credentials belong in ~/.netrc, which pip reads too"
                ) from error
            problem = f"HTTP {error.code}"
            if error.code < 500 and error.code not in (408, 425, 429):
                break
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            problem = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
    raise BuildUnavailable(f"{url}: the index does not answer ({problem}); check `build.index` and the network")


def _fetch_once(url: str) -> tuple[bytes, str]:
    request = urllib.request.Request(
        url, headers={"Accept": ACCEPT, "User-Agent": f"torchbench-sentinel/{__version__}"}
    )
    if (login := login_of(urlsplit(url).hostname or "")) is not None:
        request.add_unredirected_header("Authorization", f"Basic {login}")
    deadline = time.monotonic() + READ_DEADLINE_S
    with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
        if url.startswith("https:") and not answer.url.startswith("https:"):
            raise BenchmarkError(f"{url}: redirects to an address that is not https")
        content = bytearray()
        while chunk := answer.read(2**16):
            content += chunk
            if len(content) > LARGEST_PAGE:
                raise BenchmarkError(f"{url}: the page is larger than {LARGEST_PAGE // 2**20} MiB")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not read to its end within {READ_DEADLINE_S} s")
        return bytes(content), answer.headers.get_content_type()


def login_of(host: str) -> str | None:
    """What ~/.netrc has for the host, as pip would use it."""
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    if found is None:
        return None
    return base64.b64encode(f"{found[0] or ''}:{found[2] or ''}".encode()).decode()
