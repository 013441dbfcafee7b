"""docs/replay.md does what it says: its example is run as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "replay.md"


def block(language: str) -> str:
    """The first block of code in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", DOC.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_prints_what_stands_below_it(tmp_path):
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python").symlink_to(sys.executable)
    (commands / "torchbench").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bot "$@"\n')
    (commands / "torchbench").chmod(0o755)
    variables = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-e", "-c", block("sh")], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed == block("text").splitlines(), "put into docs/replay.md what it prints"
    assert len((tmp_path / "detections.csv").read_text().splitlines()) == 2
