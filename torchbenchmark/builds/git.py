"""The provider `git`: a commit of a repository and the command that makes wheels of it.

The repository is mirrored into the cache once. Every build gets a clone of its own that shares the mirror's objects, so
what a build command does to its checkout reaches no other build.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound, BuildUnavailable, CommandFailed
from torchbenchmark.builds.pip import fill_environment
from torchbenchmark.builds.provider import Fetched, Request, WheelSource, digest
from torchbenchmark.builds.settings import GIT_ELSEWHERE, build_variables
from torchbenchmark.builds.workshop import Workshop, last_lines, says_full

FETCH_TIMEOUT_S = 3600
CHECKOUT_TIMEOUT_S = 3600
COMMIT = re.compile(r"[0-9a-f]{40}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_SCP = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_.~/+-]+")
_SCHEMES = ("https", "http", "ssh", "git", "file")
_MISSING = ("couldn't find remote ref", "not our ref", "no such remote ref", "unadvertised object")


@dataclass(frozen=True)
class GitAddress:
    """`git:https://host/pytorch.git@COMMIT`, `git:/src/pytorch@BRANCH`."""

    provider: ClassVar[str] = "git"
    repository: str
    revision: str  # a full commit is exact; a branch, a tag or the beginning of a commit is looked up

    @classmethod
    def parse(cls, what: str) -> Self:
        repository, found, revision = what.rpartition("@")
        if not found:
            raise ValueError("must end with @ and a commit, a branch or a tag")
        if not _REVISION.fullmatch(revision) or ".." in revision or revision.endswith((".lock", "/", ".")):
            raise ValueError("the part after the last @ is no commit, branch or tag")
        _check_repository(repository)
        return cls(repository, revision)

    def __str__(self) -> str:
        return f"{self.provider}:{self.repository}@{self.revision}"

    @property
    def is_local(self) -> bool:
        return self.repository.startswith("file:") or not ("://" in self.repository or _SCP.fullmatch(self.repository))

    @property
    def is_exact(self) -> bool:
        return COMMIT.fullmatch(self.revision) is not None

    def exact(self, request: Request) -> Self:
        located = self._located()
        if self.is_exact:
            return located
        mirror = Mirror(located.repository, located.is_local, request)
        return replace(located, revision=mirror.commit(self.revision))

    def _located(self) -> Self:
        """A path is made absolute, so that the address means the same from every folder."""
        if not self.is_local or self.repository.startswith("file:"):
            return self
        return replace(self, repository=str(Path(self.repository).expanduser().absolute()))

    def source(self, request: Request) -> WheelSource:
        exact = self.exact(request)
        git = request.settings.git
        facts = {
            "provider": self.provider,
            "repository": exact.repository,
            "commit": exact.revision,
            "command": git.command if isinstance(git.command, str) else list(git.command),
            "dist": git.dist,
            "tools": list(git.tools),
            "variables": git.variables,
            "submodules": git.submodules,
        }

        def make(shop: Workshop) -> Fetched:
            mirror = Mirror(exact.repository, exact.is_local, request)
            return Fetched(_build(exact, mirror, request, shop))

        return WheelSource(str(exact), {**facts, **request.platform}, make)


@dataclass(frozen=True)
class Mirror:
    """The copy of a repository in the cache."""

    repository: str
    is_local: bool
    request: Request

    @property
    def name(self) -> str:
        return digest({"kind": "mirror", "repository": self.repository})

    @property
    def folder(self) -> Path:
        return self.request.cache.folder / "mirrors" / f"{self.name}.git"

    def commit(self, revision: str) -> str:
        """The full commit that a revision is, as the repository has it now."""
        with self.request.cache.making(f"mirror-{self.name}") as lock:
            if COMMIT.fullmatch(revision) and self._find(revision) is not None:
                return revision
            self._fetch(lock, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            found = self._find(revision)
            if found is None and (reference := _unlisted(revision)) is not None:
                self._fetch(lock, f"+{reference}:refs/asked/{revision}", missing=revision)
                found = self._find(revision)
        if found is None:
            raise BuildNotFound(f"{self.repository}: has no commit, branch or tag {revision}")
        return found

    def keep(self, clone: Path, commit: str) -> None:
        """Take a commit that was made in a clone of this mirror, so that it can be built as any other."""
        with self.request.cache.making(f"mirror-{self.name}") as lock:
            if self._find(commit) is None:
                self._fetch(lock, f"+{commit}:refs/asked/{commit}", clone=clone)

    def _find(self, revision: str) -> str | None:
        if not (self.folder / "HEAD").is_file():
            return None
        names = [f"refs/heads/{revision}", f"refs/tags/{revision}", f"refs/asked/{revision}"]
        if re.fullmatch(r"[0-9a-f]{7,40}", revision):
            names.append(revision)
        for name in names:
            found = subprocess.run(
                [_git(), *SAFE, f"--git-dir={self.folder}", "rev-parse", "--verify", "--quiet", "--end-of-options",
                 f"{name}^{{commit}}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=git_variables(local=self.is_local),
                check=False,
            )  # fmt: skip
            if found.returncode == 0 and COMMIT.fullmatch(found.stdout.strip()):
                return found.stdout.strip()
        return None

    def _fetch(self, lock: int, *references: str, missing: str | None = None, clone: Path | None = None) -> None:
        # Nothing is ever pruned: clones of builds share these objects.
        fetch = [
            "fetch",
            "--quiet",
            "--force",
            "--no-auto-gc",
            "--no-tags",
            "--end-of-options",
            str(clone or self.repository),
        ]
        cache = self.request.cache
        with cache.workshop(self.name, lock) as shop:
            where = [_git(), *SAFE, f"--git-dir={self.folder}"]
            try:
                if not (self.folder / "HEAD").is_file():
                    shop.run(
                        [_git(), *SAFE, "init", "--quiet", "--bare", str(self.folder)],
                        "no mirror could be made",
                        timeout_s=FETCH_TIMEOUT_S,
                        variables=git_variables(local=True),
                    )
                for left in self.folder.rglob("*.lock"):  # by a fetch that was killed; we are alone
                    left.unlink()
                shop.run(
                    [*where, *fetch, *references],
                    f"{clone or self.repository} could not be fetched",
                    timeout_s=FETCH_TIMEOUT_S,
                    variables=git_variables(local=self.is_local or clone is not None),
                )
            except CommandFailed as error:
                lines = last_lines(shop.log)
                if missing is not None and any(text in line for text in _MISSING for line in lines):
                    raise BuildNotFound(f"{self.repository}: has no commit {missing}") from error
                if says_full(lines):
                    raise cache.no_space() from error
                raise BuildUnavailable(f"{error}: {' | '.join(lines)}") from error


def _unlisted(revision: str) -> str | None:
    """What to ask for that no branch or tag names: the head of a pull request, or a commit that was pushed over."""
    if COMMIT.fullmatch(revision):
        return revision
    return f"refs/{revision}" if re.fullmatch(r"pull/[0-9]+/(head|merge)", revision) else None


def _git() -> str:
    found = shutil.which("git")
    if found is None:
        raise BuildUnavailable("git: is not installed, and the build is a commit")
    return found


SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "advice.detachedHead=false",
)


def git_variables(*, local: bool) -> dict[str, str]:
    """Variables of git itself, which may log in: it asks nobody, and speaks the protocols of networks only."""
    kept = {name: value for name, value in os.environ.items() if name not in GIT_ELSEWHERE}
    protocols = ":".join(scheme for scheme in _SCHEMES if local or scheme != "file")
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": protocols, "LC_ALL": "C"}


def _build(address: GitAddress, mirror: Mirror, request: Request, shop: Workshop) -> tuple[Path, ...]:
    git = request.settings.git
    source, out = shop.folder / "source", shop.folder / "out"
    out.mkdir()
    with request.cache.use(f"mirror-{mirror.name}"):
        mirror.commit(address.revision)
        os.utime(mirror.folder)
        check_out(address, mirror, shop, source, submodules=git.submodules)
        python = request.base
        if git.tools:
            python = shop.folder / "tools" / "bin" / "python"
            fill_environment(
                shop,
                request.base,
                python.parents[1],
                requirements=git.tools,
                index=request.settings.index,
                extra_index=request.settings.extra_index,
            )
        values = {"out": str(out), "python": str(python), "source": str(source), "commit": address.revision}
        variables = build_variables(git)
        variables |= {f"TORCHBENCH_BUILD_{name.upper()}": value for name, value in values.items()}
        (shop.folder / "tmp").mkdir()
        variables["TMPDIR"] = str(shop.folder / "tmp")
        variables["PATH"] = f"{python.parent}:{variables.get('PATH', os.defpath)}"
        shop.run(
            _command(git.command, values),
            f"{address} could not be built",
            timeout_s=git.timeout_s,
            variables=variables,
            folder=source,
        )
    wheels = shop.wheels_in(out) or shop.wheels_in(source / git.dist)
    if not wheels:
        raise BuildFailed(
            f"{address}: the build command left no wheel; it must write one into $TORCHBENCH_BUILD_OUT or {git.dist}/"
        )
    return wheels


def _command(command: str | Sequence[str], values: dict[str, str]) -> list[str]:
    if isinstance(command, str):
        return ["/bin/sh", "-c", command]
    known = re.compile(r"\{(" + "|".join(values) + r")\}")
    return [known.sub(lambda found: values[found[1]], part) for part in command]


def check_out(address: GitAddress, mirror: Mirror, shop: Workshop, source: Path, *, submodules: bool) -> None:
    """A clone at the commit, its origin the real repository: addresses of submodules may be relative to that."""
    local = address.is_local

    def git(*arguments: str) -> None:
        shop.run(
            [_git(), *SAFE, *arguments],
            f"{address} could not be checked out",
            timeout_s=CHECKOUT_TIMEOUT_S,
            variables=git_variables(local=True),
        )

    git("clone", "--quiet", "--shared", "--no-checkout", str(mirror.folder), str(source))
    inside = ("-C", str(source))
    git(*inside, "remote", "set-url", "origin", address.repository)
    git(*inside, "checkout", "--quiet", "--detach", address.revision)
    if submodules and (source / ".gitmodules").is_file():
        try:
            shop.run(
                [_git(), *SAFE, *inside, "submodule", "--quiet", "update", "--init", "--recursive"],
                f"the submodules of {address} could not be checked out",
                timeout_s=CHECKOUT_TIMEOUT_S,
                variables=git_variables(local=local),
            )
        except CommandFailed as error:
            if any("not our ref" in line or "did not contain" in line for line in last_lines(shop.log, 10)):
                raise  # the commit names a submodule's commit that nobody has: it can never be built
            raise BuildUnavailable(f"{error}: {' | '.join(last_lines(shop.log))}") from error


def _check_repository(text: str) -> None:
    """Raises ValueError, which does not repeat the text: it may hold a password."""
    if not text:
        raise ValueError("names no repository before the last @")
    if text.startswith("-") or "::" in text:
        raise ValueError("is no repository: a path, https://..., ssh://... or user@host:path")
    if "://" in text:
        try:
            parts = urlsplit(text)
            user, password, host = parts.username, parts.password, parts.hostname
        except ValueError:
            raise ValueError("is not an address") from None
        if parts.scheme not in _SCHEMES:
            raise ValueError(f"must begin with {', '.join(f'{scheme}://' for scheme in _SCHEMES)} or be a path")
        if password is not None or (user is not None and parts.scheme != "ssh"):
            raise ValueError("holds credentials, which would end up in logs; leave them to git's credential helper")
        if parts.query or parts.fragment or any(character.isspace() for character in text):
            raise ValueError("has a query, a fragment or a space, which the address of a repository has not")
        if parts.scheme != "file" and (not host or host.startswith("-")):
            raise ValueError("names no host")
    elif not _SCP.fullmatch(text) and ":" in text.partition("/")[0]:
        raise ValueError("is no repository: a path, https://..., ssh://... or user@host:path")
