"""Pipeline tests run the real command line in processes of its own, on real files."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pipeline import command_line


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
