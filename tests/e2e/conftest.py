"""Pipeline tests run the real command line in processes of its own, on real files."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MISBEHAVING_MODELS = Path(__file__).parents[1] / "misbehaving_models"


@pytest.fixture
def torchbench(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `torchbench ...` to its end in the test's own folder."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line(*arguments),
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return run


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bot", *map(str, arguments)]


def processes_with_variable(name: str, value: str) -> list[int]:
    """Living processes that were started with this environment variable."""
    wanted = f"{name}={value}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                alive = "\nState:\tZ" not in (entry / "status").read_text()
                if alive and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def write_suite(folder: Path, models: list[str], tests: str = "[train]") -> Path:
    """A suite file over models at their tiny preset."""
    path = folder / "suite.yaml"
    path.write_text(
        f"name: trial\ndescription: For a test.\nmodels: [{', '.join(models)}]\ntests: {tests}\npreset: tiny\n"
    )
    return path
