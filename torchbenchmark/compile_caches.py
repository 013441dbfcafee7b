"""The compilers' caches of a run: a folder for each test of its build, and which process may read what.

The first process of a test compiles cold, into an empty folder. The next one fills the folder with the compiled graphs,
which the cold one may neither read nor write; those after it are warm. No folder outlives the run, so nothing is ever
shared between builds or runs.
"""

import hashlib
import shutil
from pathlib import Path

from torchbenchmark.experiment import Experiment


class CompileCaches:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._filled: set[str] = set()

    def turn(self, experiment: Experiment, number: int, index: int = 0) -> dict[str, str] | None:
        """What process `index` of round `number` is told: {"mode", "folder"}; None for a test that compiles nothing.

        Processes of one round may run beside each other on several GPUs, so each cold one has a folder to itself.
        """
        if experiment.backend == "eager":
            return None
        folder = self._folder(experiment)
        if number == 1:
            if index > 0:
                folder = folder.with_name(f"{folder.name}-{index}")
            shutil.rmtree(folder, ignore_errors=True)
            return {"mode": "cold", "folder": str(folder)}
        return {"mode": "warm" if experiment.id in self._filled else "fill", "folder": str(folder)}

    def ended(self, experiment: Experiment, number: int) -> None:
        """A process of round `number` ended well: unless it was a cold one, the folder holds all its graphs."""
        if number > 1:
            self._filled.add(experiment.id)

    def forget(self, experiment: Experiment) -> None:
        """The test is decided: its folders may have hundreds of megabytes."""
        folder = self._folder(experiment)
        for one in (folder, *folder.parent.glob(f"{folder.name}-*")):
            shutil.rmtree(one, ignore_errors=True)

    def _folder(self, experiment: Experiment) -> Path:
        # Short: compilers make long paths below it, and some put a socket there.
        return self.scratch / "caches" / hashlib.sha256(experiment.id.encode()).hexdigest()[:12]
