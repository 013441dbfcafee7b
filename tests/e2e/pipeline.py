"""What the pipeline tests share: the command line, suites of the misbehaving models, and who is still alive."""

import contextlib
import sys
from pathlib import Path

MISBEHAVING_MODELS = Path(__file__).parents[1] / "misbehaving_models"


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bot", *map(str, arguments)]


def processes_with_variable(name: str, value: str) -> list[int]:
    """Living processes that were started with this environment variable."""
    wanted = f"{name}={value}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                alive = "\nState:\tZ" not in (entry / "status").read_text()
                if alive and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def write_suite(folder: Path, models: list[str], tests: str = "[eval]") -> Path:
    """A suite file over models at their tiny preset: inferences, as a training imports a compiler too."""
    path = folder / "suite.yaml"
    path.write_text(
        f"name: trial\ndescription: For a test.\nmodels: [{', '.join(models)}]\ntests: {tests}\npreset: tiny\n"
    )
    return path
