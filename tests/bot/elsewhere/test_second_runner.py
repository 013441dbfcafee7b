"""What one machine has confirmed is asked on a second one the same night, by a job of its own, and what becomes of the
night where that job, its machine or its answers are not as they should be."""

import json
import shutil

import pytest
from night_factory import A, B
from scripted_bench import Scripted, values
from test_elsewhere import Nights, usual

from baselines.report import Report
from baselines.runs import run_prefix
from bot.conclusion import conclude
from bot.confirming.bench import OtherClass
from bot.elsewhere import asking
from bot.elsewhere.answers import AnswersRefused
from bot.elsewhere.asking import AskedNight, answer_again
from bot.elsewhere.deciding import confirms
from bot.github.issue_file import IssueFile
from bot.pages.job_summary import render_summary

SLOW = {A: 0.18}
STEP = {A: values(1.2, 90), B: values(1.0, 90)}


class OfAnotherClass(Scripted):
    def pairs(self, wanted, rounds, decided, runner=0):
        raise OtherClass("this machine is of class gpu")


class TwoMachines(Nights):
    """The same nights, with a job on a second machine."""

    def on(self, host):
        self.patch.setattr(asking, "host_name", lambda: host)

    def answer(self, name, bench):
        self.on("h0")
        return super().answer(name, bench)

    def answer_again(self, name, bench, host="h1"):
        self.on(host)
        self.patch.setattr(asking, "MachineBench", lambda *given: bench)
        out = self.folder / "again" / f"again-{name}" / f"{name}-again.jsonl"
        out.parent.mkdir(parents=True, exist_ok=True)
        question = self.folder / "questions" / f"{name}.json.gz"
        return answer_again(self.config, question, self.folder / "answers", self.folder / "there", out)

    def decide(self, run, nights):
        again = self.folder / "again"
        how = confirms(self.config, self.store, self.policy, self.folder / "answers", nights, again)
        tracker = IssueFile(self.folder / "issues.json")
        code = conclude(self.config, self.store, self.policy, run, tracker, confirm=how[run_prefix(run.header)])
        return code, json.loads((self.config.work / "nightly.json").read_bytes())["report"]

    def asked(self, times=STEP, bench=None):
        """A night up to the second machine."""
        run = self.stored(times)
        nights = self.detect(run)
        self.answer(nights[0].name, bench or Scripted(SLOW))
        return run, nights

    @property
    def second_answers(self):
        return self.folder / "again" / "again-confirm-1" / "confirm-1-again.jsonl"

    @property
    def waits(self):
        one = self.state.series.get(f"{A} cpu_time")
        return one is not None and one.pending is not None


@pytest.fixture
def nights(tmp_path, monkeypatch):
    found = TwoMachines(tmp_path, monkeypatch)
    for day in range(3):
        run = found.stored(usual(day))
        found.decide(run, [AskedNight(key=run_prefix(run.header), name="")])
    return found


def test_what_the_second_machine_shows_too_is_filed_the_same_night(nights):
    run, asked = nights.asked()
    second = Scripted(SLOW)
    assert nights.answer_again("confirm-1", second) is None
    assert second.asked == [[(A, "build0002", "build0003")]] * 2, "asked there, then measured for the interval"
    head, *lines = map(json.loads, nights.second_answers.read_text().splitlines())
    assert (head["host"], [line["kind"] for line in lines]) == ("h1", ["has", "has", "pairs", "pairs", "end"])
    code, report = nights.decide(run, asked)
    assert code == 1 and len(report["confirmation"]["filed"]) == 1 and not report["confirmation"]["not_asked_elsewhere"]
    (issue,) = nights.issues
    assert A in issue.body and not nights.waits
    assert nights.decide(run, asked)[1]["confirmation"] == report["confirmation"], "decided again, it stays"


def test_what_the_second_machine_does_not_show_is_not_filed_and_waits_no_more(nights):
    run, asked = nights.asked()
    nights.answer_again("confirm-1", Scripted({}))
    code, report = nights.decide(run, asked)
    assert (code, report["confirmation"]["gone"], nights.issues) == (1, [f"{A} cpu_time"], ())
    assert not nights.waits


def summary_of(report):
    return render_summary(Report.model_validate(report), None, "", [])


def waits_and_says(nights, run, asked, said):
    """The night comes to what it comes to with one machine, and the next one files."""
    code, report = nights.decide(run, asked)
    told = report["confirmation"]
    assert code == 1 and report["reason"] == f"confirmed slower: {A}" and said in told["not_asked_elsewhere"]
    assert (told["filed"], told["waiting"], nights.issues) == ([], [f"{A} cpu_time"], ())
    assert nights.waits
    if said:
        assert f"not asked on a second runner: `{told['not_asked_elsewhere']}`" in summary_of(report)
    code, report = nights.night({A: values(1.2, 91), B: values(1.0, 91)}, Scripted(SLOW))
    assert len(report["confirmation"]["filed"]) == len(nights.issues) == 1


def test_without_the_second_answers_it_waits_for_another_night(nights, capsys):
    waits_and_says(nights, *nights.asked(), "the second confirming job has left no answers")
    assert "not asked on a second runner: the second confirming job has left" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("host", "bench", "refused", "said"),
    [
        ("h0", Scripted(SLOW), "same machine", "it was the machine that had confirmed"),
        ("h1", OfAnotherClass({}), "other class", "it was a machine of another class"),
    ],
)
def test_a_machine_that_is_no_second_one_measures_nothing_and_it_waits(nights, host, bench, refused, said):
    run, asked = nights.asked()
    assert nights.answer_again("confirm-1", bench, host) == refused and bench.asked == []
    waits_and_says(nights, run, asked, said)


def test_without_the_first_answers_the_second_machine_measures_nothing(nights):
    run = nights.stored(STEP)
    asked = nights.detect(run)
    with pytest.raises(AnswersRefused, match="the confirming job has left no answers"):
        nights.answer_again("confirm-1", Scripted(SLOW))
    code, report = nights.decide(run, asked)
    assert code == 1 and report["confirmation"]["not_measured"].startswith("the confirming job has left no answers")


def changed(line, **keys):
    return json.dumps({**json.loads(line), **keys}) + "\n"


HOSTILE = {
    "has no answer for pairs": lambda head, has, had, one, other, end: [head, has, had, one, end],
    "nobody asked for": lambda head, has, had, one, other, end: [head, has, had, one, other, other, end],
    "answers other pairs": lambda head, has, had, one, other, end: [
        head,
        has,
        had,
        changed(one, rounds=99),
        other,
        end,
    ],
    "does not say whether": lambda head, has, had, one, other, end: [head, has, one, other, end],
    "ends early": lambda head, has, had, one, other, end: [head, has, had, one, other],
    "confirm-1-again.jsonl:2": lambda head, has, had, one, other, end: [head, "[" * 9000 + "\n", end],
    "another question": lambda head, *rest: [changed(head, question="0" * 64), *rest],
    "goes on from other answers": lambda head, *rest: [changed(head, after="0" * 64), *rest],
    "goes on from other": lambda head, *rest: [changed(head, after=None), *rest],
    "of the machine that had confirmed": lambda head, *rest: [changed(head, host="h0"), *rest],
    "jsonl:1": lambda head, *rest: [changed(head, refused="::error::"), *rest],
}


def test_second_answers_that_are_none_are_told_and_it_waits(nights, tmp_path):
    run, asked = nights.asked()
    nights.answer_again("confirm-1", Scripted(SLOW))
    lines = nights.second_answers.read_text().splitlines(keepends=True)
    store = tmp_path / "store"
    shutil.copytree(store, tmp_path / "kept")
    for said, changes in HOSTILE.items():
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "kept", store)  # the night was not decided yet
        nights.second_answers.write_text("".join(changes(*lines)))
        _, report = nights.decide(run, asked)
        assert said in report["confirmation"]["not_asked_elsewhere"] and nights.waits and nights.issues == (), said
    waits_and_says(nights, run, asked, said)


def test_first_answers_that_are_none_are_not_mended_by_the_second(nights):
    run, asked = nights.asked()
    nights.answer_again("confirm-1", Scripted(SLOW))
    first = nights.folder / "answers" / "answers-confirm-1" / "confirm-1.jsonl"
    first.write_text("".join(first.read_text().splitlines(keepends=True)[:-1]))
    before = nights.state
    _, report = nights.decide(run, asked)
    assert "ends early" in report["confirmation"]["not_measured"] and nights.issues == () and nights.state == before


def test_a_first_machine_that_does_not_say_which_it_is_has_no_second(nights):
    run, asked = nights.asked()
    first = nights.folder / "answers" / "answers-confirm-1" / "confirm-1.jsonl"
    head, *rest = first.read_text().splitlines(keepends=True)
    first.write_text("".join([changed(head, host=""), *rest]))
    assert nights.answer_again("confirm-1", Scripted(SLOW)) == "same machine"
    waits_and_says(nights, run, asked, "or may have been")


def test_a_night_that_confirms_nothing_asks_nothing_of_the_second_machine_and_does_not_miss_it(nights):
    run, asked = nights.asked(bench=Scripted({}))
    second = Scripted(SLOW)
    assert nights.answer_again("confirm-1", second) is None and second.asked == []
    nights.second_answers.unlink()
    code, report = nights.decide(run, asked)
    assert code == 0 and report["confirmation"]["not_asked_elsewhere"] == ""


def test_a_second_machine_that_cannot_have_a_build_leaves_it_to_the_next_night(nights):
    run, asked = nights.asked()
    second = Scripted(SLOW, gone=("build0002",))
    assert nights.answer_again("confirm-1", second) is None and second.asked == []
    waits_and_says(nights, run, asked, "")


def test_what_is_filed_at_once_is_filed_without_the_second_machine(nights):
    file = nights.config.file.model_copy(update={"severe": "confirmed"})
    nights.config = nights.config.model_copy(update={"file": file})
    run, asked = nights.asked()
    second = Scripted(SLOW)
    assert nights.answer_again("confirm-1", second) is None and second.asked == [], (
        "it was asked where it was confirmed"
    )
    nights.second_answers.unlink()
    code, report = nights.decide(run, asked)
    assert code == 1 and len(report["confirmation"]["filed"]) == len(nights.issues) == 1
