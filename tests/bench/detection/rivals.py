"""Public change-point detectors in a venv of their own, driven through rival_replay.py; their answers are kept in a
folder, as they take minutes and depend on nothing of ours."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

REQUIREMENTS = ("apache-otava==0.8.*", "ruptures==1.1.*")  # otava pins a numpy that the product's venv does not have
PROGRAM = Path(__file__).parent / "rival_replay.py"
Point = tuple[int, int]  # (position of the change, night on which it was first seen old enough)


@dataclass(frozen=True)
class Rivals:
    folder: Path  # of the venv and of the answers

    def replay(
        self, detector: str, settings: dict[str, float], age: int, series: Sequence[np.ndarray], again: bool = False
    ) -> tuple[list[list[Point]], float]:
        """The change points of every series in the order in which they are seen, and the CPU seconds that it took.

        `again`: though the answer is kept, to time it on this machine now."""
        job = {"detector": detector, "settings": settings, "age": age, "series": [values.tolist() for values in series]}
        text = json.dumps(job)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = "_".join([detector, *(f"{key}={value:g}" for key, value in settings.items()), f"{age}_nights", digest])
        kept = self.folder / f"{name}.json"
        if again or not kept.exists():
            print(f"running {name}", file=sys.stderr)
            done = subprocess.run(
                [self._python(), PROGRAM], input=text, text=True, stdout=subprocess.PIPE, env=single_threaded()
            )
            if done.returncode:
                sys.exit(f"{PROGRAM.name} failed with {done.returncode}; what it said is above")
            new = kept.with_suffix(".new")
            new.write_text(done.stdout)
            new.replace(kept)
        answer = json.loads(kept.read_text())
        return [[(position, night) for position, night in one] for one in answer["points"]], answer["cpu_s"]

    def _python(self) -> Path:
        venv = self.folder / "venv"
        python, ready = venv / "bin" / "python", venv / ".installed"
        if not ready.exists():
            print(f"installing {', '.join(REQUIREMENTS)} into {venv} (once)", file=sys.stderr)
            self.folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
            ready.touch()
        return python


def single_threaded() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def reported_once(points: list[Point], near: int) -> list[Point]:
    """A change point that moves by a night or two from run to run is one change: reported when first seen."""
    reported: list[Point] = []
    for position, night in points:
        if all(abs(position - before) > near for before, _ in reported):
            reported.append((position, night))
    return reported
