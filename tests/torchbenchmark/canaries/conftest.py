"""An index of wheels for each test, pip kept to it, and a cache of builds of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from package_index import PackageIndex, keep_pip_offline, serve

from torchbenchmark.builds.cache import BuildCache


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    with serve() as served:
        yield served


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildCache:
    """Also the one that is opened without a name."""
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "cache"))
    return BuildCache.open()
