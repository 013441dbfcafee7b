"""The provider `venv`: an interpreter that holds the build already, or the folder of its virtual environment."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from torchbenchmark.builds.build_errors import BuildNotFound
from torchbenchmark.builds.provider import Request


@dataclass(frozen=True)
class VenvAddress:
    """`venv:PATH`. Never in the cache: whoever made it may change it."""

    provider: ClassVar[str] = "venv"
    path: str

    @classmethod
    def parse(cls, what: str) -> Self:
        if not what:
            raise ValueError("names no path")
        return cls(what)

    def __str__(self) -> str:
        return f"{self.provider}:{self.path}"

    def exact(self, request: Request) -> Self:
        return type(self)(str(self.source(request)))

    def source(self, request: Request) -> Path:
        path = Path(self.path).expanduser()
        if "/" not in self.path and not path.exists():
            path = Path(shutil.which(self.path) or path)  # a command on the PATH: python3.12
        path = path.absolute()  # not resolved: the link is what makes a virtual environment
        if path.is_dir():
            if not (path / "bin" / "python").exists():
                raise BuildNotFound(f"{path}: has no bin/python; name a virtual environment or an interpreter")
            return path / "bin" / "python"
        if not path.exists():
            raise BuildNotFound(f"{path}: is not there; name an interpreter or the folder of a virtual environment")
        return path
