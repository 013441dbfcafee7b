"""An index of nightlies for each test, and pip kept to it."""

from collections.abc import Iterator

import pytest
from package_index import PackageIndex, keep_pip_offline, serve

from torchbenchmark.builds import simple_index


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    monkeypatch.setattr(simple_index, "PAUSES_S", (0.0, 0.0))
    with serve() as served:
        yield served
