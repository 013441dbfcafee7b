"""What is believed of the results of a measuring job: numbers of the tests that were asked for, and nothing else."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_results import FINE, HEAD, SAME, SLOW, built, make_header, make_pairs, make_request, measured, write_results

from bot.pull_request.answer import read_answer, read_requested_pairs
from bot.pull_request.artifact import LARGEST, ArtifactRefused
from torchbenchmark.records import to_line

REQUEST = make_request()


@pytest.fixture
def results(tmp_path) -> Path:
    return write_results(tmp_path / "results", REQUEST, {SLOW: 1.3})


def change_line(path: Path, number: int, **changes: object) -> None:
    lines = path.read_text().splitlines()
    lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **changes})
    path.write_text("\n".join(lines) + "\n")


def spoil_channel(path: Path, number: int, name: str, **changes: object) -> None:
    lines = path.read_text().splitlines()
    content = json.loads(lines[number - 1])
    content["head"]["channels"][name] = {**content["head"]["channels"].get("latency", {}), **changes}
    lines[number - 1] = json.dumps(content)
    path.write_text("\n".join(lines) + "\n")


def test_the_slowed_test_is_slower_and_no_other(results):
    answer = read_answer(REQUEST, results)
    assert answer.refused == ""
    assert answer.comparison.level == 0.99
    verdicts = {test: {one.verdict for one in answer.comparison.of_test(test)} for test in REQUEST.tests}
    assert verdicts == {SLOW: {"slower"}, SAME: {"no change"}, FINE: {"no change"}}


def test_millions_of_lines_are_refused_before_they_are_taken_apart():
    content = b"ab\n" * 10**6
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactRefused, match="more lines than pairs"):
            read_requested_pairs(REQUEST, content)
        assert tracemalloc.get_traced_memory()[1] < len(content)
    finally:
        tracemalloc.stop()


def test_no_results_are_no_refusal(tmp_path):
    answer = read_answer(REQUEST, tmp_path / "absent")
    assert (answer.refused, answer.comparison, answer.base) == ("", None, None)


def test_a_pair_that_a_kill_has_torn_is_left_out(results):
    pairs = results / "pairs.jsonl"
    pairs.write_bytes(pairs.read_bytes()[:-40])
    answer = read_answer(REQUEST, results)
    assert answer.refused == "" and answer.comparison is not None


def huge_string(folder):
    change_line(folder / "pairs.jsonl", 1, run="x" * (50 * 2**20))


def nan(folder):
    spoil_channel(folder / "pairs.jsonl", 3, "latency", median=float("nan"))


def infinite(folder):
    spoil_channel(folder / "pairs.jsonl", 3, "latency", p20=float("inf"))


def no_time(folder):
    spoil_channel(folder / "pairs.jsonl", 3, "latency", p20=1e-300)


def negative(folder):
    spoil_channel(folder / "pairs.jsonl", 3, "latency", p20=-1.0)


def unknown_channel(folder):
    spoil_channel(folder / "pairs.jsonl", 3, "@team", p20=1.0)


def other_test(folder):
    change_line(folder / "pairs.jsonl", 3, test="test_eval[alexnet-cpu-eager]")


def other_plan(folder):
    plan = json.loads((folder / "pairs.jsonl").read_text().splitlines()[0])["tests"]
    plan[0] |= {"base": "../../etc", "head": "../../etc"}
    change_line(folder / "pairs.jsonl", 1, tests=plan)


def fewer_tests(folder):
    plan = json.loads((folder / "pairs.jsonl").read_text().splitlines()[0])["tests"]
    change_line(folder / "pairs.jsonl", 1, tests=plan[:1])


def second_pair(folder):
    line = (folder / "pairs.jsonl").read_text().splitlines()[1]
    with (folder / "pairs.jsonl").open("a") as file:
        file.write(f"{line}\n")


def further_round(folder):
    change_line(folder / "pairs.jsonl", 3, round=99)


def further_index(folder):
    change_line(folder / "pairs.jsonl", 3, index=1)


def not_sequential(folder):
    change_line(folder / "pairs.jsonl", 1, sequential=False)


def other_rounds(folder):
    change_line(folder / "pairs.jsonl", 1, rounds=4)


def other_device(folder):
    change_line(folder / "pairs.jsonl", 1, device="cuda")


def too_many_lines(folder):
    with (folder / "pairs.jsonl").open("a") as file:
        file.write("{}\n" * 1000)


def nested(folder):
    (folder / "pairs.jsonl").write_text("[" * 100_000 + "\n")


def no_json(folder):
    (folder / "measured.json").write_bytes(b"\xff\xfe\x00")


def other_pull_request(folder):
    (folder / "measured.json").write_text(json.dumps({**measured(), "pull": 1}))


def other_request(folder):
    (folder / "measured.json").write_text(json.dumps(measured(key="f" * 16)))


def other_commit(folder):
    (folder / "head.json").write_text(json.dumps(built("head", "d" * 40)))


def sides_changed(folder):
    (folder / "head.json").write_text(json.dumps(built("base", HEAD)))


def long_reason(folder):
    (folder / "head.json").write_text(json.dumps(built("head", HEAD, state="failed", reason="x" * 2001)))


def further_file(folder):
    (folder / "@team.md").write_text("# hello")


def folder_in_it(folder):
    (folder / "head.json").unlink()
    (folder / "head.json").mkdir()


def link(folder):
    (folder / "measured.json").unlink()
    (folder / "measured.json").symlink_to("/etc/passwd")


def linked_pairs(folder):
    target = folder.parent / "elsewhere.jsonl"
    (folder / "pairs.jsonl").rename(target)
    (folder / "pairs.jsonl").symlink_to(target)


def pipe(folder):
    (folder / "measured.json").unlink()
    os.mkfifo(folder / "measured.json")


def too_large(folder):
    with (folder / "pairs.jsonl").open("ab") as file:
        file.truncate(LARGEST["pairs.jsonl"] + 1)


def thousands_of_facts(folder):
    environment = json.loads((folder / "pairs.jsonl").read_text().splitlines()[0])["environment"]
    environment["facts"] = {f"fact{number}": "x" for number in range(5000)}
    change_line(folder / "pairs.jsonl", 1, environment=environment)


@pytest.mark.parametrize("content", ['{"kind": "pairs", "class": "@team"}\n', "no JSON\n", "", "x" * (5 * 2**20)])
def test_profiles_that_are_refused_leave_the_numbers_standing_and_are_told(tmp_path, content):
    request = make_request(profile=True)
    folder = write_results(tmp_path / "results", request, {SLOW: 1.3})
    (folder / "profiles.jsonl").write_text(content)
    answer = read_answer(request, folder)
    assert answer.refused == "" and answer.comparison is not None and answer.attribution is None
    (note,) = answer.notes
    assert note.startswith("the profiles were refused: profiles.jsonl")


def test_profiles_that_were_not_asked_for_are_not_read(results):
    (results / "profiles.jsonl").write_text("no JSON\n")
    assert read_answer(REQUEST, results).notes == ()


SPOILED = (
    *(huge_string, nan, infinite, no_time, negative, unknown_channel, other_test, other_plan, fewer_tests, second_pair),
    *(further_round, further_index, not_sequential, other_rounds, other_device, too_many_lines, nested, no_json),
    *(other_pull_request, other_request, other_commit, sides_changed, long_reason, further_file, folder_in_it, link),
    *(linked_pairs, pipe, too_large, thousands_of_facts),
)


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_results_that_are_not_those_of_the_request_are_refused_as_a_whole(results, spoil):
    spoil(results)
    answer = read_answer(REQUEST, results)
    assert answer.refused and len(answer.refused) <= 600
    assert (answer.comparison, answer.header, answer.base, answer.attribution) == (None, None, None, None)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 20_000), what=st.binary(min_size=1, max_size=30), name=st.sampled_from(sorted(LARGEST)))
def test_whatever_bytes_stand_in_them_nothing_is_raised(tmp_path_factory, at, what, name):
    folder = write_results(tmp_path_factory.mktemp("any") / "results", make_request(pairs=6))
    path = folder / name
    content = path.read_bytes() if path.exists() else b""
    place = at % (len(content) + 1)
    path.write_bytes(content[:place] + what + content[place + len(what) :])
    read_answer(make_request(pairs=6), folder)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.floats(min_value=1e-12, max_value=1e9), min_size=12, max_size=12),
)
def test_whatever_times_were_measured_they_come_to_a_verdict_or_are_refused(tmp_path_factory, values):
    request = make_request(tests=(SLOW,), pairs=6)
    folder = write_results(tmp_path_factory.mktemp("times") / "results", request)
    pairs = make_pairs(request)
    lines = [to_line(make_header(request))]
    for number, pair in enumerate(pairs):
        content = json.loads(to_line(pair))
        for side, value in zip(("base", "head"), values[2 * number : 2 * number + 2], strict=True):
            for kind in ("cpu_time", "latency"):
                content[side]["channels"][kind] |= {"median": value, "mean": value, "p20": value}
        lines.append(json.dumps(content))
    (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n")
    answer = read_answer(request, folder)
    assert answer.refused or answer.comparison is not None
