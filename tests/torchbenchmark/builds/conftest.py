"""An index of wheels for each test, pip kept to it, and a cache of builds that takes what they need from there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from package_index import PackageIndex, keep_pip_offline, serve

from torchbenchmark.builds import download, simple_index
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.settings import BuildSettings


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    monkeypatch.setattr(simple_index, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(download, "PAUSES_S", (0.0, 0.0))
    with serve() as served:
        yield served


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache.open(tmp_path / "cache", max_gib=10)


@pytest.fixture
def settings(index: PackageIndex) -> BuildSettings:
    """Builds take their dependencies from the test's index."""
    return BuildSettings(index=index.address, requirements=("numpy==2.4.6",))
