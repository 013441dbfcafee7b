"""`torchbench install`: what it says of interpreters, and what pip does when it may. The interpreters are empty virtual
environments with a small package of the name torch, and pip has a folder of tiny wheels instead of an index."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from package_index import tiny_torch, wheel

from torchbenchmark import install as command
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.install import Interpreter, check, import_problems, look_at, pip_command, torchvision_mismatches
from torchbenchmark.isolation import ModelSource
from torchbenchmark.registry import ModelEntry, Registry
from torchbenchmark.terminal import EXIT_BROKEN, EXIT_CLEAN

# Models, builds and wheels to try it on


def add_model(folder: Path, name: str, source: str = "", **metadata: str) -> ModelEntry:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(source)
    fields = {"description": "A.", "category": "B", "domain": "C", "workload_version": '"1"', **metadata}
    (folder / name / "metadata.yaml").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    return ModelEntry(folder / name)


def make_build(folder: Path, *, pth: str = "", **distributions: str) -> Path:
    """An interpreter that holds these distributions, as far as their metadata says, and a small torch."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python = folder / "bin" / "python"
    packages = site_packages(python)
    for name, version in distributions.items():
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
    if "torch" in distributions:
        (packages / "torch").mkdir()
        for path, text in tiny_torch(distributions["torch"]).items():
            (packages / path).write_text(text)
    if pth:
        (packages / "overlay.pth").write_text(pth)
    return python


def site_packages(python: Path) -> Path:
    return python.parents[1] / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def add_wheel(folder: Path, name: str, version: str, *requires: str) -> None:
    content = wheel(name, version, "py3-none-any", {f"{name}.py": ""}, requires)
    (folder / f"{name}-{version}-py3-none-any.whl").write_bytes(content)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip takes wheels from, and from nowhere else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in (("CONFIG_FILE", os.devnull), ("NO_INDEX", "1"), ("FIND_LINKS", str(folder))):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


@pytest.fixture
def every_import_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "import_problems", lambda python, models: {})


@pytest.fixture
def torchbench_install(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command with the models of the test's folder; its exit code, and what it and pip said."""

    def run(python: Path, *names: str, **options: Any) -> tuple[int, str]:
        code = command.install(list(names), python=python, models=[tmp_path / "models"], **options)
        return code, capfd.readouterr().out

    return run


def row(output: str, model: str) -> str:
    (line,) = [line for line in output.splitlines() if model in line.split()]
    return " ".join(line.replace("│", " ").split()[1:])


def version_in(python: Path, name: str) -> str | None:
    return look_at(python, "torch").distributions.get(name)


# What is said


@pytest.mark.usefixtures("every_import_works")
def test_the_default_says_what_is_missing_and_the_command_for_it_and_installs_nothing(
    tmp_path: Path, wheels: Path, torchbench_install
) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent, outdated>=2]")
    add_model(tmp_path / "models", "plain")
    add_wheel(wheels, "absent", "1.0")
    add_wheel(wheels, "outdated", "2.0")
    python = make_build(tmp_path / "build", torch="9.9", numpy="2.4", outdated="1.5")
    code, output = torchbench_install(python, "needy", "plain")
    assert code == EXIT_BROKEN
    assert row(output, "needy") == "no needs absent (not installed); needs outdated>=2 (1.5 is installed)"
    assert row(output, "plain") == "on cpu"
    assert f"-m pip --python {python} install absent 'outdated>=2' torch==9.9\n" in output
    assert version_in(python, "absent") is None


@pytest.mark.usefixtures("every_import_works")
def test_without_names_one_model_that_can_run_is_enough_and_none_is_not(tmp_path: Path, torchbench_install) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent]")
    code, output = torchbench_install(make_build(tmp_path / "some", torch="9.9", numpy="2.4"))
    assert code == EXIT_CLEAN
    assert row(output, "resnet18") == "on cpu"
    assert row(output, "needy") == "no needs absent (not installed)"
    code, output = torchbench_install(make_build(tmp_path / "none"))
    assert code == EXIT_BROKEN
    assert row(output, "resnet18") == "no needs torch (not installed); needs numpy (not installed)"
    assert f"0 of {len(Registry().models) + 1} can run" in output


def test_unknown_models_are_an_error_that_lists_the_known_ones(tmp_path: Path, torchbench_install) -> None:
    add_model(tmp_path / "models", "mine")
    with pytest.raises(BenchmarkError, match=r"unknown model yours, theirs; known: BERT_pytorch, .*, mine$"):
        torchbench_install(Path(sys.executable), "yours", "mine", "theirs")


def test_an_interpreter_that_is_none_is_an_error(tmp_path: Path, torchbench_install) -> None:
    (tmp_path / "models").mkdir()
    with pytest.raises(BenchmarkError, match="no-such-python: not a usable interpreter"):
        torchbench_install(tmp_path / "no-such-python")


@pytest.mark.usefixtures("every_import_works")
def test_a_torch_that_does_not_import_is_told_and_nothing_is_installed_for_it(
    tmp_path: Path, wheels: Path, torchbench_install
) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent]")
    python = make_build(tmp_path / "build", torch="9.9", numpy="2.4")
    (site_packages(python) / "torch" / "__init__.py").write_text("raise ImportError('libcudart.so is missing')")
    code, output = torchbench_install(python, "needy", yes=True)
    assert code == EXIT_BROKEN
    assert "torch does not import: ImportError: libcudart.so is missing" in row(output, "needy")
    assert "pip" not in output


def held(**changes: Any) -> Interpreter:
    fields: dict[str, Any] = {
        "python": Path("/b/python"),
        "distributions": {"pip": "26.3", "torch": "2.13.0+cpu", "numpy": "2.4"},
        "has_gpu": False,
        "torch_problem": "",
        "kept": ("torch", "torchvision", "torchaudio", "torch"),
    }
    return Interpreter(**(fields | changes))


@pytest.mark.usefixtures("every_import_works")
def test_a_model_for_cuda_alone_cannot_run_without_a_gpu_and_installing_would_not_help(tmp_path: Path) -> None:
    model = add_model(tmp_path, "fast", devices="[cuda]", requires="[absent]")
    (found,) = check([model], held())
    assert found.problems == (
        "needs absent (not installed)",
        "runs on cuda only, and torch sees no CUDA device",
    )
    assert pip_command(held(), [found]) == []
    (found,) = check([model], held(has_gpu=True))
    assert (found.problems, found.devices) == (("needs absent (not installed)",), ("cuda",))


@pytest.mark.usefixtures("every_import_works")
def test_a_build_that_is_too_old_for_a_model_is_not_exchanged(tmp_path: Path) -> None:
    model = add_model(tmp_path, "modern", requires="[torch>=2.14, 'timm>=2', absent]")
    holding = held(distributions={**held().distributions, "timm": "1.0"}, kept=("torch", "timm"))
    (found,) = check([model], holding)
    assert found.problems[0] == (
        "needs torch>=2.14 (2.13.0+cpu is installed), which is part of the build and stays: measure another"
    )
    assert found.problems[1].startswith("needs timm>=2 (1.0 is installed), which is part of the build")
    assert pip_command(holding, [found]) == []


# The command


def command_for(interpreter: Interpreter, folder: Path, *requires: str) -> str:
    models = [add_model(folder, f"model{index}", requires=f"[{one}]") for index, one in enumerate(requires)]
    return " ".join(pip_command(interpreter, [command._needs(model, interpreter) for model in models]))


def make_clone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "constraints.txt").write_text(
        "# tested\ntorch==2.13.0\ntorchvision==0.28.0\nTimm==1.0.31 # so\nother>=1\n"
    )
    monkeypatch.setattr(command.environment, "PACKAGE", folder / "torchbenchmark")


def test_the_command_asks_for_the_versions_that_the_clone_is_tested_with(tmp_path: Path, monkeypatch) -> None:
    make_clone(tmp_path / "clone", monkeypatch)
    line = command_for(held(), tmp_path / "models", "'timm>=1.0', torchvision", "timm, other")
    assert line == "/b/python -m pip install other timm==1.0.31 torchvision==0.28.0 torch==2.13.0+cpu"


def test_the_command_leaves_the_match_to_pip_where_the_build_is_of_another_torch(tmp_path: Path, monkeypatch) -> None:
    make_clone(tmp_path / "clone", monkeypatch)
    nightly = held(distributions={"pip": "26.3", "numpy": "2.4", "torch": "2.14.0.dev20261127"})
    line = command_for(nightly, tmp_path / "models", "timm, torchvision")
    assert line == "/b/python -m pip install timm==1.0.31 torchvision torch==2.14.0.dev20261127"


def test_a_tested_version_that_a_model_cannot_use_is_not_asked_for(tmp_path: Path, monkeypatch) -> None:
    make_clone(tmp_path / "clone", monkeypatch)
    line = command_for(held(), tmp_path / "models", "timm>=1.0", "timm>=2")
    assert line == "/b/python -m pip install timm>=1.0,>=2 torch==2.13.0+cpu"


def test_without_a_clone_around_it_the_command_asks_for_no_tested_version(tmp_path: Path, monkeypatch) -> None:
    make_clone(tmp_path / "clone", monkeypatch)
    (tmp_path / "clone" / "pyproject.toml").unlink()
    assert command_for(held(), tmp_path / "models", "timm") == "/b/python -m pip install timm torch==2.13.0+cpu"


def test_where_no_pip_is_to_be_had_the_error_says_how_to_get_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    bare = held(distributions={"torch": "2.13.0", "numpy": "2.4"})
    with pytest.raises(BenchmarkError, match=r"/b/python: has no pip .* -m ensurepip"):
        command_for(bare, tmp_path / "models", "timm")


# With --yes


@pytest.mark.usefixtures("every_import_works")
def test_yes_brings_what_is_missing_and_leaves_torch_as_it_is(tmp_path: Path, wheels: Path, torchbench_install) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent, outdated>=2]")
    for name, version, *requires in (
        ("absent", "1.0", "torch>=9"),
        ("outdated", "1.5"),
        ("outdated", "2.5"),
        ("torch", "10.0"),
    ):
        add_wheel(wheels, name, version, *requires)
    python = make_build(tmp_path / "build", torch="9.9", numpy="2.4", outdated="1.5")
    code, output = torchbench_install(python, "needy", yes=True)
    assert code == EXIT_CLEAN, output
    assert row(output, "needy") == "on cpu"
    assert {name: version_in(python, name) for name in ("absent", "outdated", "torch")} == {
        "absent": "1.0",
        "outdated": "2.5",
        "torch": "9.9",
    }


@pytest.mark.usefixtures("every_import_works")
@pytest.mark.parametrize("subject", ["torch", "tuned"])
def test_what_would_exchange_the_build_is_not_installed(
    subject: str, tmp_path: Path, wheels: Path, torchbench_install
) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent]")
    add_wheel(wheels, "absent", "1.0", f"{subject}>=10")
    add_wheel(wheels, subject, "10.0")
    python = make_build(tmp_path / "build", **{"torch": "9.9", "numpy": "2.4", subject: "9.9"})
    code, output = torchbench_install(python, "needy", yes=True, subject=subject)
    assert code == EXIT_BROKEN
    assert "pip could not install it (exit 1)" in output
    assert row(output, "needy") == "no needs absent (not installed)"
    assert version_in(python, subject) == "9.9"


@pytest.mark.usefixtures("every_import_works")
def test_a_failed_installation_is_broken_although_other_models_can_run(
    tmp_path: Path, wheels: Path, torchbench_install
) -> None:
    add_model(tmp_path / "models", "needy", requires="[absent]")
    for name in ("timm", "torchvision", "transformers"):
        add_wheel(wheels, name, "99")
    python = make_build(tmp_path / "build", torch="9.9", numpy="2.4")
    code, output = torchbench_install(python, yes=True)
    assert code == EXIT_BROKEN
    assert row(output, "resnet18") == "on cpu"


# Imports in a real build


@pytest.fixture(scope="module")
def real_build() -> Path:
    pytest.importorskip("torch", reason="models are imported into a build")
    return Path(sys.executable)


def test_a_model_whose_import_fails_or_kills_harms_no_other(tmp_path: Path, real_build: Path) -> None:
    sources = {
        "a_fine": "import torch",
        "b_deadly": "import os; os._exit(7)",
        "c_undeclared": "import no_such_package",
        "d_leaving": "raise SystemExit('not today')",
        "e_fine": "",
    }
    models = [ModelSource(name, add_model(tmp_path, name, source).folder) for name, source in sources.items()]
    problems = import_problems(real_build, models)
    assert set(problems) == {"b_deadly", "c_undeclared", "d_leaving"}
    assert "exit code 7" in problems["b_deadly"]
    assert problems["c_undeclared"] == "ModuleNotFoundError: No module named 'no_such_package'"
    assert problems["d_leaving"] == "SystemExit: not today"


def overlay(folder: Path, torchvision: str) -> Path:
    """The real build with another torchvision before its own."""
    python = make_build(folder, pth=sysconfig.get_path("purelib"), torchvision="0.1")
    (site_packages(python) / "torchvision").mkdir()
    (site_packages(python) / "torchvision" / "__init__.py").write_text(torchvision)
    return python


@pytest.mark.usefixtures("real_build")
def test_a_torchvision_that_does_not_match_is_told_and_keeps_no_classifier_from_running(tmp_path: Path) -> None:
    python = overlay(
        tmp_path / "build", "import torch\ntorch.library.register_fake('torchvision::nms')(lambda: None)\n"
    )
    add_model(tmp_path / "models", "classifier", "import torchbenchmark.torchvision_guard as guard\n"
              "guard.ensure_torchvision_importable()\nimport torchvision", requires="[torchvision]")  # fmt: skip
    options = ["--models", tmp_path / "models", "--python", python]
    done = subprocess.run(
        [sys.executable, "-m", "torchbenchmark", "install", "classifier", "resnet18", *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == EXIT_CLEAN, done.stdout + done.stderr
    assert "torchvision 0.1 does not match torch" in row(done.stdout, "classifier")
    assert row(done.stdout, "resnet18").startswith("on cpu")
    assert "match" not in row(done.stdout, "resnet18")


@pytest.mark.usefixtures("real_build")
def test_a_torchvision_that_imports_or_fails_otherwise_is_no_mismatch(tmp_path: Path) -> None:
    assert not torchvision_mismatches(overlay(tmp_path / "fine", ""))
    assert not torchvision_mismatches(overlay(tmp_path / "broken", "raise RuntimeError('libcudart is missing')"))
