"""`torchbench bisect --tests` on a repository of compiled commits, in a process group that can be killed, and what it
left behind to be counted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compiled_repository import BUILD, CompiledRepository

ROOT = Path(__file__).resolve().parents[3]
MODELS = Path(__file__).parent / "model_of_package"
SUITE = "name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\nthreads: 1\n"
POLL_S = 0.02


@dataclass(frozen=True)
class Bisection:
    """The command for one repository, whose files lie beside it."""

    repository: CompiledRepository
    folder: Path
    budget_s: float = 0.4
    beyond: float = 0.03
    closing: int = 0

    def __post_init__(self) -> None:
        (self.folder / "build.sh").write_text(BUILD)
        (self.folder / "works.yaml").write_text(SUITE)
        (self.folder / "nightly.yaml").write_text("builds: {requirements: []}\n")
        self.journal.touch()

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    @property
    def command(self) -> list[str]:
        options = {
            "--repo": self.repository.folder,
            "--good": "c0",
            "--bad": "main",
            "--build": f"sh '{self.folder / 'build.sh'}'",
            "--tests": "works",
            "--suite": self.folder / "works.yaml",
            "--subject": "worksteps",
            "--models": MODELS,
            "--config": self.folder / "nightly.yaml",
            "--threads": 1,
            "--budget": self.budget_s,
            "--beyond": self.beyond,
            "--closing": self.closing,
            "--work": self.folder / "work",
            "--json": self.folder / "out.json",
        }
        named = [str(part) for option in options.items() for part in option]
        return [sys.executable, "-m", "bot", "bisect", "--no-attribution", *named]

    @contextmanager
    def going(self, hold_at: int = 0) -> Iterator["subprocess.Popen[bytes]"]:
        """The command as it runs. The build of that number waits until it is killed."""
        variables = {
            "JOURNAL": str(self.journal),
            "HOLD_AT": str(hold_at),
            "TORCHBENCH_BUILDS": str(self.folder / "builds"),
        }
        with open(self.folder / "told", "ab") as told:
            process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def killed_when(self, so_far: Callable[[], bool], hold_at: int = 0) -> list[str]:
        """Start it, and kill its process group as soon as something holds. The commit whose build that broke off."""
        before = len(self.commits_that("began"))
        with self.going(hold_at) as process:
            while not so_far():
                assert process.poll() is None, f"it ended by itself:\n{self.told}"
                time.sleep(POLL_S)
        last = self.commits_that("began")[before:][-1:]
        return [commit for commit in last if commit not in self.commits_that("ended")]

    def ended(self) -> int:
        """Start it and let it end: its exit code."""
        with self.going() as process:
            return process.wait()

    @property
    def told(self) -> str:
        return (self.folder / "told").read_text()

    @property
    def report(self) -> dict:
        return json.loads((self.folder / "out.json").read_text())

    @property
    def document(self) -> dict:
        """What is stored, of the whole range."""
        found = sorted((self.folder / "work").glob("*/store/bisections/*.json"), key=lambda path: len(path.name))
        return json.loads(found[0].read_text()) if found else {"made": [], "visits": []}

    @property
    def visited(self) -> list[dict]:
        """The visits that have come to their end."""
        return [visit for visit in self.document["visits"] if visit["values"]]

    @property
    def cost(self) -> str:
        made, visits = self.document["made"], self.document["visits"]
        failed = sum(not one["ok"] for one in made)
        return (
            f"{len(made)} builds ({failed} failed) in {sum(one['seconds'] for one in made):.0f} s, "
            f"{len(self.pairs())} pairs in {sum(one['seconds'] for one in visits):.0f} s"
        )

    def commits_that(self, what: str) -> list[str]:
        """That `began` to be built, or whose build `ended`, in their order."""
        return [line.split()[1] for line in self.journal.read_text().splitlines() if line.startswith(f"{what} ")]

    def pairs_of(self, visit: int) -> list[dict]:
        """The pairs of a visit that are measured, as they lie in its file."""
        lines = [line for path in (self.folder / "work").glob(f"*/pairs/{visit:03}-*.jsonl") for line in _lines(path)]
        return [json.loads(line) for line in lines[1:]]

    def pairs(self) -> list[tuple[int, dict]]:
        """All that are measured, with the visit of each."""
        visits = [visit["number"] for visit in self.document["visits"]]
        return [(visit, pair) for visit in visits for pair in self.pairs_of(visit)]


def _lines(path: Path) -> list[str]:
    """Those that are whole."""
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
