"""Environments of versions or dates, for a measuring command: each has the build in it, and its `python` is the first
on the command's PATH."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from bot.bisection.document import Made
from bot.bisection.provided import Provided
from torchbenchmark.builds.settings import GitSettings, build_variables


@dataclass(frozen=True)
class Environments:
    """As `Worktrees` are of commits. The command runs in one folder, whichever version is measured."""

    builds: Provided
    folder: Path  # where the command runs
    there: set[str] = field(default_factory=set)

    def source(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def is_there(self, name: str) -> bool:
        return name in self.there

    def build(self, name: str) -> Made:
        made = self.builds.made(name)
        if made.ok:
            self.there.add(name)
        return made

    def variables(self, name: str) -> dict[str, str]:
        """Of the measuring command: this process's, without what looks like a secret, and which build it is."""
        interpreter = self.builds.build(name).interpreter
        ours = build_variables(GitSettings())
        named = {
            "PYTHON": str(interpreter),
            self.builds.range.noun.upper(): name,
            "ADDRESS": self.builds.range.address(name),
        }
        return {
            **ours,
            "PATH": f"{interpreter.parent}{os.pathsep}{ours.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(interpreter.parent.parent),
            **{f"TORCHBENCH_BUILD_{key}": text for key, text in named.items()},
        }
