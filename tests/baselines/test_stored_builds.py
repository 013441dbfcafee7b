"""How the builds of nights were pinned, as the store knows it."""

import pytest

from baselines.errors import BaselineError
from baselines.stored_builds import store_build, stored_build
from torchbenchmark.builds.installation import Installed
from torchbenchmark.builds.pinned import PinnedBuild, PinnedWheel

BUILD = "2.14.0.dev20261127+cu130-0badcafe"
TORCH = PinnedWheel(name="torch", version="2.14.0.dev20261127+cu130", file="torch-2.14-py3-none-any.whl")
DISTRIBUTIONS = {"numpy": Installed(version="2.4.6", file="numpy.whl", sha256=None, source="https://example.org")}


def pin(index="https://example.org/nightly"):
    return PinnedBuild(index=index, date="2026-11-27", python="3.12", wheels=(TORCH,))


def test_the_first_that_knows_how_a_build_came_about_stays(any_store):
    assert stored_build(any_store, BUILD) is None
    assert store_build(any_store, BUILD, pin()).distributions == {}
    known = store_build(any_store, BUILD, pin(), DISTRIBUTIONS)
    assert known == stored_build(any_store, BUILD) and known.versions == {"numpy": "2.4.6"}
    assert store_build(any_store, BUILD, pin("https://mirror.example.org")) == known
    assert store_build(any_store, BUILD, pin("https://mirror.example.org"), DISTRIBUTIONS) == known
    assert any_store.list("") == [f"builds/{BUILD}.json"]


def test_what_cannot_be_read_is_told_with_its_key(any_store):
    any_store.create(f"builds/{BUILD}.json", b'{"kind": "build"}')
    with pytest.raises(BaselineError, match=r"builds/2\.14.*\.json: .*; remove it"):
        stored_build(any_store, BUILD)
