"""Nightlies of the smoke suite for the pipeline tests, on one store and outbox."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pipeline import command_line

PATIENCE_S = 600


@dataclass(frozen=True)
class Night:
    """How one nightly ended."""

    exit_code: int
    summary: dict[str, Any]
    output: str

    def tests(self, state: str) -> set[str]:
        return {row["test"] for row in self.summary["report"]["rows"] if row["state"] == state}


class Nights:
    def __init__(self, folder: Path, **config: object) -> None:
        self.folder = folder
        self.config: dict[str, object] = {
            "suite": "smoke",
            "threads": 1,
            "rounds": 3,
            "budget_s": 0.25,
            "timeout_s": 120,
            "policy": "smoke",
            "store": "store",
            "work": "work",
            "outbox": "outbox",
            "attribute": {"tests": 0},  # it takes a while
            **config,
        }

    def run(self, python: Path | None = None) -> Night:
        """One night of the build of `python`, or of this interpreter."""
        process = subprocess.run(
            self._command(python),
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        summary = self.folder / "work" / "nightly.json"
        assert summary.is_file(), process.stderr + process.stdout
        return Night(process.returncode, json.loads(summary.read_text()), process.stdout + process.stderr)

    def killed_while_it_confirms(self, python: Path, pairs: int) -> list[str]:
        """Start a night and kill it when so many pairs are there, which are returned as they stand."""
        process = subprocess.Popen(
            self._command(python), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        give_up = time.monotonic() + PATIENCE_S
        while len(found := self._pairs_so_far()) < pairs:
            assert process.poll() is None, "the night ended before so many pairs were there"
            assert time.monotonic() < give_up, f"{len(found)} pairs after {PATIENCE_S} s"
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return found

    def _pairs_so_far(self) -> list[str]:
        """The lines of the pairs that are there, whole ones only."""
        # By depth: a walk would go into folders that the night removes meanwhile.
        files = sorted((self.folder / "work" / "confirm").glob("*/*-pairs-*.jsonl"))
        lines = [line for file in files for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if '"kind":"pair"' in line]

    def _command(self, python: Path | None) -> list[str]:
        config = self.folder / "nightly.yaml"
        chosen = {**self.config, **({"python": str(python)} if python else {})}
        config.write_text(yaml.safe_dump(chosen))
        return command_line("nightly", "--config", config)

    @property
    def issues(self) -> list[Path]:
        return sorted((self.folder / "outbox").glob("*.md"))
