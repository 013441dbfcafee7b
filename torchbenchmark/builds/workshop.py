"""Where a build is made: a scratch folder that goes with whoever made it, a log, and commands that end with us."""

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchbenchmark.builds.build_errors import CommandFailed
from torchbenchmark.foreign_text import one_line

SUPERVISOR = Path(__file__).with_name("supervised.py")
TOLD_LINES = 3  # of the log, in an error
_LOG_TAIL_BYTES = 20_000
_CREDENTIALS = re.compile(r"://[^/\s]+@")  # to the last @: a password may hold one that nobody has encoded
_QUERY = re.compile(r"(://[^\s?#'\"<>]+)\?[\w%][^\s#'\"<>)]*")  # of an address: it may be signed, or have a token in it
_BLOCK = 2**20
_NETWORK = re.compile(
    r"Connection (refused|reset|aborted|timed out)|ConnectionError|NewConnectionError|ReadTimeout|Read timed out"
    r"|Temporary failure in name resolution|Name or service not known|Network is unreachable|ProxyError|SSLError"
    r"|Max retries exceeded|IncompleteRead|HTTP error (429|5\d\d)|\b((401|403|429) Client|5\d\d Server) Error"
    r"|Could not resolve host"
)
_FULL = ("No space left on device", "Disk quota exceeded", "disk quota exceeded", "File too large")


@dataclass(frozen=True)
class Workshop:
    """A scratch folder and its log. What runs here holds the locks of the cache until its last process is gone."""

    folder: Path
    log: Path
    locks: tuple[int, ...] = ()

    def run(
        self,
        command: Sequence[str],
        what: str,
        *,
        timeout_s: float,
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Run a command, its output to the log. Raises CommandFailed, which says what could not be done."""
        shown = without_credentials(shlex.join(command))
        reading, writing = os.pipe()
        with open(self.log, "ab", buffering=0) as log:
            log.write(f"$ {shown}\n".encode(errors="replace"))
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(SUPERVISOR), str(reading), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder or self.folder,
                    env=dict(os.environ if variables is None else variables),
                    pass_fds=(reading, *self.locks),
                    start_new_session=True,
                )
            except BaseException:
                os.close(writing)
                raise
            finally:
                os.close(reading)
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired as error:
                raise CommandFailed(what, f"not done within {timeout_s:g} s") from error
            finally:
                os.close(writing)
                process.wait()
        if code != 0:
            raise CommandFailed(what, f"exit {code}", full=code == 128 + signal.SIGXFSZ, code=code)

    @staticmethod
    def wheels_in(folder: Path) -> tuple[Path, ...]:
        """The wheels that lie in a folder; what is a link or no file is left out."""
        if not folder.is_dir() or folder.is_symlink():
            return ()
        return tuple(sorted(path for path in folder.glob("*.whl") if path.is_file() and not path.is_symlink()))


def last_lines(log: Path, count: int = TOLD_LINES) -> list[str]:
    """The lines that say why, or else the last ones."""
    lines = all_lines(log)
    errors = [line for line in lines if re.match(r"(ERROR|error|fatal)\b", line)]
    return (errors or lines)[-count:]


def all_lines(log: Path) -> list[str]:
    """What commands wrote at the end of a log: cleaned, so that an error may quote it."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("$ ")]
    return [one_line(without_credentials(line)) for line in lines]


def says_full(lines: Sequence[str]) -> bool:
    """Whether a command said that it could not write."""
    return any(text in line for text in _FULL for line in lines)


def blames_network(lines: Sequence[str]) -> str:
    """The last line by which pip or git blame the network, which says nothing of a build; empty if there is none."""
    return next((line for line in reversed(lines) if _NETWORK.search(line)), "")


def without_credentials(text: str) -> str:
    """The text without what stands before the host or in the query of an address."""
    return _QUERY.sub(r"\1?***", _CREDENTIALS.sub("://***@", text))


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
