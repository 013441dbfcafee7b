"""Installs a pinned build into a folder: a virtual environment that is whole, or else made anew. What it knows of pip
and of a working build serves the builds in the cache too."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import unquote, urlsplit

from packaging.utils import parse_wheel_filename
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.builds.pinned import PinnedBuild
from torchbenchmark.builds.target import ask_target
from torchbenchmark.builds.workshop import without_credentials
from torchbenchmark.environment import Interpreter, inspect_interpreter, normalised_name, worker_variables
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.terminal import console

SCHEMA = 1
OURS = ".torchbench-build"  # in a folder that may be emptied; also the lock of who installs there
WHOLE = "build.json"  # written last
LOG = "install.log"
REPORT = "pip-report.json"
CONSTRAINTS = "constraints.txt"
INSTALL_TIMEOUT_S = 3600
IMPORT_TIMEOUT_S = 300
TOLD_LINES = 3  # of the log, in the error
_LOG_TAIL_BYTES = 20_000
_REPORT_LIMIT_BYTES = 64 * 2**20

# Settings of pip that would put the wheels somewhere else than into the folder, or not all of them.
ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_NO_DEPS")


class Installed(BaseModel):
    """One distribution that pip installed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: str
    file: str
    sha256: str | None
    source: str  # scheme, host and port


class InstalledBuild(BaseModel):
    """What stands in `build.json` of a whole installation."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["installed build"] = "installed build"
    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    pin: PinnedBuild
    ended: datetime
    distributions: dict[str, Installed]


def provide_tonight(build: NightlyBuild, folder: Path, *, resuming: bool, today: date | None = None) -> Path:
    """The interpreter of tonight's build, installed in `folder`. A run that is resumed goes on with the build that is
    installed there, however old and whatever the index has by now."""
    pin = installed_pin(folder) if resuming else None
    if pin is None or not build.allows(pin):
        pin = resolve(build, today=today)
    return install(pin, folder)


def installed_build(folder: Path) -> InstalledBuild | None:
    """What is installed in a folder; None if nothing whole is."""
    try:
        return InstalledBuild.model_validate_json((folder / WHOLE).read_bytes())
    except (OSError, ValidationError):
        return None


def installed_pin(folder: Path) -> PinnedBuild | None:
    """The pin of what is installed in a folder; None if nothing whole is."""
    whole = installed_build(folder)
    return None if whole is None else whole.pin


def install(
    pin: PinnedBuild,
    folder: Path,
    python: Path | None = None,
    *,
    versions: Mapping[str, str] | None = None,
    wheels: Sequence[Path] = (),
) -> Path:
    """The interpreter of the pinned build in `folder`, which is installed there if it is not yet.

    `python` makes the virtual environment (default: this interpreter, or else `python3.X` of the pin on the PATH).
    `versions` are those of all distributions that an earlier installation of this pin came to, to be met again;
    `wheels` are the files of all of them, so that no index is asked.
    Raises BenchmarkError; the folder is then not taken for a whole build, and its log stays.
    """
    folder = folder.absolute()
    interpreter = folder / "bin" / "python"
    with _held(folder) as lock:
        if installed_pin(folder) == pin:
            try:
                _verify(pin, interpreter)
                return interpreter
            except BenchmarkError as problem:
                console.print(f"installing the build anew: {problem}", markup=False, style="yellow")
        base = _base_interpreter(pin, python)
        _empty(folder)
        console.print(f"installing {pin} into {folder}", markup=False)
        with open(folder / LOG, "ab") as log:
            _run([str(base), "-I", "-m", "venv", str(folder)], folder, log, lock)
            arguments = _pip_arguments(pin, folder, versions or {}, wheels)
            _run([str(interpreter), "-I", "-m", "pip", *arguments], folder, log, lock)
        distributions = _read_report(pin, folder)
        _verify(pin, interpreter)
        whole = InstalledBuild(pin=pin, ended=datetime.now(UTC), distributions=distributions)
        scratch = folder / f"{WHOLE}.tmp"
        scratch.write_text(whole.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
        scratch.replace(folder / WHOLE)
    return interpreter


@contextmanager
def _held(folder: Path) -> Iterator[IO[bytes]]:
    """The folder for one installer alone. Refuses one that holds something and was not made by us."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / OURS).is_file() and any(folder.iterdir()):
            raise BenchmarkError(f"{folder}: is not empty and no build of torchbench; name a new or empty folder")
        lock = open(folder / OURS, "ab")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BenchmarkError(f"{folder}: cannot be made ready for a build: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BenchmarkError(
                f"{folder}: another installation is running there; wait for it, or name another folder"
            ) from error
        yield lock


def _empty(folder: Path) -> None:
    """Remove what is in the folder: first what says that it is whole, and never what says that it is ours."""
    (folder / WHOLE).unlink(missing_ok=True)
    try:
        for path in folder.iterdir():
            if path.name == OURS:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    except OSError as error:
        raise BenchmarkError(f"{folder}: cannot be emptied ({error}); remove it") from error


def _base_interpreter(pin: PinnedBuild, python: Path | None) -> Path:
    """The interpreter that makes the virtual environment, one that the pinned wheels fit."""
    if python is None:
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        found = sys.executable if own == pin.python else shutil.which(f"python{pin.python}")
        if found is None:
            raise BenchmarkError(
                f"the build is pinned for Python {pin.python}, this is {own}, and the PATH has no python{pin.python}; "
                "name one with --python, or set `build.python` in the configuration of the nightly"
            )
        python = Path(found)
    target = ask_target(Path(shutil.which(python) or python).absolute())
    for wheel in pin.wheels:
        if target.python != pin.python or target.rank(parse_wheel_filename(wheel.file)[3]) is None:
            raise BenchmarkError(
                f"{python}: is {target}, and the build is pinned to {wheel.file} for Python {pin.python}; "
                "name another interpreter with --python, or set `build.python` in the configuration of the nightly"
            )
    return Path(shutil.which(python) or python).absolute()


def _pip_arguments(pin: PinnedBuild, folder: Path, versions: Mapping[str, str], wheels: Sequence[Path]) -> list[str]:
    common = ["install", "--no-input", "--disable-pip-version-check", "--no-compile", "--progress-bar", "off"]
    common += ["--only-binary", ":all:", "--report", str(folder / REPORT)]
    if wheels:
        return [*common, "--no-index", "--no-deps", *map(str, wheels)]
    # Without an extra index pip keeps the index that it is configured to use, with what it knows to log in there.
    indexes = ["--extra-index-url", f"{pin.index}/"]
    if pin.extra_index is not None:
        indexes = ["--index-url", f"{pin.index}/", "--extra-index-url", f"{pin.extra_index}/"]
    if versions:
        constraints = folder / CONSTRAINTS
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()), encoding="utf-8")
        common += ["--constraint", str(constraints)]
    return [
        *common,
        *indexes,
        *(wheel.requirement for wheel in pin.wheels),
        *pin.requirements,
    ]


def _run(command: Sequence[str], folder: Path, log: IO[bytes], lock: IO[bytes]) -> None:
    """Run an installing command, its output to the log. It holds the lock too: one that outlives a killed driver keeps
    the next from installing into the same folder."""
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment,
            pass_fds=[lock.fileno()],
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
        how = f"exit {ended.returncode}"
    except OSError as error:
        raise BenchmarkError(f"{command[0]}: cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        how = f"not done within {INSTALL_TIMEOUT_S} s"
    else:
        if ended.returncode == 0:
            return
    what = "pip could not install the build" if "pip" in command else "no virtual environment could be made"
    raise BenchmarkError(f"{folder / LOG}: {what} ({how}): {_last_lines(folder / LOG)}")


def _last_lines(log: Path) -> str:
    with open(log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return one_line(without_credentials(" | ".join((errors or lines)[-TOLD_LINES:]))) or "it said nothing"


def _read_report(pin: PinnedBuild, folder: Path) -> dict[str, Installed]:
    """What pip installed, by its own report. Raises BenchmarkError if a pinned wheel is not the one of the index.

    Nothing of the build has run by now: another index cannot have put its own code in the place of the subject.
    """
    found = read_report(folder / REPORT)
    for wheel in pin.wheels:
        got = found.get(wheel.name)
        if got is None:
            raise BenchmarkError(f"{folder / LOG}: pip installed no {wheel.name}")
        if got.file != wheel.file or (wheel.sha256 or got.sha256) != got.sha256:
            raise BenchmarkError(
                f"{folder}: pip took {got.file} (sha256 {got.sha256}) from {got.source}, not the wheel that "
                f"{pin.index} lists ({wheel.file}, sha256 {wheel.sha256}); check which indexes pip is configured to "
                "use (pip config list)"
            )
    return found


def read_report(path: Path) -> dict[str, Installed]:
    """What pip says that it installed, by name. The report is removed: the addresses in it may be signed."""
    try:
        with open(path, "rb") as file:
            entries = json.loads(file.read(_REPORT_LIMIT_BYTES))["install"]
        found = {normalised_name(entry["metadata"]["name"]): _installed(entry) for entry in entries}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchmarkError(f"{path}: not a report of pip ({error}); this needs pip 22.3 or newer") from error
    path.unlink()
    return found


def _installed(entry: dict[str, Any]) -> Installed:
    address = urlsplit(entry["download_info"]["url"])
    archive = entry["download_info"].get("archive_info", {})
    sha256 = archive.get("hashes", {}).get("sha256")
    if sha256 is None and archive.get("hash", "").startswith("sha256="):
        sha256 = archive["hash"].removeprefix("sha256=")
    return Installed(
        version=entry["metadata"]["version"],
        file=unquote(address.path.rpartition("/")[2]),
        sha256=sha256,
        source=f"{address.scheme}://{address.netloc.rpartition('@')[2]}",
    )


def _verify(pin: PinnedBuild, interpreter: Path) -> None:
    """Raises BenchmarkError unless the interpreter imports the subject, holds the pinned versions and can measure."""
    holds = verify_interpreter(interpreter, pin.subject.name, "build.requirements")
    pin.require(holds.distributions, interpreter)


def verify_interpreter(interpreter: Path, subject: str, key: str) -> Interpreter:
    """What the interpreter holds. Raises BenchmarkError unless it imports the subject and can measure; `key` of the
    configuration is where numpy is to be added."""
    holds = inspect_interpreter(interpreter, subject)
    if "numpy" not in holds.distributions:
        raise BenchmarkError(
            f"{interpreter}: has no numpy, which measuring needs and torch does not bring; add it to "
            f"`{key}`, such as numpy==2.4.6"
        )
    if subject == "torch":
        return holds  # imported just now
    module = subject.replace("-", "_")
    try:
        ended = subprocess.run(
            [str(interpreter), "-P", "-c", f"import {module}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=IMPORT_TIMEOUT_S,
            env=worker_variables(),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError(f"{interpreter}: {module} was not imported within {IMPORT_TIMEOUT_S} s") from error
    if ended.returncode != 0:
        last = (ended.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise BenchmarkError(f"{interpreter}: {module} cannot be imported there ({one_line(last)})")
    return holds
