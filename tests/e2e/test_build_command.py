"""`torchbench build ADDRESS` and `torchbench builds`: a build by its address, and what the cache says of it."""

import subprocess
from pathlib import Path

import pytest
import yaml
from package_index import keep_pip_offline, serve


@pytest.fixture
def index(monkeypatch, tmp_path_factory, tmp_path):
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "cache"))
    with serve() as served:
        yield served


def configure(folder: Path, index, **keys) -> None:
    builds = {"index": index.address, "requirements": ["numpy==2.4.6"], **keys}
    (folder / "nightly.yaml").write_text(yaml.safe_dump({"suite": "smoke", "builds": builds}))


def test_a_build_is_made_by_its_address_listed_and_forgotten(torchbench, tmp_path, index):
    index.add("torch", "2.12.0")
    configure(tmp_path, index)
    built = torchbench("build", "2.12.0", "--config", "nightly.yaml")
    assert built.returncode == 0, built.stderr
    *_, said, interpreter = built.stdout.splitlines()
    assert said == "build release:torch==2.12.0"
    subprocess.run([interpreter, "-c", "import torch; assert torch.__version__ == '2.12.0'"], check=True)
    assert Path(interpreter).is_relative_to(tmp_path / "cache")

    listed = torchbench("builds", "list")
    assert listed.returncode == 0, listed.stderr
    (environment,) = [line for line in listed.stdout.splitlines() if " environment " in line]
    (wheel,) = [line for line in listed.stdout.splitlines() if " wheel " in line]
    assert "release:torch==2.12.0" in environment and "torch-2.12.0-py3-none-any.whl" in wheel

    assert torchbench("builds", "gc").stdout.startswith("removed 0 entries")
    forgotten = torchbench("builds", "forget", "release:torch==2.12.0")
    assert forgotten.returncode == 0 and "0 failures, 2 entries" in forgotten.stdout, forgotten.stderr
    assert not Path(interpreter).exists()
    again = torchbench("builds", "forget", "release:torch==2.12.0")
    assert again.returncode == 2 and "holds nothing named" in again.stderr


def test_a_failure_is_listed_with_its_log_and_tried_again_when_it_is_forgotten(torchbench, tmp_path, index):
    index.add("torch", "2.12.0", requires=("numpy", "absent-dependency==1.0"))
    configure(tmp_path, index)
    command = ("build", "2.12.0", "--config", "nightly.yaml")
    assert torchbench(*command).returncode == 2
    failed = torchbench(*command)
    assert failed.returncode == 2 and "remembered from" in failed.stderr and "--retry" in failed.stderr
    listed = torchbench("builds", "list").stdout
    (log,) = (tmp_path / "cache" / "failures").glob("*.log")
    assert f"  log: {log}" in listed.splitlines() and "absent-dependency==1.0" in listed
    assert "failed, and not tried again until --retry or `torchbench builds forget KEY`:" in listed
    assert any(line.endswith(" UTC  release:torch==2.12.0") for line in listed.splitlines()), "the build that failed"

    index.add("absent_dependency", "1.0")
    index.packages["absent-dependency"] = index.packages.pop("absent_dependency")
    assert torchbench("builds", "forget", "release:torch==2.12.0").returncode == 0
    assert "absent-dependency" not in torchbench("builds", "list").stdout
    built = torchbench(*command)
    assert built.returncode == 0, built.stderr


def test_gc_keeps_the_limit_that_is_named(torchbench, tmp_path, index):
    index.add("torch", "2.12.0")
    configure(tmp_path, index)
    built = torchbench("build", "2.12.0", "--config", "nightly.yaml", "--max-gib", 0)
    interpreter = Path(built.stdout.splitlines()[-1])
    assert interpreter.exists()
    assert torchbench("builds", "gc", "--max-gib", 0).stdout.startswith("removed 2 entries")
    assert not interpreter.exists()


def test_a_build_has_one_name(torchbench, tmp_path, index):
    configure(tmp_path, index)
    for arguments, said in (
        (("2.12.0", "--plan", "plan.json"), "--plan: pins a build, and so does the address"),
        (("2.12.0", "--into", "folder"), "--into: a build that an address names is made in the cache"),
        (("--config", "nightly.yaml"), "name the folder to install the build --into"),
        (("git:https://someone:hunter2@example.org/x@main",), "holds credentials"),
        (("2.12.0@backend=inductor",), "holds @key="),
    ):
        ended = torchbench("build", *arguments)
        assert ended.returncode == 2
        assert said in ended.stderr and "hunter2" not in ended.stderr
    assert not (tmp_path / "cache").exists()
