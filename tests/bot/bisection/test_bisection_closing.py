"""What is measured after the verdict, by an instrument that is made up: the parent against the culprit, and the bad end
without it; killed anywhere it goes on, and nothing is measured or built twice."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from bisecting import names
from rich.console import Console

from baselines.store import FolderStore
from bot import bisect
from bot.bisection.account import Found, cost, sentence
from bot.bisection.closing import LEVEL, PAIRS, Closing, checked
from bot.bisection.document import Asked, Desk, Document, End, Made, SideRun, Visit
from bot.bisection.driving import Bisecting, View
from bot.bisection.live import TerminalView
from bot.bisection.report import content, markdown
from bot.bisection.reverting import DoesNotApply
from bot.bisection.script import BaseCannotMeasure, CannotMeasure
from bot.bisection.verdict import Verdict
from torchbenchmark.statistics.signed_rank import fewest_pairs

ASKED = Asked(good="0", bad="8", measure="true")
EXACT = ASKED.model_copy(update={"compared": "status"})
REVERTED = "8 without 5"


class Killed(Exception):
    """Ends what goes on, as a kill would."""


@dataclass
class MadeUp:
    """Commits have levels (log) and noise, or outcomes. It is killed before each of the runs in `kills`."""

    level: Callable[[str], float | str]
    after: Callable[[str], float | str] | None = None  # from the closing comparisons on
    broken: tuple[str, ...] = ()
    kills: set[int] = field(default_factory=set)
    runs: int = 0
    builds: Counter = field(default_factory=Counter)
    kept: Counter = field(default_factory=Counter)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def build(self, commit: str) -> Made:
        self._step()
        self.builds[commit] += 1
        return Made(commit=commit, ok=commit not in self.broken, reason="no compiler", seconds=1)

    def measure(self, good: str, visit: Visit, keep: Callable[[Visit], None]) -> Visit:
        exact = isinstance(self.level("0"), str)
        while len(visit.ends if exact else visit.runs) < (visit.n if exact else 2 * visit.n):
            self._step()
            if exact:
                end = End(outcome=self.level(visit.commit), why="because | `it`", seconds=1)
                visit = visit.model_copy(update={"ends": (*visit.ends, end)})
            else:
                side = ("good", "commit")[len(visit.runs) % 2]
                level = self.level(good if side == "good" else visit.commit)
                if level is None:
                    raise BaseCannotMeasure("crash") if side == "good" else CannotMeasure("crash")
                run = SideRun(side=side, value=level + float(self.random.normal(0, 0.007)), seconds=1)
                visit = visit.model_copy(update={"runs": (*visit.runs, run)})
            self.kept[visit.number, visit.commit] += 1
            keep(visit)
        if exact:
            return visit
        pairs = zip(visit.runs[::2], visit.runs[1::2], strict=True)
        return visit.model_copy(update={"values": tuple(head.value - base.value for base, head in pairs)})

    def _step(self) -> None:
        self.runs += 1
        if self.runs in self.kills:
            raise Killed


def revert(culprit: str) -> str:
    return f"8 without {culprit}"


def slower(at: int = 5, by: float = 0.08) -> Callable[[str], float]:
    return lambda commit: 0.0 if "without" in commit or int(commit) < at else by


def searched(tmp_path, instrument: MadeUp, asked: Asked = ASKED, view: View | None = None) -> tuple[Document, Verdict]:
    ended = Bisecting(asked, names(8), Desk(FolderStore(tmp_path), "k"), instrument, view or View()).run()
    return ended.document, ended.verdict


def closed(
    tmp_path,
    instrument: MadeUp,
    asked: Asked = ASKED,
    *,
    later: Callable | None = None,
    make: Callable[[str], str] = revert,
    view: View | None = None,
) -> Found:
    """A bisection from its start, or from where it was killed, to its end."""
    view = view or View()
    desk = Desk(FolderStore(tmp_path), "k")
    ended = Bisecting(asked, names(8), desk, instrument, view).run()
    instrument.level = later or instrument.level
    document = Closing(ended.document, desk, instrument, view, "8", make).run(ended.verdict)
    return Found(document, checked(document, ended.verdict), {"5": "<b>"})


def test_a_culprit_is_measured_against_its_parent_and_the_bad_end_without_it(tmp_path):
    found = closed(tmp_path, MadeUp(slower()))

    assert found.verdict.suspects[0].certainty == "certain"
    (change,) = content(found)["changes"]
    parent, without = change["closing"]
    assert (parent["what"], parent["base"], parent["commit"], parent["shows_it"]) == ("parent", "4", "5", True)
    assert parent["interval"][0] < 0.0833 < parent["interval"][1]
    assert parent["interval"][0] < parent["change"] < parent["interval"][1]
    assert len(parent["log_ratios"]) == 12
    assert (without["base"], without["commit"], without["takes_it_back"]) == ("8", REVERTED, True)
    assert without["interval"][0] < -0.0769 < without["interval"][1]
    assert re.search(r"5 “<b>” \(\+8\S* % \[\+\S+, \+\S+\] \(worse\); probability", sentence(found))
    assert re.search(
        r"; measured again, parent against culprit: \+8.* in 12 pairs; the search had \+8", sentence(found)
    )
    assert "; reverting it on the bad end: -7" in sentence(found)
    assert re.search(r"\n\n\*\*\+8\S* % \[\S+, \S+\] \(worse\)\*\* at `5`", markdown(found))
    assert markdown(found).startswith("## The culprit is found\n")
    assert "\n\n**Measured again, parent against culprit: +8" in markdown(found)
    pairs = sum(len(visit.values) for visit in found.document.visits)
    assert f"; {pairs + 24} pairs;" in cost(found.document)


@pytest.mark.parametrize("asked", [ASKED, EXACT], ids=["times", "exact"])
def test_killed_at_every_step_it_goes_on_and_does_nothing_twice(tmp_path, asked):
    level = slower() if asked is ASKED else lambda commit: "crash" if slower()(commit) else "ok"
    whole = MadeUp(level)
    expected = closed(tmp_path / "whole", whole, asked)
    instrument = MadeUp(level, kills=set(range(1, 10 * whole.runs, 2)))
    kills = 0
    while True:
        try:
            found = closed(tmp_path / "killed", instrument, asked)
            break
        except Killed:
            kills += 1

    assert kills > whole.runs / 2
    assert max(instrument.builds.values()) == 1
    assert sum(instrument.kept.values()) == sum(whole.kept.values())
    visits = found.document.all_visits
    assert len({visit.number for visit in visits}) == len(visits)
    if asked is EXACT:
        assert sentence(found) == sentence(expected)
    again = MadeUp(level)
    assert closed(tmp_path / "killed", again, asked).document == found.document
    assert again.runs == 0


def test_a_change_that_new_pairs_do_not_show_is_no_more_certain(tmp_path):
    found = closed(tmp_path, MadeUp(slower()), later=lambda commit: 0.0)

    assert found.verdict.kind == "culprit"
    assert found.verdict.suspects[0].certainty == "likely"
    assert "likely; measured again, parent against culprit: the closing comparison does not show it: " in sentence(
        found
    )
    assert markdown(found).startswith("## The likely culprit\n")
    assert "(likely)" in markdown(found)
    assert content(found)["changes"][0]["closing"][0]["shows_it"] is False


def test_a_change_of_the_other_sign_is_not_shown_either(tmp_path):
    found = closed(tmp_path, MadeUp(slower()), later=slower(by=-0.08))
    assert found.verdict.suspects[0].certainty == "likely"
    assert "does not show it: -7" in sentence(found)


def test_what_cannot_be_reverted_built_or_measured_is_told(tmp_path):
    def conflict(culprit: str) -> str:
        raise DoesNotApply("it does not revert cleanly: CONFLICT in `a|b`")

    one = closed(tmp_path / "1", MadeUp(slower()), make=conflict)
    assert "reverting it on the bad end: not measured, it does not revert cleanly: CONFLICT" in sentence(one)
    assert "`Reverting it on the bad end: not measured, it does not revert cleanly: CONFLICT in 'a¦b'.`" in markdown(
        one
    )
    assert "**Measured again, parent against culprit: +" in markdown(one)

    two = closed(tmp_path / "2", MadeUp(slower(), broken=(REVERTED,)))
    assert "reverting it on the bad end: not measured, 8 without 5 does not build" in sentence(two)
    assert two.verdict.suspects[0].certainty == "certain"

    three = closed(tmp_path / "3", MadeUp(slower()), later=lambda commit: None if commit in ("4", "8") else 0.0)
    assert "parent against culprit: not measured, 4 cannot be measured: crash" in sentence(three)
    assert three.verdict.suspects[0].certainty == "certain"  # nothing was said against it

    last = closed(tmp_path / "4", MadeUp(slower(at=8)))
    assert "reverting it on the bad end: not measured, it is the bad end itself" in sentence(last)


def test_a_parent_that_the_search_had_not_to_build_is_built(tmp_path):
    """As where a prior is so sure of one commit that no neighbour has to be looked at."""
    instrument = MadeUp(slower())
    document, verdict = searched(tmp_path, instrument)
    unbuilt = document.model_copy(update={"made": tuple(one for one in document.made if one.commit != "4")})
    desk = Desk(FolderStore(tmp_path), "k")
    desk.read()
    desk.write(unbuilt)
    closing = Closing(unbuilt, desk, instrument, View(), "8", revert)
    assert "4" in [one.commit for one in closing.run(verdict).made]


def test_a_change_that_stays_without_its_culprit_is_told_and_is_as_certain(tmp_path):
    """As where later commits have come to rest on it."""
    found = closed(tmp_path, MadeUp(lambda commit: 0.08 if "without" in commit else slower()(commit)))

    assert found.verdict.suspects[0].certainty == "certain"
    assert "in 12 pairs, which does not take the change back" in sentence(found)
    assert content(found)["changes"][0]["closing"][1]["takes_it_back"] is False


def test_a_revert_whose_pairs_hold_both_nothing_and_half_of_the_change_is_left_open(tmp_path):
    noisy = np.random.default_rng(3)

    def later(commit: str) -> float:
        return slower()(commit) + (float(noisy.normal(0, 0.12)) if "without" in commit else 0.0)

    found = closed(tmp_path, MadeUp(slower()), later=later)

    revert = content(found)["changes"][0]["closing"][1]
    assert revert["interval"][0] < -0.04 < 0 < revert["interval"][1]
    assert revert["takes_it_back"] is None
    assert "in 12 pairs, which leaves open whether it does" in sentence(found)


def test_ends_that_a_culprit_lies_between_are_told_to_differ(tmp_path):
    assert content(closed(tmp_path, MadeUp(slower())))["ends"].startswith("the ends differ in ")


def test_the_command_knows_what_an_interval_takes():
    assert (fewest_pairs(LEVEL), PAIRS) == (bisect.FEWEST_CLOSING, bisect.CLOSING)


def test_exact_runs_of_a_culprit_are_made_again(tmp_path):
    def level(commit: str) -> str:
        return "crash" if slower()(commit) else "ok"

    found = closed(tmp_path / "1", MadeUp(level), EXACT)
    assert found.verdict.suspects[0].certainty == "certain"
    assert "parent against culprit: ok -> crash: because | `it` (worse)" in sentence(found)
    assert "reverting it on the bad end: crash: because | `it` -> ok (better)" in sentence(found)
    assert "`Measured again, parent against culprit: ok -> crash: because ¦ 'it' (worse).`" in markdown(found)
    assert [len(side) for side in content(found)["changes"][0]["closing"][0]["outcomes"]] == [3, 3]

    gone = closed(tmp_path / "2", MadeUp(level), EXACT, later=lambda commit: "ok")
    assert gone.verdict.suspects[0].certainty == "likely"
    assert "the closing comparison does not show it: ok -> ok" in sentence(gone)


def test_two_culprits_are_each_closed_and_a_set_is_not(tmp_path):
    both = closed(
        tmp_path / "1",
        MadeUp(lambda commit: 0.0 if "without" in commit else 0.1 * ((int(commit) > 1) + (int(commit) > 5))),
    )
    assert both.verdict.kind == "several culprits"
    assert [one.culprit for one in both.document.closing] == ["2", "2", "6", "6"]

    several = closed(tmp_path / "2", MadeUp(slower(), broken=("4", "5")))
    assert several.verdict.kind == "set"
    assert several.document.closing == ()


def test_the_live_view_tells_what_is_measured_again(tmp_path, monkeypatch):
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    monkeypatch.setattr("bot.bisection.live.console", console)
    with TerminalView({"5": "slow"}) as view:
        closed(tmp_path, MadeUp(slower()), view=view)
    told = console.export_text()
    assert "measuring again: 5 slow against its parent 4" in told
    assert "measuring the bad end without 5 slow against the bad end" in told
    assert "] in 12 pairs" in told
