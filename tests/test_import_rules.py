"""The two halves stay apart: the driver never imports torch or a model library, the worker nothing that the driver
brings (DESIGN 4). The contracts in pyproject.toml read the sources; here the imports are really done."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODEL_LIBRARIES = ("torch", "timm", "transformers", "torchvision")
DRIVER_LIBRARIES = ("pydantic", "yaml", "typer", "rich", "jinja2", "boto3", "github", "requests")
DRIVER_PACKAGES = ("torchbenchmark", "score", "baselines", "regression_detector", "bot")
WORKER_HALF = (
    "torchbenchmark.worker",
    "torchbenchmark.contracts",
    "torchbenchmark.model",
    "torchbenchmark.models",
    "torchbenchmark.families",
    "torchbenchmark.torchvision_guard",
)
WORKER_PACKAGES = (
    "torchbenchmark.worker",
    "torchbenchmark.contracts",
    "torchbenchmark.model",
    "torchbenchmark.channels",
)
DRIVER_MODULES = {
    *("bot", "bot.cli", "score", "score.cli", "baselines", "baselines.cli", "regression_detector", "torchbenchmark"),
    *(f"torchbenchmark.{name}" for name in ("cli", "records", "experiment", "registry", "runner", "formats")),
}

MODULES_BELOW = """
import importlib, importlib.util, json, pkgutil, sys
from importlib.machinery import PathFinder

def modules_below(name, path=None):
    '''`name` and all modules inside of it, found without importing any.'''
    yield name
    spec = PathFinder.find_spec(name, path)
    for module in pkgutil.iter_modules(spec.submodule_search_locations or [], f"{name}."):
        if not module.name.endswith(".__main__") and not module.name.startswith(leave_out):
            yield from modules_below(module.name, spec.submodule_search_locations)
"""
IMPORT_DRIVER = f"""
leave_out = tuple(json.loads(sys.argv[2]))
imported = []
for package in json.loads(sys.argv[1]):
    for name in modules_below(package):
        importlib.import_module(name)
        loaded = [library for library in {MODEL_LIBRARIES} if library in sys.modules]
        if loaded:
            sys.exit(f"{{name}} imports {{', '.join(loaded)}}")
        imported.append(name)
print(json.dumps(imported))
"""
IMPORT_WORKER = f"""
leave_out = ()

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {DRIVER_LIBRARIES}:
            raise ModuleNotFoundError(f"{{name}} is not there for the worker", name=name)

sys.meta_path.insert(0, Refusing())
import torchbenchmark
imported = []
for package in json.loads(sys.argv[1]):
    for name in modules_below(package, torchbenchmark.__path__):
        importlib.import_module(name)
        imported.append(name)
print(json.dumps(imported))
"""


def imported_by(script: str, *arguments: object) -> list[str]:
    """The modules that the script says it has imported, in a process of its own."""
    command = [sys.executable, "-c", "import json, sys\n" + MODULES_BELOW + script, *map(json.dumps, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_no_module_of_the_driver_imports_torch_or_a_model_library() -> None:
    imported = imported_by(IMPORT_DRIVER, DRIVER_PACKAGES, WORKER_HALF)
    assert set(imported) >= DRIVER_MODULES
    assert not [name for name in imported if name.startswith(WORKER_HALF)]


def test_the_worker_half_imports_where_nothing_is_installed_but_torch_and_numpy() -> None:
    pytest.importorskip("torch", reason="the worker half runs in the interpreter of a build")
    imported = imported_by(IMPORT_WORKER, WORKER_PACKAGES)
    assert {*WORKER_PACKAGES, "torchbenchmark.worker.zygote", "torchbenchmark.worker.channels.timers"} <= set(imported)


def test_the_import_contracts_hold() -> None:
    lint_imports = shutil.which("lint-imports", path=Path(sys.executable).parent) or shutil.which("lint-imports")
    if lint_imports is None:
        pytest.skip("import-linter is not installed")
    answer = subprocess.run([lint_imports, "--no-cache"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
