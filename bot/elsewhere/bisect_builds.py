"""Builds that one machine makes and another measures: an archive of wheels for each commit, and what came of it."""

import dataclasses
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.text import Text

from bot.bisection.document import Made, Noun, Visit
from bot.bisection.instruments import Keep, TestsInstrument
from bot.bisection.script import CannotMeasure
from bot.config import NightlyConfig
from bot.culprits.tests_of_suite import with_command
from bot.elsewhere.bisect_answer import LONGEST_S
from bot.elsewhere.bisect_question import BisectQuestion
from bot.elsewhere.plain_file import read_bounded
from bot.errors import BotError
from torchbenchmark.builds.build_errors import BuildFailed
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import ProvidedBuild, provide
from torchbenchmark.builds.workshop import sha256_of
from torchbenchmark.foreign_text import one_line
from torchbenchmark.terminal import console
from torchbenchmark.yaml_files import first_problem

MADE, WHEELS = "made.json", "wheels.zip"
LARGEST_MADE = 2**20


class NotHere(Exception):
    """A commit is asked for that this round has no build of: it is one for the next."""


def name_of(commit: str) -> str:
    """Of the artifact of a commit."""
    return f"made-{commit[:12]}"


def build_commit(config: NightlyConfig, question: BisectQuestion, commit: str, timeout_s: float, out: Path) -> Made:
    """Build a commit of a question on this machine, and leave the wheels and what came of it in a folder."""
    if commit not in question.builds:
        raise BotError(f"{one_line(commit)}: is not among the commits that are to be built")
    asked = question.commission.asked
    settings = with_command(config.builds, asked.build, timeout_s)
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        address = f"git:{question.repository}@{commit}"
        with provide(address, BuildCache.open(), settings, subject=asked.subject) as build:
            _pack(build, out / WHEELS)
        made = Made(commit=commit, ok=True, seconds=time.monotonic() - began)
    except BuildFailed as error:
        reason = one_line(f"{error}{': ' + ' | '.join(error.lines) if error.lines else ''}")
        made = Made(commit=commit, ok=False, reason=reason, seconds=time.monotonic() - began)
    (out / MADE).write_text(made.model_dump_json() + "\n", encoding="utf-8")
    return made


def _pack(build: ProvidedBuild, to: Path) -> None:
    cache = BuildCache.open()
    with zipfile.ZipFile(to, "w") as archive:  # wheels are compressed already
        for wheel in build.wheels:
            archive.write(cache.wheel_path(wheel), wheel.file)


def made_in(folder: Path, commits: Sequence[str]) -> dict[str, tuple[Made, Path]]:
    """What has come of the commits, with the archive of each. One whose job has left nothing, or nothing that can be
    used, is not in it: its build script could have left anything, and must not keep back the others."""
    found = {}
    for commit in commits:
        place = folder / name_of(commit)
        if not (place / MADE).is_file():
            continue
        try:
            made = Made.model_validate_json(read_bounded(place / MADE, LARGEST_MADE))
        except (BotError, ValidationError) as error:
            told = first_problem(error) if isinstance(error, ValidationError) else error
            console.print(Text(one_line(f"{place.name}/{MADE}: left out: {told}")), style="yellow")
            continue
        if made.commit != commit:
            continue
        if made.seconds > LONGEST_S or (made.ok and not _is_plain(place / WHEELS)):
            console.print(
                Text(f"{place.name}: left out: its wheels are missing, or its seconds are none"), style="yellow"
            )
            continue
        found[commit] = (made, place / WHEELS)
    return found


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


@dataclasses.dataclass(frozen=True)
class Archives:
    """The addresses of commits whose wheels lie in archives."""

    good: str
    archives: Mapping[str, Path]
    noun: Noun = "commit"

    def address(self, name: str) -> str:
        if name not in self.archives:
            raise NotHere(name)
        path = self.archives[name].absolute()
        return f"url:file://{path}#sha256={sha256_of(path)}"

    def prepare(self, name: str) -> str:
        return ""


@dataclasses.dataclass(frozen=True)
class WheelsInstrument(TestsInstrument):
    """Measures commits whose wheels are there, and builds none."""

    def build(self, commit: str) -> Made:
        raise NotHere(commit)

    def measure(self, good: str, visit: Visit, keep: Keep) -> Visit:
        self.provided(good)
        try:
            self.provided(visit.commit)
        except BuildFailed as error:
            raise CannotMeasure(one_line(f"its wheels cannot be installed: {error}")) from error
        return super().measure(good, visit, keep)
