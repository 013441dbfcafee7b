"""Pipeline tests run the real command line in processes of its own, on real files."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pipeline import command_line


@pytest.fixture
def torchbench(tmp_path: Path, torchbench_in) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `torchbench ...` to its end in the test's own folder."""
    return partial(torchbench_in, tmp_path)


@pytest.fixture(scope="session")
def torchbench_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `torchbench ...` to its end in a folder."""

    def run(folder: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line(*arguments),
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return run
