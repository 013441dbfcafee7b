"""Gets one file over http(s), or from a folder (file:), with the login that ~/.netrc has for the host."""

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from torchbenchmark import __version__
from torchbenchmark.builds.build_errors import BuildNotFound, BuildUnavailable
from torchbenchmark.builds.simple_index import login_of

LARGEST = 16 * 2**30  # bytes; a wheel of torch with CUDA has 1 to 3 GiB
ANSWER_TIMEOUT_S = 60
DEADLINE_S = 3600
PAUSES_S = (1.0, 8.0)  # before the second and the third attempt
_BLOCK = 2**20


@dataclass(frozen=True)
class Downloaded:
    """The answer: its entity tag, and whether it is another than that of the tag which was sent."""

    changed: bool
    etag: str | None


def download_file(url: str, path: Path, etag: str | None = None) -> Downloaded:
    """Write what is at an address into a file, unless it still has the entity tag.

    Raises BuildNotFound, BuildUnavailable, and OSError if the file cannot be written.
    """
    problem = ""
    for pause in (0.0, *PAUSES_S):
        time.sleep(pause)
        try:
            return _download_once(url, path, etag)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 304 and etag is not None:
                return Downloaded(changed=False, etag=etag)
            if error.code in (404, 410):
                raise BuildNotFound(f"{url}: is not there (HTTP {error.code})") from error
            if error.code in (401, 403):
                raise BuildUnavailable(
                    f"{url}: access refused (HTTP {error.code}); credentials belong in ~/.netrc"
                ) from error
            problem = f"HTTP {error.code}"
            if error.code < 500 and error.code not in (408, 425, 429):
                break
        except urllib.error.URLError as error:
            if isinstance(error.reason, FileNotFoundError) or "No such file" in str(error.reason):
                raise BuildNotFound(f"{url}: is not there") from error
            problem = getattr(error.reason, "strerror", None) or str(error.reason)
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            problem = str(error) or type(error).__name__
    raise BuildUnavailable(f"{url}: cannot be read ({problem}); check the address and the network")


def _download_once(url: str, path: Path, etag: str | None) -> Downloaded:
    request = urllib.request.Request(url, headers={"User-Agent": f"torchbench-sentinel/{__version__}"})
    if etag is not None:
        request.add_header("If-None-Match", etag)
    if (login := login_of(urlsplit(url).hostname or "")) is not None:
        request.add_unredirected_header("Authorization", f"Basic {login}")
    with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
        if url.startswith("https:") and not answer.url.startswith("https:"):
            raise BuildUnavailable(f"{url}: redirects to an address that is not https")
        length = answer.headers.get("Content-Length")
        with open(path, "wb") as file:
            written = _copy(answer, file, url)
        if length is not None and length.isdigit() and written != int(length):
            raise ConnectionError(f"ended after {written} of {length} bytes")
        return Downloaded(changed=True, etag=answer.headers.get("ETag"))


def _copy(answer: IO[bytes], file: IO[bytes], url: str) -> int:
    deadline = time.monotonic() + DEADLINE_S
    written = 0
    while block := answer.read(_BLOCK):
        written += len(block)
        if written > LARGEST:
            raise BuildUnavailable(f"{url}: is larger than {LARGEST // 2**30} GiB")
        if time.monotonic() > deadline:
            raise BuildUnavailable(f"{url}: was not read to its end within {DEADLINE_S} s")
        file.write(block)
    return written


def file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
