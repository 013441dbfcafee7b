"""The hash of a model's code and of the code that it has in common with others; tests/torchbenchmark/test_registry.py
has what of a folder's own code moves it."""

import shutil
from pathlib import Path

import pytest

from torchbenchmark import registry
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.registry import Registry
from torchbenchmark.source_hash import source_hash

SHARED = {
    "families/layers.py": '"""Layers."""\n\nfrom torchbenchmark.families.weights import SCALE\n\nWIDTH = 3 * SCALE\n',
    "families/weights.py": "SCALE = 2\n",
    "families/other.py": "SIZE = 1\n",
    "models/base/__init__.py": "import torchbenchmark.families.other\n\nclass Model:\n    SIZE = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of shared code in place of this one's."""
    for name, source in SHARED.items():
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.setattr("torchbenchmark.source_hash.PACKAGE", tmp_path / "package")
    return tmp_path / "package"


def model(root: Path, source: str) -> Path:
    folder = root / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(source)
    return folder


@pytest.mark.parametrize(
    "source",
    [
        "from torchbenchmark.families.layers import WIDTH\n",
        "from torchbenchmark.families import other, layers\n",
        "import torchbenchmark.families.layers as wide\n",
        "def build():\n    from torchbenchmark.families.layers import WIDTH\n",
    ],
)
def test_a_change_of_shared_code_moves_the_models_that_import_it(tmp_path: Path, package: Path, source: str) -> None:
    folder = model(tmp_path, source)
    before = source_hash(folder)
    (package / "families" / "layers.py").write_text(SHARED["families/layers.py"].replace("3 *", "4 *"))
    assert source_hash(folder) != before


def test_shared_code_counts_that_is_imported_by_shared_code(tmp_path: Path, package: Path) -> None:
    folder = model(tmp_path, "from torchbenchmark.families.layers import WIDTH\n")
    before = source_hash(folder)
    (package / "families" / "weights.py").write_text("SCALE = 3\n")
    assert source_hash(folder) != before


@pytest.mark.parametrize(
    ("changed", "new"), [("models/base/__init__.py", "SIZE = 2"), ("families/other.py", "SIZE = 2")]
)
def test_a_model_that_builds_on_another_model_moves_with_it(
    tmp_path: Path, package: Path, changed: str, new: str
) -> None:
    folder = model(tmp_path, "from torchbenchmark.models.base import Model\n")
    before = source_hash(folder)
    (package / changed).write_text(SHARED[changed].replace("SIZE = 1", new))
    assert source_hash(folder) != before


def test_a_change_of_shared_code_that_a_model_does_not_import_leaves_it_alone(tmp_path: Path, package: Path) -> None:
    folder = model(tmp_path, "from torchbenchmark.families.layers import WIDTH\n")
    before = source_hash(folder)
    (package / "families" / "other.py").write_text("SIZE = 2\n")
    assert source_hash(folder) == before


def test_comments_and_docstrings_of_shared_code_do_not_count(tmp_path: Path, package: Path) -> None:
    folder = model(tmp_path, "from torchbenchmark.families.layers import WIDTH\n")
    before = source_hash(folder)
    documented = SHARED["families/layers.py"].replace("Layers.", "Layers of a width.") + "# six\n"
    (package / "families" / "layers.py").write_text(documented)
    assert source_hash(folder) == before


def test_shared_files_that_import_each_other_are_each_read_once(tmp_path: Path, package: Path) -> None:
    (package / "families" / "weights.py").write_text("import torchbenchmark.families.layers\n\nSCALE = 2\n")
    folder = model(tmp_path, "from torchbenchmark.families.layers import WIDTH\n")
    assert source_hash(folder) == source_hash(folder)


def test_shared_code_that_is_not_python_is_told_with_its_file(tmp_path: Path, package: Path) -> None:
    (package / "families" / "layers.py").write_text("WIDTH = (\n")
    with pytest.raises(BenchmarkError, match=rf"^{package}/families/layers\.py: not valid Python"):
        source_hash(model(tmp_path, "from torchbenchmark.families.layers import WIDTH\n"))


def test_a_change_of_the_residual_network_moves_the_built_in_models_that_are_made_of_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("families", "models"):
        shutil.copytree(registry.PACKAGE / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("torchbenchmark.source_hash.PACKAGE", tmp_path)
    monkeypatch.setattr("torchbenchmark.registry.BUILT_IN_MODELS", tmp_path / "models")
    before = {name: entry.source_hash for name, entry in Registry().models.items()}
    network = tmp_path / "families" / "residual_network.py"
    network.write_text(network.read_text().replace("kernel=7", "kernel=5"))
    moved = {name for name, entry in Registry().models.items() if entry.source_hash != before[name]}
    assert moved == {
        *("resnet18", "resnet50", "resnet50_quantized_qat", "resnext50_32x4d"),
        *("moco", "opacus_cifar10"),
    }
