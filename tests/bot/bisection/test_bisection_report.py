"""What people are shown of a bisection: sentences, Markdown, JSON and a picture, of searches that are made up."""

import json
from dataclasses import replace
from importlib.util import find_spec

import pytest
from bisecting import noisy, search, verdict_of
from rich.console import Console

from bot.bisection.account import EXIT_CODES, Found, ends, merge_sentence, sentence
from bot.bisection.document import Asked, Desk, Document, End, Visit
from bot.bisection.driving import LEAST_PAIR_SD, rules_of
from bot.bisection.expected import plan_lines
from bot.bisection.git_range import CommitFacts
from bot.bisection.live import bars
from bot.bisection.picture import draw_posterior
from bot.bisection.report import content, markdown
from bot.bisection.script import CannotMeasure, number_of
from bot.bisection.state import Rules
from bot.errors import BotError

ASKED = Asked(good="0", bad="16", measure="true")


def found(culprits: dict[int, float], *, asked: Asked = ASKED, broken=(), length: int = 16, **options) -> Found:
    verdict, state = verdict_of(search(length, **options), noisy(culprits, seed=3), broken)
    return Found(Document(asked=asked, search=state), verdict, {str(place): f"<b>{place}</b>" for place in range(17)})


def test_each_verdict_has_a_sentence_and_an_exit_code():
    told = {
        one.verdict.kind: (sentence(one), EXIT_CODES[one.verdict.kind])
        for one in (
            found({5: 0.08}),
            found({5: 0.08}, broken=(4, 5, 6)),
            found({3: 0.08, 12: 0.1}),
            found({}),
            found({}, environment=("driver: 1 against 2",)),
            found({}, broken=(16,)),
            found({5: 0.02}, rules=Rules(pair_sd=0.01, most_probes=12)),
        )
    }
    assert set(told) == set(EXIT_CODES)
    assert told["culprit"][0].startswith("culprit: 5 “<b>5</b>” (+8 % (worse); probability")
    assert told["set"][0].startswith("a set of commits that no build tells apart: 4 “<b>4</b>”, 5")
    assert told["several culprits"][0].count("worse") == 2
    assert "no difference beyond" in told["not reproduced"][0]
    assert "driver: 1 against 2" in told["environment"][0]
    assert told["ends not measurable"] == ("ends not measurable: the bad end has no build: told so", 2)
    assert told["budget spent"][1] == 3


def test_equal_ends_that_are_not_likely_are_told_with_the_reason_for_ending_there():
    clear, doubtful = found({}), found({})
    doubtful = replace(doubtful, verdict=replace(doubtful.verdict, nothing=0.62, reason="480 pairs were measured"))
    assert "ended because" not in sentence(clear) + markdown(clear)
    assert "(probability of equal ends 0.62); the search ended because 480 pairs were measured" in sentence(doubtful)
    assert "It ended because: `480 pairs were measured`" in markdown(doubtful)


def test_of_a_speed_less_is_a_loss_and_the_interval_of_equal_ends_is_turned():
    slower = found({5: 0.08}, asked=ASKED.model_copy(update={"higher_is_better": True}))
    assert "(-7.4 % (worse)" in sentence(slower)
    assert content(slower)["changes"][0]["log_ratio"] > 0
    equal = found({})
    turned = equal.document.model_copy(update={"asked": slower.document.asked})
    assert "show no difference beyond" in ends(equal.document)
    assert "show no difference beyond" in ends(turned) and ends(turned) != ends(equal.document)


def test_a_merge_whose_branches_are_equal_came_of_their_being_merged():
    one, guilty, equal = found({5: 0.08}), found({2: 0.08}), found({})
    assert merge_sentence(one) == ""
    assert "in its branch: culprit: 2" in merge_sentence(Found(one.document, one.verdict, {}, branches=(guilty, equal)))
    assert "their being merged" in merge_sentence(Found(one.document, one.verdict, {}, branches=(equal,)))


def test_foreign_text_is_harmless_in_markdown_and_whole_in_json():
    one = found({5: 0.08})
    facts = CommitFacts("5", "@everyone ``` <img>", "| a |", "2026-01-01", (" ```", " @everyone.py | 2 ++"))
    hostile = Found(one.document, one.verdict, {"5": "`<script>` | x"}, {"5": facts})

    text = markdown(hostile)

    assert text.count("```") == 2  # our own block
    assert "`@everyone ''' <img>`" in text
    assert "`'<script>' ¦ x`" in text
    assert json.loads(json.dumps(content(hostile), allow_nan=False))["commits"][5]["subject"] == "`<script>` | x"


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib, the extra `pictures`, is not installed")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_picture_is_the_same_each_time(tmp_path, kind):
    one = found({5: 0.08}, broken=(9,))
    for name in ("a", "b"):
        draw_posterior(one, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    with pytest.raises(BotError, match="ends were not measured"):
        draw_posterior(found({}, broken=(16,)), tmp_path / "c.png")


def test_the_live_view_has_a_bar_of_the_culprit():
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(bars(found({5: 0.08}).document, {"5": "slow"}))
    (line,) = [line for line in console.export_text().splitlines() if "slow" in line]
    assert line.startswith("5 ") and line.count("█") > 25


def test_the_rehearsal_says_how_noisy_a_pair_is_and_one_wild_pair_does_not():
    calm = [0.01, -0.02, 0.015, -0.005, 0.02, -0.01, 0.0, -0.015]
    wild = [*calm[:-1], 3.0]
    assert rules_of(ASKED, calm, 10.0, 1.0).pair_sd == pytest.approx(0.016, rel=0.2)
    assert rules_of(ASKED, wild, 10.0, 1.0).pair_sd == pytest.approx(0.017, rel=0.2)
    assert rules_of(ASKED, [0.0] * 8, 10.0, 1.0).pair_sd == LEAST_PAIR_SD
    assert rules_of(ASKED, calm, 10.0, 1.0).build_cost == 10
    assert rules_of(ASKED.model_copy(update={"beyond": 0.1}), calm, None, None).smallest == pytest.approx(0.0953, 0.01)


def test_a_plan_without_known_times_asks_for_them():
    assert plan_lines(1024, None, None, None)[1].startswith("builds: about 12,")
    assert "say --build-seconds" in plan_lines(1024, None, None, None)[-1]


def test_a_run_is_the_median_of_what_was_printed():
    assert number_of("3\n\n 1e0\n100\n") == 3
    for text in ("", "nan", "inf", "-1", "0", "1 2", "time: 3"):
        with pytest.raises(CannotMeasure):
            number_of(text)


def test_of_two_writers_the_slower_is_refused(any_store):
    first, second = Desk(any_store, "k"), Desk(any_store, "k")
    document = first.write(Document(asked=ASKED, search=search(16)))
    assert second.read() == document
    second.write(document)
    with pytest.raises(BotError, match="another process has written this bisection meanwhile"):
        first.write(document)
    assert Desk(any_store, "k").read().search == document.search


def test_a_stored_state_that_is_damaged_is_told_with_its_place(any_store):
    any_store.write_if("bisections/k.json", b'{"kind": "bisection of commits"}', None)
    with pytest.raises(BotError, match=r"bisections/k\.json: .*mend it, or remove it"):
        Desk(any_store, "k").read()


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib, the extra `pictures`, is not installed")
def test_a_picture_of_outcomes_names_them(tmp_path):
    named = ("ok", "crash $x^2$", "ok")
    verdict, state = verdict_of(search(8, what="exact"), lambda place: float(place >= 5), {2})
    visits = tuple(
        Visit(
            number=number,
            commit=batch.commit,
            n=3,
            ends=tuple(End(outcome=named[int(value)], seconds=0) for value in batch.values),
            values=batch.values,
        )
        for number, batch in enumerate(state.batches)
    )
    asked = Asked(good="0", bad="8", measure="true", compared="status")
    one = Found(Document(asked=asked, visits=visits, search=state), verdict, {})

    draw_posterior(one, tmp_path / "a.svg")

    assert "<!-- crash $x^2$ -->" in (tmp_path / "a.svg").read_text()
    assert sentence(one) == "culprit: 5 “” (ok -> crash $x^2$ (worse); probability 1.000, certain)"
