"""Evidence pair by pair: what a bet pays, when it is decided, and that looking after every pair costs nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark.statistics.sign_e_process import (
    SIGN_BETS,
    SOFT_BETS,
    Bet,
    confirming_threshold,
    decide,
    e_path,
    wins_needed,
)

MARGIN = 0.005
WIN, LOSS = 0.03, -0.03
signs = st.lists(st.sampled_from([WIN, LOSS]), min_size=0, max_size=30)


def worth(wins: int, losses: int) -> float:
    return sum((1 + stake) ** wins * (1 - stake) ** losses for stake in (0.5, 0.75, 0.92)) / 3


@given(signs)
def test_the_e_value_is_the_mean_capital_of_three_gamblers(pairs):
    by_hand = [worth(pairs[:n].count(WIN), pairs[:n].count(LOSS)) for n in range(1, len(pairs) + 1)]
    assert e_path(pairs, margin=MARGIN) == pytest.approx(by_hand)


@given(st.integers(1, 12), st.integers(0, 2**12 - 1))
def test_one_more_fair_pair_leaves_the_expected_e_value_where_it_is(length, pattern):
    before = [WIN if pattern >> bit & 1 else LOSS for bit in range(length)]
    after = [e_path([*before, pair], margin=MARGIN)[-1] for pair in (WIN, LOSS)]
    assert np.mean(after) == pytest.approx(e_path(before, margin=MARGIN)[-1])


def test_a_soft_bet_pays_in_proportion_up_to_its_reach():
    bets, sd = (Bet(0.5, reach=2.0),), 0.01
    excess = np.array([0.0, 0.005, -0.01, 0.02, 0.5])
    paid = [e_path([MARGIN + x], margin=MARGIN, bets=bets, pair_sd=sd)[0] for x in excess]
    assert paid == pytest.approx([1.0, 1.125, 0.75, 1.5, 1.5])


def test_a_pair_exactly_at_the_margin_is_a_loss():
    assert e_path([0.0], margin=0.0) == pytest.approx([worth(0, 1)])


def test_faster_is_slower_in_the_mirror():
    ratios = np.random.default_rng(1).normal(-0.01, 0.01, 24)
    for bets in (SIGN_BETS, SIGN_BETS + SOFT_BETS):
        mirrored = e_path(ratios, margin=MARGIN, direction="faster", bets=bets, pair_sd=0.01)
        assert mirrored == pytest.approx(e_path(-ratios, margin=MARGIN, bets=bets, pair_sd=0.01))


def test_evidence_of_very_many_pairs_neither_overflows_nor_vanishes_into_nonsense():
    path = e_path([WIN] * 3000, margin=MARGIN)
    assert np.isfinite(path).all() and (np.diff(path) >= 0).all()
    assert e_path([LOSS] * 3000, margin=MARGIN)[-1] == pytest.approx(0.0)


def test_a_lone_candidate_is_confirmed_after_nine_straight_wins_and_one_of_twenty_after_thirteen():
    for candidates, needed in ((1, 9), (20, 13)):
        assert worth(needed - 1, 0) < confirming_threshold(candidates) <= worth(needed, 0)
        decision = decide([WIN] * 24, margin=MARGIN, candidates=candidates)
        assert (decision.verdict, decision.pairs) == ("confirmed", needed)
        assert wins_needed([], margin=MARGIN, candidates=candidates) == needed
        assert decision.threshold == candidates / 0.01


def test_three_straight_losses_are_futile_and_two_are_not():
    assert decide([LOSS] * 2, margin=MARGIN, candidates=20).verdict == "continue"
    decision = decide([LOSS] * 24, margin=MARGIN, candidates=20)
    assert (decision.verdict, decision.pairs) == ("futile", 3)
    assert decision.e_value == pytest.approx(worth(0, 3)) and decision.e_value < 1 / 20


def test_what_is_measured_after_the_verdict_does_not_change_it():
    confirmed = decide([WIN] * 13, margin=MARGIN, candidates=20)
    assert decide([WIN] * 13 + [LOSS] * 11, margin=MARGIN, candidates=20) == confirmed
    futile = decide([LOSS] * 3, margin=MARGIN, candidates=20)
    assert decide([LOSS] * 3 + [WIN] * 21, margin=MARGIN, candidates=20) == futile


def test_pairs_that_take_turns_are_futile_or_undecided_at_the_last_pair_and_never_confirmed():
    decision = decide([WIN, WIN, WIN, LOSS] * 6, margin=MARGIN, candidates=200)
    assert (decision.verdict, decision.pairs) == ("undecided", 24)
    assert decide([WIN, WIN, WIN, LOSS] * 5, margin=MARGIN, candidates=200).verdict == "continue"


@given(signs.filter(lambda pairs: len(pairs) <= 24))
def test_serial_use_pair_by_pair_gives_the_verdict_of_the_whole(pairs):
    whole = decide(pairs, margin=MARGIN, candidates=3)
    for length in range(len(pairs) + 1):
        serial = decide(pairs[:length], margin=MARGIN, candidates=3)
        if serial.verdict != "continue":
            break
    assert serial == whole


def test_evidence_of_earlier_nights_counts_and_is_not_judged_again():
    earlier = [LOSS] * 3 + [WIN] * 6
    decision = decide([WIN] * 24, margin=MARGIN, candidates=5, carried=earlier)
    straight = e_path([*earlier, *[WIN] * 24], margin=MARGIN)[len(earlier) :]
    assert decision.verdict == "confirmed"
    assert decision.pairs == 1 + int(np.argmax(straight >= 500))
    assert decide([], margin=MARGIN, candidates=5, carried=earlier).e_value == pytest.approx(worth(6, 3))


any_pairs = st.lists(st.floats(-0.05, 0.05, allow_nan=False), max_size=24)


@given(any_pairs, st.sampled_from([SIGN_BETS, SOFT_BETS]), st.sampled_from(["slower", "faster"]), any_pairs)
def test_giving_up_by_the_last_bet_never_makes_a_confirmation_and_is_never_later(pairs, bets, direction, carried):
    options = {"margin": MARGIN, "candidates": 2, "bets": bets, "pair_sd": 0.01, "direction": direction}
    options |= {"futile_below": 0.2, "carried": carried}
    usual, bold = decide(pairs, **options), decide(pairs, futile_by_last_bet=True, **options)
    assert bold.threshold == usual.threshold and bold.pairs <= usual.pairs
    if bold.verdict == "futile":
        last_bet = e_path(
            [*carried, *pairs[: bold.pairs]],
            **{"margin": MARGIN, "bets": bets[-1:]} | {"pair_sd": 0.01, "direction": direction},
        )
        assert bold.e_value < 0.2 or (bold.e_value < 1 and last_bet[-1] < 0.2)
    else:
        assert bold == usual, "until it gives up it is the same test"


def test_the_last_bet_gives_up_after_two_straight_losses_unless_the_others_have_won_enough():
    assert decide([LOSS] * 3, margin=MARGIN, candidates=5, futile_below=0.2).pairs == 2
    options = {"margin": MARGIN, "candidates": 5, "bets": SOFT_BETS, "pair_sd": 0.01, "futile_below": 0.2}
    decision = decide([LOSS] * 6, **options, futile_by_last_bet=True)
    assert (decision.verdict, decision.pairs) == ("futile", 2) and decision.e_value > 0.2
    assert decide([LOSS] * 2, **options).verdict == "continue"
    ahead = options | {"carried": [WIN] * 20 + [LOSS] * 10}  # E is above 1 although the last bet has lost nearly all
    by_last = decide([LOSS], **ahead, futile_by_last_bet=True)
    assert by_last.e_value > 1 and by_last.verdict == "continue"


def test_carried_evidence_gives_up_only_with_a_pair_of_tonight():
    options = {"margin": MARGIN, "candidates": 5, "futile_below": 0.2, "carried": [LOSS] * 3}
    assert decide([], **options, futile_by_last_bet=True).verdict == "continue"
    assert decide([LOSS], **options, futile_by_last_bet=True).verdict == "futile"


def test_the_wins_that_are_needed_confirm_and_one_fewer_does_not():
    pairs = [WIN, LOSS, WIN, WIN]
    for bets in (SIGN_BETS, SIGN_BETS + SOFT_BETS):
        options = {"margin": MARGIN, "candidates": 4, "bets": bets, "pair_sd": 0.01}
        needed = wins_needed(pairs, **options)
        assert decide(pairs + [WIN] * needed, **options).verdict == "confirmed"
        assert decide(pairs + [WIN] * (needed - 1), **options).verdict == "continue"
    assert wins_needed([WIN] * 20, margin=MARGIN, candidates=4) == 0


def at_the_edge(kind: str, rng: np.random.Generator, repeats: int, length: int) -> np.ndarray:
    """Paths under H0 at its edge: every pair is above the margin with probability 1/2, whatever came before."""
    noise = rng.standard_normal((repeats, length))
    if kind == "skewed":
        noise = rng.exponential(size=(repeats, length)) - np.log(2)
    if kind == "serial":  # the size of a pair follows the one before, its sign does not
        for pair in range(1, length):
            noise[:, pair] *= 0.2 + np.abs(noise[:, pair - 1])
    if kind == "ties":
        noise = rng.integers(0, 2, (repeats, length)).astype(float)  # at the margin or above
    return 0.01 * noise


@pytest.mark.parametrize("margin", [0.0, 0.005])
@pytest.mark.parametrize("kind", ["normal", "skewed", "serial", "ties"])
def test_of_identical_builds_no_more_than_one_in_twenty_ever_shows_evidence_of_twenty(kind, margin):
    repeats = 800
    paths = margin + at_the_edge(kind, np.random.default_rng(7), repeats, 100)
    ever = sum(e_path(path, margin=margin).max() >= 20 for path in paths)
    assert ever / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert ever > 0  # or the simulation would show nothing


def test_soft_bets_are_fair_too_where_pairs_are_symmetric():
    repeats = 800
    paths = MARGIN + at_the_edge("normal", np.random.default_rng(8), repeats, 100)
    options = {"margin": MARGIN, "bets": SIGN_BETS + SOFT_BETS, "pair_sd": 0.01}
    ever = sum(e_path(path, **options).max() >= 20 for path in paths)
    assert 0 < ever / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)


def test_a_night_of_ten_candidates_without_a_change_confirms_any_in_at_most_its_share_of_nights():
    nights, candidates, error = 200, 10, 0.1
    paths = MARGIN + at_the_edge("normal", np.random.default_rng(9), nights * candidates, 24)
    false = [decide(path, margin=MARGIN, candidates=candidates, error=error).verdict == "confirmed" for path in paths]
    share = np.reshape(false, (nights, candidates)).any(axis=1).mean()
    assert share <= error + 3 * np.sqrt(error * (1 - error) / nights)


def test_a_change_well_beyond_the_margin_is_confirmed():
    paths = MARGIN + 0.01 * (2 + np.random.default_rng(10).standard_normal((200, 24)))
    found = [decide(path, margin=MARGIN, candidates=20).verdict == "confirmed" for path in paths]
    assert np.mean(found) > 0.93


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0}, "candidates 0"),
        ({"margin": -0.01}, "margin -0.01"),
        ({"margin": np.nan}, "margin nan"),
        ({"direction": "up"}, "choose slower or faster"),
        ({"bets": ()}, "bets: none"),
        ({"bets": SOFT_BETS}, "pair_sd None: soft bets need"),
        ({"bets": SOFT_BETS, "pair_sd": 0.0}, "pair_sd 0.0"),
        ({"error": 1.0}, "error 1.0"),
        ({"most_pairs": 0}, "most_pairs 0"),
    ],
)
def test_arguments_that_would_void_the_guarantee_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        decide([WIN], **({"margin": MARGIN, "candidates": 1} | options))


@pytest.mark.parametrize("bet", [{"stake": 1.0}, {"stake": 0.0}, {"stake": 0.5, "reach": 0.0}])
def test_a_stake_of_everything_or_of_nothing_is_no_bet(bet):
    with pytest.raises(ValueError):
        Bet(**bet)
