"""Every way in which this project is installed, or used without: from a clone, editable, as a wheel, and into a cold
virtual environment without torch. All start from copies of the tracked files, so that nothing left behind can help."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from github_servers import BOT, REPOSITORY, TOKENS, github, needs_emulator, own_github
from night_factory import FIRST_NIGHT, A, run_of

from baselines.history import add_night
from baselines.runs import store_run
from baselines.store import open_store
from bot.watchdog import LABELS
from torchbenchmark import __version__
from torchbenchmark.records import read_run

ROOT = Path(__file__).parents[1]
PACKAGES = ("torchbenchmark", "score", "baselines", "bot")
SITE_PACKAGES = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="a build with torch is measured")


def run(*command: object, cwd: Path, timeout: float = 240, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder that is not this clone, without this process's ways of finding it."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "GITHUB_TOKEN", "GITHUB_API_URL")
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | variables
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed(done: subprocess.CompletedProcess[str], code: int = 0) -> str:
    assert done.returncode == code, f"{done.args}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def tracked_files() -> list[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("the tracked files are known in a git clone only")
    listed = printed(run("git", "ls-files", "-z", cwd=ROOT)).split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def copy_of_the_clone(folder: Path) -> Path:
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return copy_of_the_clone(tmp_path / "clone")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder from which nothing of the project can be imported by accident."""
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def empty_environment(folder: Path) -> Path:
    """The interpreter of a virtual environment with nothing in it, not even pip."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin" / "python"


def add_dependencies(python: Path) -> None:
    """Let it find what the tests' environment holds, but not this project: an editable install is found by a .pth
    file, and those of a folder that a .pth file names are not read."""
    (python.parents[1] / SITE_PACKAGES / "dependencies.pth").write_text(sysconfig.get_path("purelib"))


# From a clone, nothing installed


@pytest.mark.parametrize(
    "command",
    ["-m torchbenchmark list", "-m bot list", "regression_detector.py --help", "-m bot score --help"],
)
def test_a_clone_works_without_being_installed(command: str, clone: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "environment")
    add_dependencies(python)
    assert run(python, "-c", "import bot", cwd=tmp_path).returncode != 0
    output = printed(run(python, *command.split(), cwd=clone))
    assert ("timm_vision_transformer" in output) if "list" in command else ("Usage:" in output)


def test_an_editable_install_follows_the_clone(clone: Path, tmp_path: Path, elsewhere: Path) -> None:
    python = empty_environment(tmp_path / "environment")
    for pattern in ("setuptools*", "_distutils_hack"):  # what builds it, and nothing else
        for path in Path(sysconfig.get_path("purelib")).glob(pattern):
            (python.parents[1] / SITE_PACKAGES / path.name).symlink_to(path)
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    printed(run(sys.executable, "-m", "pip", "--python", python, "install", *options, "-e", clone, cwd=elsewhere))
    add_dependencies(python)
    torchbench = python.with_name("torchbench")
    assert "my_suite" not in printed(run(torchbench, "list", cwd=elsewhere))
    suite = (clone / "torchbenchmark" / "suites" / "smoke.yaml").read_text().replace("name: smoke", "name: my_suite")
    (clone / "torchbenchmark" / "suites" / "my_suite.yaml").write_text(suite)
    assert "suite my_suite:" in printed(run(torchbench, "list", cwd=elsewhere))
    printed(run(python, "-c", "import regression_detector", cwd=elsewhere))


# As a wheel


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `python -m build` leaves: the sdist, and the wheel that is made from it."""
    pytest.importorskip("build", reason="wheels are made by `build`")
    clone = copy_of_the_clone(tmp_path_factory.mktemp("to_build"))
    printed(run(sys.executable, "-m", "build", "--no-isolation", cwd=clone))
    return clone / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    assert found.name == f"torchbench_sentinel-{__version__}-py3-none-any.whl"
    return found


@pytest.fixture(scope="module")
def with_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("with_wheel")
    python = empty_environment(folder / "environment")
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    printed(run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=folder))
    add_dependencies(python)
    return python


def contents(wheel: Path) -> dict[str, str]:
    """What a wheel installs: path -> hash. Its own RECORD lists the others, so it is left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if not name.endswith(("/", ".dist-info/RECORD"))
        }


def test_the_wheel_holds_the_code_and_data_of_the_packages_and_nothing_else(wheel: Path) -> None:
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in found} == {*PACKAGES, "regression_detector.py"}
    tracked = {name for name in tracked_files() if name.startswith(tuple(f"{package}/" for package in PACKAGES))}
    assert found == tracked | {"regression_detector.py"}
    assert {Path(name).suffix for name in found} >= {".py", ".yaml", ".j2"}


def test_the_wheel_brings_the_command_and_the_license(wheel: Path) -> None:
    info = f"torchbench_sentinel-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert "torchbench = bot.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_of_the_sdist_is_that_of_the_clone(dist: Path, wheel: Path, clone: Path) -> None:
    assert len(list(dist.glob("*.tar.gz"))) == 1  # from which `build` has made the wheel beside it
    printed(run(sys.executable, "-m", "build", "--no-isolation", "--wheel", cwd=clone))
    (direct,) = (clone / "dist").glob("*.whl")
    assert contents(direct) == contents(wheel)


@needs_torch
def test_an_installed_wheel_measures_scores_and_compares_from_any_folder(with_wheel: Path, elsewhere: Path) -> None:
    torchbench = with_wheel.with_name("torchbench")
    listed = printed(run(torchbench, "list", cwd=elsewhere))
    assert "soft_actor_critic" in listed and "suite v1:" in listed
    measured = ("--test", "test_eval[resnet18-cpu-eager-tiny]", "--rounds", "1", "--budget", "0.05")
    printed(run(torchbench, "run", *measured, "--out", "results.jsonl", cwd=elsewhere))
    header = read_run(elsewhere / "results.jsonl").header
    assert header.harness == f"version {__version__}"  # that of the wheel, not the clone's commit
    assert len(header.plan) == 1
    scored = printed(run(torchbench, "score", "results.jsonl", "--reference", "results.jsonl", cwd=elsewhere))
    assert re.search(r"total +1000\.00\b", scored)
    assert "v1.1" in run(torchbench, "score", "results.jsonl", "--reference", "v0", cwd=elsewhere).stderr
    (elsewhere / "store").mkdir()
    policy = ("--store", "store", "--policy", "smoke")
    assert "baseline" in printed(run(torchbench, "detect", "results.jsonl", *policy, cwd=elsewhere))
    template = "from bot.pages import issue; print(issue._templates().list_templates())"
    assert "issue.md.j2" in printed(run(with_wheel, "-c", template, cwd=elsewhere))


# Into a cold environment, for the jobs that judge and report


@dataclass(frozen=True)
class Timed:
    """How long steps took, for the log; and their CPU time, which a busy machine lengthens less."""

    steps: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0

    def run(self, step: str, *command: object, **options: Any) -> "tuple[Timed, subprocess.CompletedProcess[str]]":
        before = os.times()
        done = run(*command, **options)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return Timed({**self.steps, step: after.elapsed - before.elapsed}, self.cpu + cpu), done

    def __str__(self) -> str:
        steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in self.steps.items())
        return f"{sum(self.steps.values()):.1f} s ({steps}; CPU {self.cpu:.1f} s)"


@dataclass(frozen=True)
class Cold:
    """A new virtual environment without torch, in which a hosted job's action has installed what the bot needs."""

    checkout: Path  # of the bot, as the job has it
    python: Path
    timed: Timed

    def watch(self, folder: Path, **variables: str) -> "tuple[Timed, str]":
        """By the command of the wheel."""
        command = (self.python.with_name("torchbench"), "watchdog", "--config", "nightly.yaml")
        timed, done = self.timed.run("watchdog", *command, cwd=folder, **variables)
        return timed, printed(done, code=1)

    def step(self, *arguments: object, **variables: str) -> "tuple[Timed, str]":
        """As a step of a job calls the bot."""
        command = (self.python, "-m", "bot", *arguments)
        timed, done = self.timed.run("step", *command, cwd=self.checkout, **variables)
        return timed, printed(done)


PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "15")


@pytest.fixture(scope="module")
def cold(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Cold:
    """What a job does that only judges and reports, by the script of its own action; and the wheel beside it."""
    folder = tmp_path_factory.mktemp("cold")
    checkout = copy_of_the_clone(folder / "checkout")
    action = yaml.safe_load((checkout / ".github" / "actions" / "set-up-trusted" / "action.yml").read_text())
    (script,) = [step["run"] for step in action["runs"]["steps"] if step.get("id") == "install"]
    variables = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # its python is that of setup-python
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "TORCHBENCH_PYTHON": "",
        "PIP_RETRIES": "1",
        "PIP_TIMEOUT": "15",
    }
    bash = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
    timed, done = Timed().run("set up", *bash, cwd=checkout, **variables)
    if done.returncode != 0:
        require_package_index(folder)
    printed(done)
    python = Path((folder / "output").read_text().removeprefix("python=").strip())
    assert "No module named 'torch'" in run(python, "-c", "import torch", cwd=folder).stderr
    options = ("--quiet", "--no-deps", "--no-index", "--no-compile")
    printed(run(*PIP, "--python", python, "install", *options, wheel, cwd=folder))
    printed(run(*PIP, "--python", python, "check", cwd=folder))
    return Cold(checkout, python, timed)


def require_package_index(folder: Path) -> None:
    """Skip where pip gets nothing at all: then its failure says nothing of this project."""
    done = run(*PIP, "download", "--quiet", "--no-deps", "--dest", folder, "packaging", cwd=folder)
    if done.returncode != 0:
        pytest.skip(f"no package index to install from: {done.stderr.strip().splitlines()[-1]}")


def keep_an_old_night(folder: Path, **tracker: str) -> None:
    """The configuration of a nightly that was last seen two days ago, and its store."""
    night = run_of((datetime.now(UTC) - FIRST_NIGHT).days - 2, {A: 1.0})
    store = open_store(str(folder / "store"))
    add_night(store, store_run(store, night).rpartition("/")[0])
    config = {"suite": "smoke", "store": "store", "work": "work", "outbox": "outbox", **tracker}
    (folder / "nightly.yaml").write_text(yaml.safe_dump(config))


@pytest.mark.quiet
@pytest.mark.parametrize("server", ["fake", pytest.param("emulator", marks=needs_emulator)])
def test_a_cold_environment_without_torch_files_on_github(
    server: str, cold: Cold, elsewhere: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    keep_an_old_night(elsewhere, github=REPOSITORY)
    with (own_github if server == "fake" else github)(tmp_path) as hub:
        for label in LABELS:  # as on any night but the first
            hub.call("POST", "labels", name=label, color="ededed")
        timed, output = cold.watch(elsewhere, GITHUB_API_URL=hub.url, GITHUB_TOKEN=TOKENS[BOT])
        (issue,) = hub.issues()
    assert "issue created" in output
    assert (issue["title"], issue["state"]) == ("No nightly of smoke on cpu-4t", "open")
    record_property("figure", f"installed into a cold environment and watched, against the {server} of GitHub: {timed}")


@pytest.mark.quiet
def test_a_cold_hosted_job_handles_an_event(
    cold: Cold, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "torchbench.yml").write_text("suite: smoke\n")
    (tmp_path / "payload.json").write_text('{"zen": "Design for failure."}')
    given = ("--config", tmp_path / "torchbench.yml", "--event", "ping", "--payload", tmp_path / "payload.json")
    timed, output = cold.step("bot", "handle-event", *given, "--dry-run", GITHUB_OUTPUT=str(tmp_path / "output"))
    assert "ignored: the bot does not heed ping" in output
    record_property("figure", f"set up as a cold hosted job, and handled an event: {timed}")


@pytest.mark.quiet
def test_a_cold_environment_without_torch_watches_the_nightly(
    cold: Cold, elsewhere: Path, record_property: Callable[[str, object], None]
) -> None:
    keep_an_old_night(elsewhere)
    timed, output = cold.watch(elsewhere)
    assert "smoke on cpu-4t: no night for" in output
    (issue,) = (elsewhere / "outbox").glob("*.md")
    assert "# No nightly of smoke on cpu-4t\n" in issue.read_text()
    record_property("figure", f"installed into a cold environment and watched, with an outbox: {timed}")
