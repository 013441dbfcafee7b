"""The releases of a package between two of them, as its index has them."""

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from bot.bisection.document import Noun
from bot.bisection.git_range import CommitFacts
from bot.bisection.ranges import FollowUp, Linear
from bot.errors import BotError
from torchbenchmark.builds.build_errors import BuildUnavailable
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import ask
from torchbenchmark.builds.releases import Release, releases_of
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.environment import normalised_name
from torchbenchmark.errors import BenchmarkError

MOST_NAMED = 8  # versions, in an error


class ReleaseRange(Linear):
    """Versions by their order. Yanked ones and pre-releases are left out unless they are an end, or `pre`."""

    noun: Noun = "version"

    def __init__(self, package: str, good: str, bad: str, settings: BuildSettings, *, pre: bool = False) -> None:
        """Raises BotError for what is no version, or a good end that is not before the bad. Asks nobody."""
        self.package = normalised_name(package)
        self.settings = settings
        self.pre = pre
        first, last = _version(good, "--good"), _version(bad, "--bad")
        if first >= last:
            raise BotError(f"--good {first} is not before --bad {last}: releases go by the order of their versions")
        self.good, self.bad = str(first), str(last)
        self.line: Sequence[str] = ()
        self._known: dict[str, Release] = {}

    def settle(self, begun: Sequence[str] | None) -> None:
        try:
            request = ask(BuildCache.open(), self.settings, subject=self.package)
            found = releases_of(self.package, self.settings, request.target, request.base)
        except BuildUnavailable:
            if begun is None:
                raise
            found = []  # what is installed already can be measured without an index
        except BenchmarkError as error:
            raise BotError(f"--releases {self.package}: {error}") from error
        self._known = {str(one.version): one for one in found}
        self.line = begun if begun is not None else self._line(found)

    def _line(self, found: Sequence[Release]) -> list[str]:
        ends = {Version(self.good): "--good", Version(self.bad): "--bad"}
        there = [one.version for one in found]
        for end, option in ends.items():
            if end not in there:
                raise BotError(f"{option} {end}: the index has no such version of {self.package}; {_near(end, there)}")
        low, high = ends
        return [
            str(one.version)
            for one in found
            if one.version in ends
            or (low < one.version < high and not one.yanked and (self.pre or not one.version.is_prerelease))
        ]

    @property
    def subjects(self) -> dict[str, str]:
        return {name: f"of {one.uploaded}" if one.uploaded else "" for name, one in self._known.items()}

    def facts(self, name: str) -> CommitFacts:
        known = self._known.get(name)
        return CommitFacts(name, f"{self.package} {name}", "", known.uploaded if known is not None else "")

    def address(self, name: str) -> str:
        return f"release:{self.package}=={name}"

    def prepare(self, name: str) -> str:
        known = self._known.get(name)
        return known.why_not if known is not None else ""

    def follow_up(self, names: tuple[str, ...]) -> FollowUp | None:
        return None


def _version(text: str, option: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise BotError(f"{option} {text[:60]!a}: is no version of a release, such as 1.4.2") from error


def _near(end: Version, there: Sequence[Version]) -> str:
    before, after = [one for one in there if one < end], [one for one in there if one > end]
    names = [str(one) for one in (*before[-MOST_NAMED // 2 :], *after[: MOST_NAMED // 2])]
    return f"near it are {', '.join(names)}" if names else "it has none at all"
