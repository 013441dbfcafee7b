"""Nightlies of the smoke suite for the pipeline tests, on one store and outbox."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pipeline import command_line


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
        config = self.folder / "nightly.yaml"
        chosen = {**self.config, **({"python": str(python)} if python else {})}
        config.write_text(yaml.safe_dump(chosen))
        process = subprocess.run(
            command_line("nightly", "--config", config),
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        summary = self.folder / "work" / "nightly.json"
        assert summary.is_file(), process.stderr + process.stdout
        return Night(process.returncode, json.loads(summary.read_text()), process.stdout + process.stderr)

    @property
    def issues(self) -> list[Path]:
        return sorted((self.folder / "outbox").glob("*.md"))
