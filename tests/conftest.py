"""What holds for all tests; stores of each kind, empty, and the servers behind them."""

import contextlib
import gc
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

with contextlib.suppress(ImportError):  # a GPU machine has none
    import hypothesis

    # How long an example takes is a matter of the machine and of what else runs on it.
    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")

if TYPE_CHECKING:  # the fixtures import what they need: a GPU machine has no boto3
    from s3_servers import Endpoint

    from baselines.store import Store


def pytest_configure(config: pytest.Config) -> None:
    from models.thirds import pin_third

    pin_third()  # before the workers start: a day may end between two of them


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: no worker is left alone with one at the end."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)


def pytest_collection_finish() -> None:
    """What the imports of all tests left stays to the end: no collection of garbage need look at it again."""
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str:
    from models.thirds import VARIABLE, pin_third

    return f"models: third {pin_third()} of 3, the others are `long`; {VARIABLE}=1, 2, 3 or all chooses"


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes make no name of a test: a compressed file holds the time of its making, and each worker would call the
    test something else."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have recorded, `record_property("figure", ...)`, so that CI's log shows them."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for report in reports:
        if getattr(report, "when", None) == "call":
            for name, value in report.user_properties:
                if name == "figure":
                    terminalreporter.write_line(f"figure: {value}")


@pytest.fixture(scope="session")
def moto_endpoint() -> "Iterator[Endpoint]":
    from s3_servers import moto

    with moto() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def seaweedfs_endpoint(tmp_path_factory) -> "Iterator[Endpoint]":
    from s3_servers import seaweedfs

    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "moto", "seaweedfs"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Store":
    """An empty store of each kind. `open_store(any_store.location)` is the same one, in other processes too."""
    from baselines.store import open_store

    if request.param == "folder":
        return open_store(str(tmp_path / "store"))
    from s3_servers import BUCKET

    request.getfixturevalue(f"{request.param}_endpoint").use(monkeypatch)
    return open_store(f"s3://{BUCKET}/{secrets.token_hex(8)}/nightly")


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory) -> Path:
    """A virtual environment as each installation begins with, made once: that takes longer than all the rest."""
    folder = tmp_path_factory.mktemp("empty") / "environment"
    subprocess.run([sys.executable, "-I", "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def quick(empty_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installations copy that environment instead of making one."""
    from torchbenchmark.builds import installation

    run = installation._run

    def copy_or_run(command, folder, *rest):
        if "venv" in command:
            shutil.copytree(empty_environment, folder, symlinks=True, dirs_exist_ok=True)
        else:
            run(command, folder, *rest)

    monkeypatch.setattr(installation, "_run", copy_or_run)
