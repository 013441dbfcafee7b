"""The nightly builds between two dates: those days of which there is a wheel and, where a clone of the project is at
hand, the commits of the main branch that each is made of."""

import shlex
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from bot.bisection.document import Noun
from bot.bisection.git_range import CommitFacts
from bot.bisection.kept_nights import KeptNights
from bot.bisection.nightly_branch import NightlyBranch
from bot.bisection.ranges import FollowUp, Linear
from bot.errors import BotError
from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.presence import why_absent
from torchbenchmark.builds.provide import ask
from torchbenchmark.builds.provider import Request
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.errors import BenchmarkError

MOST_DAYS = 1500  # each is asked for
SHORT = 12  # digits of a commit


class DateRange(Linear):
    """Days with a wheel. A day whose commit of the main branch is that of the day before is left out."""

    noun: Noun = "date"

    def __init__(
        self,
        wheels: str,
        good: str,
        bad: str,
        settings: BuildSettings,
        subject: str,
        branch: NightlyBranch | None = None,
        measuring: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`wheels` is an address without its date, `measuring` the options of the command that say what is measured.
        Raises BotError for what is no date or no such address. Asks nobody."""
        self.wheels, self.settings, self.subject = wheels, settings, subject
        self.branch, self.measuring, self.tell = branch, measuring, tell
        first, last = _date(good, "--good"), _date(bad, "--bad")
        if first >= last:
            raise BotError(f"--good {first} is not before --bad {last}")
        if (last - first).days > MOST_DAYS:
            raise BotError(f"--good {first} to --bad {last}: over {MOST_DAYS} days; name a narrower range")
        self.good, self.bad = first.isoformat(), last.isoformat()
        try:
            if not wheels.startswith(("url:", "nightly:")) or "@" in wheels:
                raise BenchmarkError("names no wheels of dates; write url:TEMPLATE or nightly:INDEX, without a date")
            parse_address(self.address(self.good), subject)
        except BenchmarkError as error:
            raise BotError(f"--wheels (or `builds.dated`): {error}") from error
        self.line: Sequence[str] = ()
        self.kept: KeptNights | None = None  # where wheels may be that are removed by now

    def settle(self, begun: Sequence[str] | None) -> None:
        self.line = begun if begun is not None else self._different(self._there())

    def _there(self) -> list[str]:
        """The days with a wheel, both ends among them."""
        first, last = date.fromisoformat(self.good), date.fromisoformat(self.bad)
        days = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
        reasons = dict(zip(days, self._absent(days), strict=True))
        for end, option in ((self.good, "--good"), (self.bad, "--bad")):
            if reasons[end]:
                there = [day for day in days if not reasons[day]]
                near = f"in the range are {there[0]} to {there[-1]}" if there else "no day of the range has any"
                raise BotError(f"{option} {end}: {reasons[end]}; {near}")
        missing = [day for day in days if reasons[day]]
        if missing:
            self.tell(f"{len(missing)} of {len(days)} days have no wheel, {missing[0]} among them")
        return [day for day in days if not reasons[day]]

    def _different(self, days: Sequence[str]) -> list[str]:
        """Less those that are made of the same commit as the day before; the ends stay."""
        if self.branch is None:
            return list(days)
        mains = {day: night.main for day in days if (night := self.branch.night(day)) is not None}
        if mains.get(self.good, "?") == mains.get(self.bad):
            raise BotError(
                f"--good {self.good} and --bad {self.bad} are made of one commit of the main branch, "
                f"{mains[self.good][:SHORT]}: no commit lies between them"
            )
        kept = [days[0]]
        for day in days[1:]:
            if day not in mains or mains[day] != mains.get(kept[-1]):
                kept.append(day)
            elif day == self.bad:
                kept[-1] = day
        if len(kept) < len(days):
            self.tell(f"{len(days) - len(kept)} days are made of the same commit as the day before, and left out")
        return kept

    @property
    def subjects(self) -> dict[str, str]:
        nights = {day: self.branch.night(day) for day in self.line} if self.branch is not None else {}
        return {day: f"main {night.main[:SHORT]}" for day, night in nights.items() if night is not None}

    def facts(self, name: str) -> CommitFacts:
        night = self.branch.night(name) if self.branch is not None else None
        return CommitFacts(name, night.subject if night is not None else f"nightly of {name}", "", "")

    def address(self, name: str) -> str:
        return f"{self.wheels}@{name}"

    def prepare(self, name: str) -> str:
        request = self._request()
        address = parse_address(self.address(name), self.subject)
        (reason,) = why_absent([address], request)
        if reason and self.kept is not None and self.kept.bring(address, request):
            self.tell(f"the wheels of {name} come from {self.kept.store.location}, which has kept them")
            return ""
        return reason

    def _absent(self, days: Sequence[str]) -> list[str]:
        """Why each day has no wheel, neither where they are nor in the store; empty for those that have."""
        request = self._request()
        addresses = [parse_address(self.address(day), self.subject) for day in days]
        return [
            "" if reason and self.kept is not None and self.kept.find(address, request) is not None else reason
            for address, reason in zip(addresses, why_absent(addresses, request), strict=True)
        ]

    def _request(self) -> Request:
        return ask(BuildCache.open(), self.settings, subject=self.subject)

    def follow_up(self, names: tuple[str, ...]) -> FollowUp | None:
        """The commits that came in between the build before these days and the last of them."""
        place = self.line.index(names[0]) if names and names[0] in self.line else 0
        if self.branch is None or place == 0:
            return None
        before, last = self.branch.night(self.line[place - 1]), self.branch.night(names[-1])
        if before is None or last is None:
            return None
        command = ["torchbench", "bisect", "--repo", str(self.branch.folder), "--good", before.main, "--bad", last.main]
        return FollowUp(
            names,
            before.main,
            last.main,
            self.branch.count(before.main, last.main),
            shlex.join([*command, *self.measuring]),
        )


def _date(text: str, option: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.isoformat() != text:
        raise BotError(f"{option} {text[:60]!a}: is no date, such as 2026-11-20")
    return found
