"""Before an alert closes: the pairs that say whether its change is gone are measured by the machine with the GPU, and
what follows from them is worked out by who has asked."""

import json
import shutil

import pytest
from night_factory import A, B
from scripted_bench import Scripted, values
from test_elsewhere import Nights, usual

from baselines.report import Report
from bot.elsewhere.question import read_question
from bot.errors import BotError
from bot.pages.job_summary import render_summary

SLOW = {A: 0.4}


class Closing(Nights):
    """An alert of A, with two good nights since."""

    def up_to_the_third_good_night(self):
        for day in range(3):
            self.night(usual(day), Scripted({}))
        for day in (3, 4):
            self.night({A: values(1.5, day), B: values(1.0, day)}, Scripted(SLOW))
        for day in (5, 6):
            self.night(usual(day), Scripted({}))
        assert self.issues[0].is_open

    @property
    def answers(self):
        return self.folder / "answers" / "answers-confirm-1" / "confirm-1-closings.jsonl"

    def third(self, bench, times=None):
        """The third good night, up to the answers; or another one."""
        run = self.stored(times or usual(7))
        nights = self.detect(run)
        self.answer(nights[0].name, bench)
        return run, nights


@pytest.fixture(scope="module")
def two_good_nights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closing")
    with pytest.MonkeyPatch.context() as patched:
        Closing(folder, patched).up_to_the_third_good_night()
    return folder


@pytest.fixture
def nights(two_good_nights, tmp_path, monkeypatch):
    found = Closing(tmp_path, monkeypatch)
    shutil.copytree(two_good_nights / "store", tmp_path / "store")
    shutil.copy(two_good_nights / "issues.json", tmp_path)
    found.day = 7
    return found


@pytest.mark.parametrize(("left", "answer"), [(0.0, "gone"), (0.4, "there")])
def test_a_night_with_nothing_but_an_alert_to_close_asks_for_a_machine_and_goes_by_its_pairs(nights, left, answer):
    bench, bucket = Scripted({A: left}), nights.state.bucket
    run, asked = nights.third(bench)
    assert [one.name for one in asked] == ["confirm-1"]
    question = read_question(nights.folder / "questions" / "confirm-1.json.gz")
    ((each,),) = [one.questions for one in question.closings]
    assert (each.test, each.channel, each.base) == (A, "cpu_time", "build0002")
    assert {build.id for build in question.measured} >= {"build0002", "build0007"}
    assert bench.asked == [[(A, "build0002", "build0007")]]
    _, report = nights.decide(run, asked)
    (closing,) = report["confirmation"]["closings"]
    assert closing["asked"][0]["answer"] == answer and nights.issues[0].is_open == (left > 0)
    pairs = closing["asked"][0]["pairs"]
    assert 6 <= pairs <= 24 and nights.state.bucket == min(300, bucket + 220) - pairs
    assert nights.decide(run, asked)[1]["confirmation"] == report["confirmation"], "decided again, it stays"


def test_without_the_answers_about_it_an_alert_stays_open_and_is_asked_about_the_next_night(nights, capsys):
    run, asked = nights.third(Scripted({}))
    nights.answers.unlink()
    _, report = nights.decide(run, asked)
    told = report["confirmation"]
    assert "has left no answers" in told["not_closed"] and not told["not_measured"] and told["closings"] == []
    assert nights.issues[0].is_open and "pairs are asked the next night" in nights.issues[0].body
    assert "no alert is closed or cleared: the job that asks" in " ".join(capsys.readouterr().out.split())
    summary = render_summary(Report.model_validate(report), None, "", [])
    assert f"no alert is closed or cleared, as pairs were not asked: `{told['not_closed']}`" in summary
    nights.night(usual(8), Scripted({}))
    assert not nights.issues[0].is_open


@pytest.mark.parametrize(("left", "told"), [(0.0, "but not by 6 pairs"), (0.3, "still there")])
def test_an_alert_in_doubt_goes_by_the_pairs_of_the_other_machine_too(nights, left, told):
    """Slower by 15 %, where 49 % was confirmed."""
    run, asked = nights.third(Scripted({A: left}), {A: values(1.15, 7), B: values(1.0, 7)})
    (closing,) = read_question(nights.folder / "questions" / "confirm-1.json.gz").closings
    assert closing.doubted and [(one.test, one.base, one.beyond) for one in closing.questions] == [
        (A, "build0002", 0.07)
    ]
    _, report = nights.decide(run, asked)
    (alert,) = nights.issues
    assert alert.is_open and told in alert.body + render_summary(Report.model_validate(report), None, "", [])
    assert report["verdict"] == ("regression" if left else "clean")
    assert ("still slower" in report["reason"]) == bool(left)


def changed(line, **keys):
    return json.dumps({**json.loads(line), **keys}) + "\n"


HOSTILE = {
    "ends early": lambda head, has, pairs, end: [head, has, pairs],
    "has no answer for pairs": lambda head, has, pairs, end: [head, has, end],
    "nobody asked for": lambda head, has, pairs, end: [head, has, pairs, pairs, end],
    "answers other pairs": lambda head, has, pairs, end: [head, has, changed(pairs, rounds=99), end],
    "has more pairs": lambda head, has, pairs, end: [head, has, changed(pairs, answer=[[{"cpu_time": 0.0}] * 25]), end],
    "does not say whether": lambda head, has, pairs, end: [head, pairs, end],
    "another question": lambda head, *rest: [changed(head, question="0" * 64), *rest],
    "closings.jsonl:2": lambda head, has, pairs, end: [head, "[" * 9000 + "\n", end],
}


def test_answers_about_an_alert_that_are_none_close_nothing_and_leave_the_night_as_it_is(nights):
    run, asked = nights.third(Scripted({}))
    lines = nights.answers.read_text().splitlines(keepends=True)
    kept = {path: path.read_bytes() for path in (nights.folder / "store").rglob("*") if path.is_file()}
    for said, changes in HOSTILE.items():
        for path, content in kept.items():
            path.write_bytes(content)  # the night was not decided yet
        nights.answers.write_text("".join(changes(*lines)))
        _, report = nights.decide(run, asked)
        told = report["confirmation"]
        assert said in told["not_closed"] and not told["not_measured"], said
        assert nights.issues[0].is_open and nights.state.last_night == nights.state.outcome.night, said


def test_a_machine_that_cannot_measure_for_a_closing_still_leaves_the_answers_of_the_night(nights):
    class Failing(Scripted):
        def pairs(self, wanted, rounds, decided, runner=0):
            raise BotError("the disk is full")

    run, asked = nights.third(Failing({}))
    assert not nights.answers.exists() and nights.answers.with_name("confirm-1.jsonl").exists()
    _, report = nights.decide(run, asked)
    assert report["confirmation"]["not_closed"] and nights.issues[0].is_open


def test_where_all_answers_are_missing_the_alert_stays_open_too(nights):
    run = nights.stored({**usual(7), B: values(1.5, 7)})
    asked = nights.detect(run)
    _, report = nights.decide(run, asked)
    told = report["confirmation"]
    assert told["not_measured"] == told["not_closed"] and "the confirming job has left no" in told["not_closed"]
    assert nights.issues[0].is_open
