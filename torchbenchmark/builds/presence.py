"""Whether a build can be had, as far as can be told without getting it: an index lists what it has, and the first byte
of a wheel is there or is not. Nightlies are removed after some weeks, and some days have none."""

import http.client
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from urllib.parse import urlsplit

from torchbenchmark import __version__
from torchbenchmark.builds.download import ANSWER_TIMEOUT_S
from torchbenchmark.builds.nightly import NightlyAddress
from torchbenchmark.builds.nightly_index import fitting_dates
from torchbenchmark.builds.provider import BuildAddress, Request
from torchbenchmark.builds.simple_index import login_of
from torchbenchmark.builds.url import UrlAddress

ASKED_AT_ONCE = 8  # addresses of one host
# Buckets whose contents may not be listed answer 403 for what is not there, so that cannot be told from a refusal.
GONE = (401, 403, 404, 410)


def why_absent(addresses: list[BuildAddress], request: Request) -> list[str]:
    """Why each of the builds cannot be had now; empty for one that can, or of which that cannot be told. One whose
    wheels are in the cache can. Raises BenchmarkError for an index that does not answer."""
    listed: dict[str, frozenset[date]] = {}
    for address in addresses:
        if isinstance(address, NightlyAddress) and address.index not in listed:
            listed[address.index] = fitting_dates(address.build(request), request.target)

    def why(address: BuildAddress) -> str:
        if not isinstance(address, NightlyAddress | UrlAddress):
            return ""
        known = request.cache.source(address.source(request).key)
        if known is not None and request.cache.has_wheels(known):
            return ""
        if isinstance(address, UrlAddress):
            return next(filter(None, map(_problem, address.urls(request))), "")
        there = date.fromisoformat(address.night) in listed[address.index]
        return "" if there else f"{address.index} has no wheel of {address.night} that fits"

    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return list(pool.map(why, addresses))


def _problem(url: str) -> str:
    """Why the file at an address cannot be read, if whoever has it says so."""
    asked = urllib.request.Request(
        url, headers={"User-Agent": f"torchbench-sentinel/{__version__}", "Range": "bytes=0-0"}
    )
    if (login := login_of(urlsplit(url).hostname or "")) is not None:
        asked.add_unredirected_header("Authorization", f"Basic {login}")
    try:
        urllib.request.urlopen(asked, timeout=ANSWER_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        return f"{url}: is not there (HTTP {error.code})" if error.code in GONE else ""
    except urllib.error.URLError as error:
        missing = isinstance(error.reason, FileNotFoundError) or "No such file" in str(error.reason)
        return f"{url}: is not there" if missing else ""  # whoever gets it tells of the network
    except (http.client.HTTPException, OSError):
        return ""
    return ""
