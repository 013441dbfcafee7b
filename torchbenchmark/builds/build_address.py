"""One line of text that names a build: `release:torch==2.12.0`, `git:/src/pytorch@1a2b3c4`, a path. docs/builds.md has
the grammar. What follows as `@key=value` are overrides of an experiment, and no part of the address."""

import re

from packaging.version import InvalidVersion, Version

from torchbenchmark.builds.git import GitAddress
from torchbenchmark.builds.nightly import NightlyAddress
from torchbenchmark.builds.provider import BuildAddress
from torchbenchmark.builds.release import ReleaseAddress
from torchbenchmark.builds.url import UrlAddress
from torchbenchmark.builds.venv import VenvAddress
from torchbenchmark.errors import BenchmarkError

PROVIDERS: dict[str, type[BuildAddress]] = {
    kind.provider: kind for kind in (VenvAddress, ReleaseAddress, NightlyAddress, UrlAddress, GitAddress)
}
LONGEST = 1000
_OVERRIDE = re.compile(r"@([A-Za-z0-9._]+)=")
_FORMS = "a path, a version, or one of " + ", ".join(f"{name}:" for name in PROVIDERS)


def split_overrides(line: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The address of a line, and the overrides `@key=value` at its end in their order. A value ends where the next
    override begins."""
    address, *rest = _OVERRIDE.split(line)
    return address, tuple(zip(rest[::2], rest[1::2], strict=True))


def parse_address(text: str, subject: str = "torch") -> BuildAddress:
    """The build that the text names. A bare path is a `venv`, a bare version is a `release` of the subject.

    Raises BenchmarkError, which shows no address of the network: there may be a password in it.
    """
    _refuse_what_no_address_holds(text)
    name, colon, what = text.partition(":")
    if colon and name in PROVIDERS:
        if name == ReleaseAddress.provider and _is_version(what):
            what = f"{subject}=={what}"
        return _parse(name, what)
    if "://" in text or (re.fullmatch(r"[a-z]+", name) and colon):
        raise BenchmarkError(f"build address: no provider {name[:20]!r}; write {_FORMS}")
    if text.startswith(("/", ".", "~")) or "/" in text:
        return _parse(VenvAddress.provider, text)
    if _is_version(text):
        return _parse(ReleaseAddress.provider, f"{subject}=={text}")
    if "==" in text:
        return _parse(ReleaseAddress.provider, text)
    raise BenchmarkError(f"build address {text[:60]!r}: names no build; write {_FORMS}")


def _parse(name: str, what: str) -> BuildAddress:
    if what.startswith("-"):
        raise BenchmarkError(f"build address {name}: begins with a dash, as an option does; write ./-... for a path")
    try:
        return PROVIDERS[name].parse(what)
    except ValueError as error:
        raise BenchmarkError(f"build address {name}: {error}") from error


def _refuse_what_no_address_holds(text: str) -> None:
    if not text.strip():
        raise BenchmarkError(f"build address: is empty; write {_FORMS}")
    if len(text) > LONGEST:
        raise BenchmarkError(f"build address: is longer than {LONGEST} characters")
    if not text.isprintable() or text != text.strip():
        raise BenchmarkError("build address: holds a line break or a control character, or a space at an end")
    if _OVERRIDE.search(text):
        raise BenchmarkError(
            "build address: holds @key=, which begins an override of an experiment and is no part of a build"
        )


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def is_local(address: BuildAddress) -> bool:
    """Whether the address reads files of this machine, which nobody else may name: not to be taken from a comment."""
    if isinstance(address, GitAddress):
        return address.is_local
    return isinstance(address, VenvAddress) or (isinstance(address, UrlAddress) and address.is_local)
