"""The answers of a machine that nobody trusts: replayed they come to what they came to there, and what is not an answer
to the very question is refused."""

import json
import math
import os

import pytest
from small_fleet import CHANNEL, ScriptedBench, calm, known_state, seen_of_logs, shifted, stepped

from baselines.confirming.bench import Ended, PairsWanted
from baselines.confirming.night import run_night
from baselines.confirming.rules import Rules
from bot.elsewhere import answers
from bot.elsewhere.answers import AnswersRefused, RecordedBench, RecordingBench, answers_in
from torchbenchmark.records import Status

QUESTION = "0" * 64
OTHER = "1" * 64


def never(so_far):
    return ()


def outcome_of(seen, bench):
    state = known_state(seen)
    run_night(seen, state, bench, Rules())
    return state.model_dump_json()


def nights():
    """One with a change, and one on another machine, whose environment is asked first."""
    logs = stepped(calm(), [3, 5], -1, 0.04)
    yield seen_of_logs(logs), ScriptedBench(ratio=shifted(0.04, 3, 5), gone=("build38",))
    shift = calm() + 0.03 * (calm()[:1] > -99)
    shift[:, :-1] -= 0.03
    levels = {f"test_eval[m{row:02}-cuda-eager]": float(2.718281828459045 ** shift[row, -1]) for row in range(20)}
    moved = seen_of_logs(shift, environments=("driver0",) * 39 + ("driver1",))
    yield moved, ScriptedBench(level=lambda test, build: levels[test])


@pytest.mark.parametrize("which", [0, 1])
def test_what_was_recorded_comes_to_the_same_as_what_was_measured(tmp_path, which):
    seen, bench = list(nights())[which]
    recording = RecordingBench(bench)
    live = outcome_of(seen, recording)
    assert bench.asked, "nothing was measured, so nothing is shown"
    assert bool(bench.measured) == (which == 1)
    recording.write(tmp_path / "one.jsonl", QUESTION)
    recorded = RecordedBench(tmp_path / "one.jsonl", QUESTION)
    assert outcome_of(seen, recorded) == live
    recorded.require_all_asked()


WANTED = [PairsWanted("a", "old", "new")]
HEAD = {"kind": "answers", "schema": 1, "question": QUESTION}
HAS = {"kind": "has", "build": "old", "answer": True}
PAIRS = {
    "kind": "pairs",
    "wanted": [{"test": "a", "base": "old", "head": "new"}],
    "rounds": 2,
    "runner": 0,
    "answer": [[{"cpu_time": 0.1}, {"cpu_time": -0.1}]],
}
AGAIN = {"kind": "again", "tests": ["a"], "build": "old", "processes": 2, "answer": {"a": {"cpu_time": [1.0, 2.0]}}}
END = {"kind": "end"}


def written(folder, *lines):
    path = folder / "confirm-1.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def asked(path):
    bench = RecordedBench(path, QUESTION)
    assert bench.has("old")
    (pairs,) = bench.pairs(WANTED, 2, never)
    values = bench.again(["a"], "old", 2)
    bench.require_all_asked()
    return pairs, values


def test_honest_answers_are_taken(tmp_path):
    pairs, values = asked(written(tmp_path, HEAD, HAS, PAIRS, AGAIN, END))
    assert pairs == ({"cpu_time": 0.1}, {"cpu_time": -0.1}) and values == {"a": {"cpu_time": (1.0, 2.0)}}


def but(line, **changes):
    return {**line, **changes}


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("another question", [but(HEAD, question=OTHER), HAS, PAIRS, AGAIN, END]),
        ("jsonl:1", [but(HEAD, question="../../etc/passwd"), HAS, PAIRS, AGAIN, END]),
        ("jsonl:1", [but(HEAD, schema=2), HAS, PAIRS, AGAIN, END]),
        ("ends early", [HEAD, HAS, PAIRS, AGAIN]),
        ("ends early", [HEAD]),
        ("goes on after its end", [HEAD, HAS, END, PAIRS, AGAIN, END]),
        ("jsonl:2", [HEAD, '{"kind": "has"', PAIRS, AGAIN, END]),
        ("jsonl:2", [HEAD, but(HAS, more=1), PAIRS, AGAIN, END]),
        ("jsonl:2", [HEAD, but(HAS, answer="yes"), PAIRS, AGAIN, END]),
        ("says twice", [HEAD, HAS, HAS, PAIRS, AGAIN, END]),
        ("does not say whether", [HEAD, but(HAS, build="../old"), PAIRS, AGAIN, END]),
        ("has no answer for pairs", [HEAD, HAS, END]),
        ("has no answer for 1 test of build old", [HEAD, HAS, PAIRS, END]),
        ("answers something else", [HEAD, HAS, AGAIN, PAIRS, END]),
        ("has 1 answer that nobody asked for", [HEAD, HAS, PAIRS, AGAIN, AGAIN, END]),
        ("has 1 answer that nobody asked for", [HEAD, HAS, but(HAS, build="other"), PAIRS, AGAIN, END]),
        ("other pairs", [HEAD, HAS, but(PAIRS, rounds=3), AGAIN, END]),
        ("other pairs", [HEAD, HAS, but(PAIRS, wanted=[{"test": "../b", "base": "old", "head": "new"}]), AGAIN, END]),
        ("more pairs", [HEAD, HAS, but(PAIRS, answer=[[{"cpu_time": 0.1}] * 3]), AGAIN, END]),
        ("more pairs", [HEAD, HAS, but(PAIRS, answer=[[], []]), AGAIN, END]),
        ("jsonl:3", [HEAD, HAS, but(PAIRS, answer=[[{"cpu_time": float("nan")}]]), AGAIN, END]),
        ("jsonl:3", [HEAD, HAS, but(PAIRS, answer=[[{"cpu_time": float("inf")}]]), AGAIN, END]),
        ("jsonl:3", [HEAD, HAS, but(PAIRS, answer=[[{"cpu_time": 51}]]), AGAIN, END]),
        ("jsonl:3", [HEAD, HAS, but(PAIRS, answer=[[{f"c{n}": 0.0 for n in range(201)}]]), AGAIN, END]),
        ("jsonl:4", [HEAD, HAS, PAIRS, but(AGAIN, answer={"a": {"cpu_time": [-1.0]}}), END]),
        ("jsonl:4", [HEAD, HAS, PAIRS, but(AGAIN, answer={"a": {"cpu_time": [float("nan")]}}), END]),
        ("tests that were not asked for", [HEAD, HAS, PAIRS, but(AGAIN, answer={"b": {"cpu_time": [1.0]}}), END]),
        ("more processes", [HEAD, HAS, PAIRS, but(AGAIN, answer={"a": {"cpu_time": [1.0] * 3}}), END]),
        ("another ask", [HEAD, HAS, PAIRS, but(AGAIN, build="new"), END]),
        ("jsonl:2", [HEAD, "[" * 100_000, END]),
        ("jsonl:2: 1,000 things in it are no answer", [HEAD, {**HAS, **{f"x{n}": 1 for n in range(1_000)}}, END]),
        ("more than 2000 lines", [HEAD, *[HAS] * 2_001, END]),
    ],
)
def test_what_is_no_answer_to_the_question_is_refused(tmp_path, said, lines):
    with pytest.raises(AnswersRefused, match=said) as refused:
        asked(written(tmp_path, *lines))
    assert len(str(refused.value)) < 500 and str(refused.value).isprintable()


def test_a_file_that_is_too_large_torn_or_empty_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, HEAD, HAS, PAIRS, AGAIN, END)
    whole = path.read_bytes()
    for said, content in (("within a line", whole[:-1]), ("is empty", b""), ("jsonl:1", b"\xff\xfe\n\n")):
        path.write_bytes(content)
        with pytest.raises(AnswersRefused, match=said):
            asked(path)
    path.write_bytes(whole)
    monkeypatch.setattr(answers, "LARGEST_BYTES", len(whole) - 1)
    with pytest.raises(AnswersRefused, match="larger than"):
        asked(path)


def test_the_answers_are_one_plain_file_of_their_name(tmp_path):
    real = written(tmp_path, HEAD, HAS, PAIRS, AGAIN, END)
    folder = tmp_path / "answers"
    (folder / "answers-confirm-1").mkdir(parents=True)
    with pytest.raises(AnswersRefused, match="has left no answers"):
        answers_in(folder, "confirm-1")
    with pytest.raises(AnswersRefused, match="has left no answers"):
        answers_in(tmp_path / "nothing", "confirm-1")
    there = folder / "answers-confirm-1" / "confirm-1.jsonl"
    there.symlink_to(real)
    with pytest.raises(AnswersRefused, match="cannot be read"):
        asked(answers_in(folder, "confirm-1"))
    there.unlink()
    os.mkfifo(there)
    with pytest.raises(AnswersRefused, match="no plain file"):
        asked(answers_in(folder, "confirm-1"))
    there.unlink()
    (folder / "elsewhere").symlink_to(tmp_path)  # a folder that is a link is not looked into
    there.write_bytes(real.read_bytes())
    asked(answers_in(folder, "confirm-1"))
    (folder / "answers-confirm-2").mkdir()
    (folder / "answers-confirm-2" / "confirm-1.jsonl").write_bytes(b"of a machine that answers another night")
    asked(answers_in(folder, "confirm-1"))
    there.rename(folder / "confirm-1.jsonl")
    with pytest.raises(AnswersRefused, match="has come 2 times"):
        answers_in(folder, "confirm-1")


def test_a_number_that_no_file_may_hold_is_left_out_on_both_sides(tmp_path):
    class Odd:
        runners = 1

        def has(self, build, runner=0):
            return True

        def pairs(self, wanted, rounds, decided, runner=0):
            return [[{CHANNEL: float("inf"), "cpu_time": 0.25}]]

        def again(self, tests, build, processes):
            return {"a": {CHANNEL: [-1.0], "cpu_time": [2.0]}}

    recording = RecordingBench(Odd())
    live = recording.pairs(WANTED, 2, never), recording.again(["a"], "old", 1)
    assert live == ((({"cpu_time": 0.25},),), {"a": {"cpu_time": (2.0,)}})
    recording.write(tmp_path / "one.jsonl", QUESTION)
    bench = RecordedBench(tmp_path / "one.jsonl", QUESTION)
    assert (bench.pairs(WANTED, 2, never), bench.again(["a"], "old", 1)) == live


ONE_BY_ONE = {
    "kind": "one by one",
    "tests": ["a"],
    "build": "old",
    "processes": 2,
    "answer": {"a": [{"status": "ok", "values": {"operators": 12.0}}, {"status": "crash", "values": {}}]},
}


def ends_of(path):
    bench = RecordedBench(path, QUESTION)
    found = bench.one_by_one(["a"], "old", 2)
    bench.require_all_asked()
    return found["a"]


def test_how_processes_ended_is_taken_without_what_they_say(tmp_path):
    bench = ScriptedBench()
    bench.ended = lambda test, build, number: Ended(Status.OK, "::error::@team", {"operators": 12.0, "bad": math.nan})
    recording = RecordingBench(bench)
    live = recording.one_by_one(["a"], "old", 2)
    recording.write(tmp_path / "confirm-1.jsonl", QUESTION)
    assert "@team" not in (tmp_path / "confirm-1.jsonl").read_text()
    assert ends_of(tmp_path / "confirm-1.jsonl") == live["a"] == (Ended(Status.OK, values={"operators": 12.0}),) * 2
    assert ends_of(written(tmp_path, HEAD, ONE_BY_ONE, END))[1] == Ended(Status.CRASH)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("more or fewer ends", but(ONE_BY_ONE, answer={})),
        ("more or fewer ends", but(ONE_BY_ONE, answer={"a": [{"status": "ok", "values": {}}]})),
        ("more or fewer ends", but(ONE_BY_ONE, answer={**ONE_BY_ONE["answer"], "b": []})),
        ("another ask", but(ONE_BY_ONE, build="new")),
        ("another ask", but(ONE_BY_ONE, processes=3)),
        ("answers something else", AGAIN),
        ("jsonl:2", but(ONE_BY_ONE, answer={"a": [{"status": "@team", "values": {}}] * 2})),
        ("jsonl:2", but(ONE_BY_ONE, answer={"a": [{"status": "ok", "values": {}, "reason": "::error::"}] * 2})),
        ("jsonl:2", but(ONE_BY_ONE, answer={"a": [{"status": "ok", "values": {"operators": float("nan")}}] * 2})),
    ],
)
def test_ends_that_are_no_answer_are_refused(tmp_path, said, line):
    with pytest.raises(AnswersRefused, match=said):
        ends_of(written(tmp_path, HEAD, line, END))
