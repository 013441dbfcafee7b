"""The versions that an index has: all of them, in their order, and why one cannot be installed here."""

import json
import sys
from pathlib import Path

import pytest
from package_index import Offered

from torchbenchmark.builds.pip import configured_index
from torchbenchmark.builds.releases import releases_of
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.builds.target import ask_target
from torchbenchmark.errors import BenchmarkError

HERE = Path(sys.executable)


@pytest.fixture(scope="module")
def target():
    return ask_target(HERE)


@pytest.mark.parametrize("as_json", [False, True])
def test_versions_stand_in_their_order_with_what_keeps_them_from_being_installed(index, settings, target, as_json):
    index.as_json = as_json
    index.add("thing", "1.10")
    index.add("thing", "1.9")
    index.add("thing", "1.11rc1")
    index.add("thing", "1.12", yanked=True)
    index.add("thing", "1.13", tag="cp311-cp311-win32")
    index.add("thing", "1.14", requires_python=">=4")
    index.packages["thing"].append(Offered("thing-1.8.tar.gz", b""))
    index.packages["thing"].append(Offered("thing-1.9.tar.gz", b""))

    found = releases_of("Thing", settings, target, HERE)

    assert [str(one.version) for one in found] == ["1.8", "1.9", "1.10", "1.11rc1", "1.12", "1.13", "1.14"]
    assert [str(one.version) for one in found if one.yanked] == ["1.12"]
    told = {str(one.version): one.why_not for one in found if one.why_not}
    assert told.keys() == {"1.8", "1.13", "1.14"}
    assert "source alone" in told["1.8"]
    assert "win32" in told["1.13"] and "requires" not in told["1.13"]
    assert "require Python >=4" in told["1.14"]


def test_the_day_of_a_version_is_that_of_its_first_file(index, settings, target):
    files = [
        {"filename": f"thing-1.0-{tag}-none-any.whl", "url": "x", "hashes": {}, "upload-time": f"{day}T01:02:03.4Z"}
        for tag, day in (("py3", "2026-02-03"), ("py2", "2026-02-01"))
    ]
    page = json.dumps({"meta": {"api-version": "1.1"}, "name": "thing", "files": files})
    index.raw["/thing/"] = (200, "application/vnd.pypi.simple.v1+json", page.encode())
    (only,) = releases_of("thing", settings, target, HERE)
    assert only.uploaded == "2026-02-01"


def test_without_an_index_in_the_configuration_pip_says_which_one_it_asks(index, target, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", index.address.replace("://", "://user:secret@") + "/")
    assert configured_index(HERE) == index.address
    index.add("thing", "1.0")
    assert [str(one.version) for one in releases_of("thing", BuildSettings(), target, HERE)] == ["1.0"]


def test_a_package_that_no_index_has_is_told(index, settings, target):
    with pytest.raises(BenchmarkError, match="has no package thing"):
        releases_of("thing", settings, target, HERE)
