"""A pinned build in a folder: whole, or made anew; never in a folder that is not ours."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest
from package_index import serve

from torchbenchmark.builds import installation
from torchbenchmark.builds.installation import install, installed_pin, provide_tonight
from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.builds.target import target_of_version
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.errors import BenchmarkError

ROOT = Path(__file__).resolve().parents[3]
TODAY = date(2026, 11, 28)
TORCH = "2.14.0.dev20261127+cu130"


@pytest.fixture
def own_index(index, monkeypatch):
    with serve() as served:
        monkeypatch.setenv("PIP_INDEX_URL", served.address)
        yield served


def configured(index, **keys) -> NightlyBuild:
    return NightlyBuild(index=index.address, extra_index=index.address, **keys)


def pinned(index, **keys):
    return resolve(configured(index, **keys), today=TODAY)


def held(interpreter: Path) -> dict[str, str]:
    return inspect_interpreter(interpreter).distributions


def test_a_build_is_installed_as_pinned_whatever_else_the_indexes_have(index, own_index, tmp_path, monkeypatch):
    """`index` has the nightlies, `own_index` is the one that pip is configured to use: its torch is newer."""
    # Settings of pip and Python that lead elsewhere are not followed.
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    index.add("torch", TORCH, requires=("numpy", "filelock", "torchtriton==3.9.0+git1"))
    index.add("torch", "2.15.0.dev20261128+cu130")
    own_index.add("torch", "99.0")
    own_index.add("torchvision", "99.0")
    index.add("torchvision", "0.29.0.dev20261127+cu130", requires=("torch",))
    index.add("torchtriton", "3.9.0+git1")
    own_index.add("filelock", "3.0")
    own_index.add("filelock", "4.0.dev1")
    own_index.add("timm", "1.0.30", requires=("torchvision",))
    own_index.add("timm", "1.0.31")
    packages = ["torch", "torchvision"]
    build = NightlyBuild(index=index.address, packages=packages, date="2026-11-27", requirements=["timm==1.0.30"])
    pin = resolve(build, today=TODAY)
    interpreter = install(pin, tmp_path / "build")
    assert interpreter == tmp_path / "build" / "bin" / "python"
    distributions = held(interpreter)
    assert {name: distributions.get(name) for name in ("torch", "torchvision", "torchtriton", "filelock", "timm")} == {
        "torch": TORCH,
        "torchvision": "0.29.0.dev20261127+cu130",
        "torchtriton": "3.9.0+git1",
        "filelock": "3.0",
        "timm": "1.0.30",
    }
    assert inspect_interpreter(interpreter).build.version == TORCH
    assert not list((tmp_path / "build").rglob("__pycache__/timm*")), "bytecode of what nobody imports"
    assert not (tmp_path / "elsewhere").exists()
    whole = json.loads((tmp_path / "build" / "build.json").read_text())
    assert whole["distributions"]["torch"] == {
        "version": TORCH,
        "file": pin.subject.file,
        "sha256": pin.subject.sha256,
        "source": index.address,
    }
    assert whole["distributions"]["filelock"]["source"] == own_index.address
    assert installed_pin(tmp_path / "build") == pin
    assert not (tmp_path / "build" / "pip-report.json").exists()

    # What is whole is used again, without asking the index.
    index.asked.clear()
    assert install(pin, tmp_path / "build") == interpreter
    assert index.asked == []

    # Damaged later, it is made anew.
    (package,) = (tmp_path / "build").rglob("site-packages/torch")
    (package / "__init__.py").write_text("raise ImportError('damaged')\n")
    install(pin, tmp_path / "build")
    assert held(interpreter)["torch"] == TORCH


def test_another_pin_replaces_a_build_and_a_resumed_night_keeps_its_own(quick, index, tmp_path):
    folder = tmp_path / "build"
    index.add("torch", "2.14.0.dev20261126+cu130")
    build = configured(index)
    interpreter = provide_tonight(build, folder, resuming=False, today=TODAY)
    index.add("torch", TORCH)
    leftover = folder / "leftover"
    leftover.touch()
    index.asked.clear()
    provide_tonight(build, folder, resuming=True, today=TODAY)
    assert held(interpreter)["torch"] == "2.14.0.dev20261126+cu130"
    assert index.asked == [] and leftover.exists()

    provide_tonight(build, folder, resuming=False, today=TODAY)
    assert held(interpreter)["torch"] == TORCH
    assert not leftover.exists()

    # A configuration that has changed since is not met by what is installed.
    with pytest.raises(BenchmarkError, match="has no wheel of torch of 2026-11-25"):
        provide_tonight(configured(index, date="2026-11-25"), folder, resuming=True, today=TODAY)


def test_an_installation_that_is_broken_off_is_not_taken_for_a_whole_one(quick, index, tmp_path, monkeypatch):
    index.add("torch", TORCH)
    pin = pinned(index)

    def broken_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installation, "_verify", broken_off)
        with pytest.raises(KeyboardInterrupt):
            install(pin, tmp_path / "build")
    assert held(tmp_path / "build" / "bin" / "python")["torch"] == TORCH
    assert installed_pin(tmp_path / "build") is None
    leftover = tmp_path / "build" / "leftover"
    leftover.touch()
    assert held(install(pin, tmp_path / "build"))["torch"] == TORCH
    assert not leftover.exists()
    assert installed_pin(tmp_path / "build") == pin


def test_a_build_that_is_only_half_removed_is_not_whole(quick, index, tmp_path, monkeypatch):
    index.add("torch", TORCH)
    pin = pinned(index)
    interpreter = install(pin, tmp_path / "build")
    next(interpreter.parents[1].rglob("site-packages/torch/version.py")).unlink()

    def broken_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", broken_off)
        patch.setattr(Path, "iterdir", lambda folder: iter([folder / "lib"]))
        with pytest.raises(KeyboardInterrupt):
            install(pin, tmp_path / "build")
    assert installed_pin(tmp_path / "build") is None
    assert held(install(pin, tmp_path / "build"))["torch"] == TORCH


def test_a_pip_that_outlives_its_killed_driver_keeps_the_next_one_out(quick, index, tmp_path):
    """SIGKILL cannot be handled: what goes on writing holds the lock until it ends."""
    index.add("torch", TORCH)
    pin = pinned(index)
    (tmp_path / "pin.json").write_text(pin.model_dump_json())
    script = f"""
import sys
from pathlib import Path
from torchbenchmark.builds import installation
from torchbenchmark.builds.pinned import PinnedBuild
folder, run = Path({str(tmp_path / "build")!r}), installation._run
def slow(command, *rest):
    run([sys.executable, "-c", "import time; time.sleep(60)"], *rest)
installation._run = slow
installation.install(PinnedBuild.model_validate_json(Path({str(tmp_path / "pin.json")!r}).read_bytes()), folder)
"""
    driver = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)})
    children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    deadline = time.monotonic() + 60
    orphan = None
    while orphan is None:
        assert time.monotonic() < deadline and driver.poll() is None
        for child in children.read_text().split():
            if b"time.sleep(60)" in Path(f"/proc/{child}/cmdline").read_bytes():
                orphan = int(child)
        time.sleep(0.05)
    try:
        driver.kill()
        driver.wait()
        with pytest.raises(BenchmarkError, match="another installation is running there"):
            install(pin, tmp_path / "build")
    finally:
        os.kill(orphan, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while True:
        try:
            assert held(install(pin, tmp_path / "build"))["torch"] == TORCH
            return
        except BenchmarkError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_folder_that_holds_something_of_others_is_refused_and_left_alone(index, tmp_path):
    index.add("torch", TORCH)
    pin = pinned(index)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("1")
    with pytest.raises(BenchmarkError, match="thesis: is not empty and no build of torchbench"):
        install(pin, tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter"]
    with pytest.raises(BenchmarkError, match="chapter: cannot be made ready"):
        install(pin, tmp_path / "thesis" / "chapter")


def test_what_pip_cannot_install_is_one_error_with_the_end_of_its_log_which_stays(quick, index, tmp_path):
    index.add("torch", TORCH, requires=("absent-dependency==1.0",))
    with pytest.raises(BenchmarkError) as error:
        install(pinned(index), tmp_path / "build")
    said = str(error.value)
    assert said.startswith(f"{tmp_path}/build/install.log: pip could not install the build (exit 1): ERROR:")
    assert "absent-dependency==1.0" in said and "\n" not in said
    assert "absent-dependency" in (tmp_path / "build" / "install.log").read_text()
    assert installed_pin(tmp_path / "build") is None


def test_a_wheel_that_another_index_puts_in_the_place_of_the_subject_never_runs(quick, index, tmp_path):
    """The same version with another content, from an index that pip is configured to use."""
    index.add("torch", TORCH, sha256="0" * 64)
    pin = pinned(index)
    evil = index.add("torch", TORCH, files={"torch/__init__.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n"})
    index.packages["torch"] = [evil]
    with pytest.raises(
        BenchmarkError, match=rf"pip took torch-.*{evil.told_sha256}.*not the wheel that {index.address}"
    ):
        install(pin, tmp_path / "build")
    assert installed_pin(tmp_path / "build") is None
    assert not (tmp_path / "ran").exists()


def test_a_build_whose_subject_cannot_be_imported_is_not_whole(quick, index, tmp_path):
    index.add("torch", TORCH)
    index.add("torchao", "0.15.0.dev20261127", files={"torchao/__init__.py": "raise ImportError('no kernels')\n"})
    with pytest.raises(BenchmarkError, match=r"torchao cannot be imported there \(ImportError: no kernels\)"):
        install(pinned(index, packages=["torchao", "torch"]), tmp_path / "build")
    assert installed_pin(tmp_path / "build") is None


def test_a_build_without_numpy_cannot_measure_and_is_not_whole(quick, index, tmp_path):
    index.add("torch", TORCH, requires=())
    with pytest.raises(BenchmarkError, match=r"has no numpy, which measuring needs.*add it to `build\.requirements`"):
        install(pinned(index), tmp_path / "build")
    assert installed_pin(tmp_path / "build") is None


def test_an_interpreter_that_the_wheels_do_not_fit_is_refused_before_anything_is_made(index, tmp_path):
    index.add("torch", TORCH, "cp312-cp312-manylinux_2_17_x86_64")
    pin = resolve(configured(index), target_of_version("3.12"), TODAY)
    with pytest.raises(
        BenchmarkError, match=r"is Python 3\.\d+ .*pinned to torch-.*-cp312-.*; name another interpreter"
    ):
        install(pin.model_copy(update={"python": "3.99"}), tmp_path / "build", Path(sys.executable))
    with pytest.raises(BenchmarkError, match=r"pinned for Python 3\.99, .* the PATH has no python3\.99; name one"):
        install(pin.model_copy(update={"python": "3.99"}), tmp_path / "build")
    assert not (tmp_path / "build" / "bin").exists()
