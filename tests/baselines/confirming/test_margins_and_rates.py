"""What builds compared with themselves say of the margin, and the rates that a class has come to."""

import math

import numpy as np
import pytest
from night_factory import A, run_of
from small_fleet import CHANNEL, ScriptedBench, calm, known_state, seen_of_logs, shifted, stepped
from typer.testing import CliRunner

from baselines import cli
from baselines.confirming.margins import ENOUGH, estimated_margins, sharp_effects, with_margins
from baselines.confirming.night import run_night
from baselines.confirming.rates import at_most, rates_of, told
from baselines.confirming.rules import Rules
from baselines.confirming.state import Accounts, ClassState
from baselines.confirming.stored_state import write_state
from baselines.runs import store_run
from baselines.store import open_store
from torchbenchmark.terminal import new_app

RULES = Rules()
SHARP, DULL = RULES.margin, 1.01 * RULES.margin
NAME = f"test_eval[m03-cuda-eager] {CHANNEL}"


def accounts(effects, widths=None, **others) -> Accounts:
    widths = [SHARP] * len(effects) if widths is None else widths
    return Accounts(aa_effects={CHANNEL: list(effects)}, aa_half_widths={CHANNEL: list(widths)}, **others)


def margin(effects, widths=None) -> float:
    return RULES.margin if not (found := estimated_margins(accounts(effects, widths), RULES)) else found[CHANNEL]


def test_of_forty_comparisons_the_third_largest_is_the_margin_and_of_fewer_nothing_is_known():
    effects = [0.0002 * number * (-1) ** number for number in range(1, ENOUGH + 1)]
    assert margin(effects) == pytest.approx(0.0076)
    assert estimated_margins(accounts(effects[1:]), RULES) == {}
    state = ClassState(accounts=accounts(effects[1:]))
    assert RULES.margin_of(CHANNEL) == with_margins(RULES, state).margin_of(CHANNEL) == RULES.margin


def test_two_outliers_of_forty_change_nothing_and_no_number_of_them_more_than_doubles_it():
    assert margin([0.006] * (ENOUGH - 2) + [9.0, -9.0]) == pytest.approx(0.006)
    assert margin([9.0] * ENOUGH) == 2 * RULES.margin
    assert margin([0.0] * ENOUGH) == pytest.approx(0.8 * RULES.margin)


def test_comparisons_of_noisy_tests_say_nothing_of_the_margin():
    quiet, noisy = [0.006] * ENOUGH, [0.06] * 3 * ENOUGH
    widths = [DULL] * len(noisy) + [SHARP] * len(quiet)
    assert margin(noisy + quiet, widths) == pytest.approx(0.006)
    assert estimated_margins(accounts(noisy, widths[: len(noisy)]), RULES) == {}


def test_comparisons_of_before_widths_were_kept_are_left_out():
    known = accounts([0.1, 0.2, 0.003], [SHARP])
    assert sharp_effects(known, CHANNEL, RULES) == [0.003]


def test_a_night_goes_by_the_margin_that_is_known_by_then_and_tells_it():
    """A step of .7 %: of a class whose builds differ from themselves by 1 %, that is nobody's business."""
    logs = stepped(calm(20, 90, 0.0003), [3], 60, 0.007)
    seen = seen_of_logs(logs, until=75, variances=np.full(logs.shape, 0.0003**2))
    for effects, expected in (([], {CHANNEL: ["confirmed"]}), ([0.01] * ENOUGH, {})):
        state = known_state(seen)
        state.accounts = accounts(effects)
        outcome = run_night(seen, state, ScriptedBench(shifted(0.007, 3, spread=0.0003)), RULES)
        assert {one.trial.key.channel: [one.decision.verdict] for one in outcome.tried} == expected
        assert state.outcome.margins == ({CHANNEL: pytest.approx(math.expm1(0.01))} if effects else {})


def test_what_a_build_against_itself_shows_is_kept_with_its_width():
    logs = calm(20, 90)
    state = known_state(seen_of_logs(logs, until=60))
    for night in range(60, 64):
        run_night(seen_of_logs(logs, until=night), state, ScriptedBench(shifted(0.0)), RULES)
    effects, widths = state.accounts.aa_effects[CHANNEL], state.accounts.aa_half_widths[CHANNEL]
    assert len(effects) == len(widths) == 4 and all(0 < width < 0.005 for width in widths)


def test_rates_are_those_of_thirty_nights():
    known = Accounts(nights=90, screened=9000, candidates=30, confirmed=6, filed=3, aa_tries=80, aa_covered=76)
    first, second = told(rates_of(known))
    assert first == (
        "in 30 nights, by the 90 nights so far: 3,000 series screened, 10.0 candidates, 2.0 confirmed, "
        "1.0 filed or updated"
    )
    assert second == (
        "a build against itself, 80 times: 0 would have been confirmed (at most 3.7%), 95% of the intervals hold 0"
    )
    assert told(rates_of(Accounts())) == []


def test_of_fewer_than_thirty_nights_what_was_is_told_and_nothing_is_made_of_it():
    (first,) = told(rates_of(Accounts(nights=4, screened=16, candidates=1, confirmed=1, filed=0)))
    assert first == "in 4 nights so far: 16 series screened, 1 candidate, 1 confirmed, 0 filed or updated"


@pytest.mark.parametrize(
    ("errors", "tries", "limit"), [(0, 100, 0.02951), (5, 100, 0.10225), (3, 3, 1.0), (300, 1500, 0.21775)]
)
def test_the_limit_of_a_share_is_that_of_clopper_and_pearson(errors, tries, limit):
    assert at_most(errors, tries) == pytest.approx(limit, abs=1e-5)


def test_the_command_shows_the_rates_of_every_class_that_was_confirmed(tmp_path):
    store, app = open_store(str(tmp_path)), new_app("test")
    cli.register(app)

    def shown():
        return CliRunner().invoke(app, ["baseline", "rates", "--store", str(tmp_path)]).output.split()

    store_run(store, run_of(0, {A: 1.0}))
    assert " ".join(shown()) == "no night was confirmed yet"
    state = ClassState(accounts=accounts([0.006] * ENOUGH, nights=60, candidates=5, aa_tries=40, aa_covered=38))
    write_state(store, "smoke", "cpu-4t", state, None)
    told = shown()
    assert {"cpu-4t", "60", "2.5", "40", "95%", "0.60%"} <= set(told)
