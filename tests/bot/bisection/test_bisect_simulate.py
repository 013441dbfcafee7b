"""`torchbench bisect --simulate`, and the ranges that it makes up."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from bot import bisect
from bot.bisection.simulated_range import Scenario, draw_pairs, draw_range
from bot.bisection.simulation import judged, simulate
from bot.bisection.state import Rules, new_search, with_build
from bot.bisection.table import GROUPS, scenarios, wilson
from bot.bisection.verdict import Suspects, Verdict
from torchbenchmark.terminal import new_app, run_app


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def torchbench(capsys) -> Callable[..., Ended]:
    app = new_app("torchbench")
    app.callback()(lambda: None)
    bisect.register(app)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run_app(app, ["bisect", *map(str, arguments)])
        return Ended(ended.value.code, *capsys.readouterr())

    return run


def test_the_same_seeds_end_alike_and_others_differently():
    scenario = Scenario(32, (2.0,), 0.2, 3.0)
    first = simulate(scenario, range(4), weighted=False)
    assert simulate(scenario, range(4), weighted=False) == first
    assert simulate(scenario, range(10, 14), weighted=False) != first


def test_at_two_sd_the_culprit_is_found_with_few_builds():
    ended = simulate(Scenario(64, (2.0,), 0.2, 3.0), range(20), weighted=False)
    assert sum(one.held for one in ended) >= 19
    assert np.median([one.builds for one in ended]) <= np.log2(64) + 3
    assert not any(one.certain_but_wrong for one in ended)


def test_a_weighted_prior_finds_what_follows_it_in_fewer_builds():
    scenario = Scenario(256, (5.0,))
    builds = {on: sum(one.builds for one in simulate(scenario, range(15), weighted=on)) for on in (False, True)}
    assert builds[True] < builds[False]


def test_no_step_is_told():
    assert all(one.held and one.builds == 0 for one in simulate(Scenario(64, ()), range(10), weighted=True))


def test_made_up_commits_break_as_often_and_in_such_runs_as_they_should():
    one = draw_range(Scenario(20_000, (1.0,), 0.2, 3.0), np.random.default_rng(1))
    broken = "".join("." if builds else "x" for builds in one.builds)
    runs = re.findall("x+", broken)
    assert broken.count("x") / len(broken) == pytest.approx(0.2, abs=0.02)
    assert np.mean([len(run) for run in runs]) == pytest.approx(3, abs=0.2)
    assert one.builds[0]
    assert one.builds[-1]


@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_made_up_pairs_have_the_level_and_the_spread_that_they_should(tails):
    pairs = draw_pairs(Scenario(1, (), tails=tails), 2.0, 100_000, np.random.default_rng(1))
    assert np.mean(pairs) == pytest.approx(2, abs=0.02)
    assert np.std(pairs) == pytest.approx(1, abs=0.1)


def test_a_verdict_that_names_the_wrong_commit_for_certain_is_counted():
    one = draw_range(Scenario(8, (2.0,)), np.random.default_rng(3))
    wrong = str(one.culprits[0] % 8 + 1)
    state = new_search([str(place) for place in range(9)], Rules(pair_sd=1.0))
    state = with_build(with_build(state, "0", ok=True), "8", ok=True)
    suspects = Suspects((wrong,), (wrong,), 0.995, "certain", 2.0)
    ended = judged(one, state, Verdict("culprit", (suspects,)))
    assert ended.certain_but_wrong
    assert not ended.held
    assert judged(one, state, Verdict("not reproduced")).certain_but_wrong


@pytest.mark.parametrize(("hits", "low", "high"), [(0, 0.0, 0.2775), (10, 0.7225, 1.0), (9, 0.5958, 0.9821)])
def test_the_interval_of_a_share_is_wilsons(hits, low, high):
    assert wilson(hits, 10) == pytest.approx((low, high), abs=1e-4)


def test_the_groups_hold_the_ranges_that_the_search_is_held_to():
    by_step = {(one.commits, one.steps, one.broken > 0) for name in "1235" for _, one in scenarios(name)}
    assert by_step >= {(n, (s,), b) for n in (16, 64, 256, 1024) for s in (1.0, 2.0, 3.0, 5.0) for b in (False, True)}
    assert all(not one.steps for _, one in scenarios("none"))
    assert all(len(one.steps) == 2 for _, one in scenarios("two"))


def test_the_command_writes_the_table_with_its_seeds(torchbench, tmp_path):
    out = tmp_path / "table.md"
    ended = torchbench("--simulate", "--group", "none", "--replicates", 2, "--seed", 7, "--out", out)
    assert ended.returncode == 0, ended.stderr
    written = out.read_text()
    assert "2 ranges of each kind, seeds from 7" in written
    assert "| no step | 64 | 100.0 (34.2–100.0) |" in written
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert len(rows) == len(scenarios("none")) + 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "or --simulate"),
        (["--simulate", "--group", "4"], f"--group 4: no such ranges; there are {', '.join(GROUPS)}"),
        (["--simulate", "--out", "/no/such/folder/x.md"], "names a file in a folder that exists"),
        (
            ["--simulate", "--group", "none", "--group", "none", "--replicates", 1, "--out", "/dev/full"],
            "/dev/full: cannot be written: No space left on device",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(torchbench, arguments, told):
    ended = torchbench(*arguments)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1
