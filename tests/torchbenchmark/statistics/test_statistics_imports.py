"""The package keeps to itself: numpy, scipy.special and the standard library; and nobody mistakes it for the
latter's."""

import ast
import json
import pkgutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import torchbenchmark.statistics

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "torchbenchmark" / "statistics"
ALLOWED = {"numpy", "numpy.typing", "scipy"}
CONTRACT = "statistics imports numpy, scipy and nothing of the project"


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: a relative import"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_a_file_imports_numpy_scipy_the_standard_library_and_its_neighbours_only(path):
    others = {name for name in imported(path) if not name.startswith("torchbenchmark.statistics.")}
    assert {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names} <= ALLOWED


def test_the_contract_names_every_other_part_of_torchbenchmark():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    forbidden = next(contract["forbidden_modules"] for contract in contracts if contract["name"] == CONTRACT)
    parts = {module.name for module in pkgutil.iter_modules(torchbenchmark.__path__, "torchbenchmark.")}
    assert parts - {"torchbenchmark.statistics", "torchbenchmark.__main__"} <= set(forbidden)


def printed(script: str, *options: str) -> dict:
    command = [sys.executable, *options, "-c", "import json, sys\n" + script]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_no_command_imports_scipy_before_it_needs_it():
    loaded = printed(
        "from bot.cli import OWNERS, joined\njoined(list(OWNERS))\nprint(json.dumps({'scipy': 'scipy' in sys.modules}))"
    )
    assert loaded == {"scipy": False}


def test_the_standard_librarys_statistics_stays_what_it_is_in_driver_worker_and_tests():
    worker = ROOT / "torchbenchmark" / "worker"
    for folder in (ROOT, worker):  # the first on sys.path of `python -m torchbenchmark` and of the zygote
        found = printed(
            f"sys.path.insert(0, {str(folder)!r})\nimport statistics, torchbenchmark.statistics\n"
            "print(json.dumps([statistics.__name__, hasattr(statistics, 'median')]))"
        )
        assert found == ["statistics", True]
    assert hasattr(statistics, "median")
    assert str(ROOT / "torchbenchmark") not in sys.path


def test_the_worker_run_by_path_puts_no_folder_of_the_package_on_its_path():
    found = printed(
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('zygote', {str(PACKAGE.parent / 'worker' / 'zygote.py')!r})\n"
        "zygote = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(zygote)\n"
        "sys.path[:] = [entry for entry in sys.path if entry and 'torchbenchmark' not in entry]\n"
        "before = list(sys.path)\nzygote.load_harness()\nimport torchbenchmark.channels, statistics\n"
        "print(json.dumps([before == sys.path, 'torchbenchmark' in statistics.__file__]))"
    )
    assert found == [True, False]
