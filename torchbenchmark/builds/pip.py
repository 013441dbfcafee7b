"""Asks pip for wheels and for virtual environments, with the pip of this driver or, where it has none, that of the
interpreter which is to be filled."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from torchbenchmark.builds.build_errors import BuildNotFound, CommandFailed
from torchbenchmark.builds.installation import ELSEWHERE, INSTALL_TIMEOUT_S, Installed, read_report
from torchbenchmark.builds.workshop import Workshop, all_lines, blames_network, last_lines
from torchbenchmark.errors import BenchmarkError

_QUIET = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
_EMPTY = "(from versions: none)"
_NOT_THERE = "No matching distribution found"
_DEFAULT_INDEX = re.compile(r"--index-url <url>[^\n]*?\(default:? (https?://[^\s)]+)\)")
_CONSTRAINT = re.compile(r"The user requested \(constraint\) (\S.*)")


def download(
    shop: Workshop, python: Path, requirements: Sequence[str], index: str | None, extra_index: str | None
) -> tuple[Path, ...]:
    """The wheels of exact requirements that fit an interpreter, without what they depend on. Nothing of them runs."""
    out = shop.folder / "downloaded"
    arguments = [*_QUIET, "--no-deps", "--only-binary", ":all:", "--dest", str(out), *_indexes(index, extra_index)]
    what = f"pip could not get {' '.join(requirements)}"

    def run(*more: str) -> None:
        command = [*_pip(python), "download", *more, *arguments, *requirements]
        shop.run(command, what, timeout_s=INSTALL_TIMEOUT_S, variables=pip_variables())

    try:
        run()
    except CommandFailed as error:
        _blame_constraint(what, shop, error)
        lines = last_lines(shop.log)
        if any(_EMPTY in line for line in lines):
            with suppress(CommandFailed):
                run("-vv")  # pip takes an index that does not answer for empty, and says so only here
        if not blames_network(all_lines(shop.log)) and any(_NOT_THERE in line for line in lines):
            where = index or "the index that pip is configured to use"
            raise BuildNotFound(
                f"{where}: has no {' '.join(requirements)} for {python}: {' | '.join(lines)}"
            ) from error
        raise
    return shop.wheels_in(out)


def configured_index(python: Path) -> str:
    """The index that pip asks where nobody names one: by its settings, or else its own default. Raises BenchmarkError.

    pip's help is the one place that tells both; a login is left out of it, and belongs in ~/.netrc anyway."""
    ended = subprocess.run(
        [*_pip(python), "download", "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**pip_variables(), "COLUMNS": "4000"},
        check=False,
    )
    found = _DEFAULT_INDEX.search(ended.stdout)
    if found is None:
        raise BenchmarkError("pip does not tell which index it is configured to use; set `builds.index` in --config")
    parts = urlsplit(found[1])
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def fill_environment(
    shop: Workshop,
    base: Path,
    folder: Path,
    *,
    wheels: Sequence[Path] = (),
    requirements: Sequence[str] = (),
    without_dependencies: Sequence[str] = (),
    index: str | None = None,
    extra_index: str | None = None,
) -> dict[str, Installed]:
    """Make a virtual environment in `folder` and install into it: what is to come without its dependencies, then
    wheels that lie here, with what they depend on and the requirements. Gives what pip installed."""
    python = folder / "bin" / "python"
    own = [] if importlib.util.find_spec("pip") is None else ["--without-pip"]
    made = [str(base), "-I", "-m", "venv", *own, str(folder)]
    shop.run(made, "no virtual environment could be made", timeout_s=INSTALL_TIMEOUT_S, variables=pip_variables())
    installed: dict[str, Installed] = {}
    report = shop.folder / "pip-report.json"
    common = [*_QUIET, "--no-compile", "--only-binary", ":all:", "--report", str(report)]
    common += _indexes(index, extra_index)
    # The build's own wheels come last: from then on starting the interpreter may run code of theirs (.pth), and pip's
    # environment is not filtered.
    for what in (["--no-deps", *without_dependencies], [*map(str, wheels), *requirements]):
        if what in ([], ["--no-deps"]):
            continue
        named = " ".join(one.rpartition("/")[2] for one in what if one != "--no-deps")
        command = [*_pip(python), "install", *common, *what]
        what_failed = f"pip could not install {named}"
        try:
            shop.run(command, what_failed, timeout_s=INSTALL_TIMEOUT_S, variables=pip_variables())
        except CommandFailed as error:
            _blame_constraint(what_failed, shop, error)
            raise
        installed |= read_report(report)
    return installed


def _blame_constraint(what: str, shop: Workshop, error: CommandFailed) -> None:
    """A version that this machine's own pip settings forbid is no failure of the build, and nothing to remember. Images
    with a torch of their own come with such a setting."""
    if found := _CONSTRAINT.search("\n".join(all_lines(shop.log))):
        raise BenchmarkError(
            f"{what}: pip is told on this machine to keep to {found[1]} (PIP_CONSTRAINT, or `constraint` in pip's "
            "configuration); lift that, or name another version"
        ) from error


def _pip(python: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", "--python", str(python)]
    return [str(python), "-I", "-m", "pip"]


def _indexes(index: str | None, extra_index: str | None) -> list[str]:
    # Without an index pip keeps the one that it is configured to use, with what it knows to log in there.
    first = [] if index is None else ["--index-url", f"{index}/"]
    return first if extra_index is None else [*first, "--extra-index-url", f"{extra_index}/"]


def pip_variables() -> Mapping[str, str]:
    # Not filtered as those of a build: pip may need a login for its index, and runs no code of what it installs.
    left_out = (*ELSEWHERE, "PIP_REPORT", "PIP_REQUIREMENT", "PIP_REQUIRE_HASHES", "PYTHONPATH", "PYTHONHOME")
    return {name: value for name, value in os.environ.items() if name not in left_out}
