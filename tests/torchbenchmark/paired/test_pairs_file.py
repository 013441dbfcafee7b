"""The file of pairs: what is read of it, what is refused, and what its pairs come to."""

import json

import pytest
from night_factory import A, run_of

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired.comparison import Criterion
from torchbenchmark.paired.pairs_file import SIDES, MeasuredSide, Pair, PairedTest, Pairs, PairsHeader, read_pairs
from torchbenchmark.paired.results import judge_pairs, noise_table_of
from torchbenchmark.paired.sequential import judge_sequentially
from torchbenchmark.paired.tables import markdown
from torchbenchmark.records import Channel, Status, decode_run, to_line

TEST = "test_eval[dlrm-cpu-eager]"
ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture
def header(make_header):
    run = make_header(TEST)
    side = MeasuredSide(asked="/b/python", build=run.build)
    (planned,) = run.plan
    return PairsHeader(
        tests=(PairedTest(base=TEST, head=TEST, workload=planned.workload),),
        base=side,
        head=side,
        **run.model_dump(
            include={
                "run", "suite", "machine_class", "device", "started", "seed", "rounds", "processes", "measuring",
                "environment", "harness",
            }
        ),
    )  # fmt: skip


@pytest.fixture
def make_pair(make_process):
    def make(round, index=0, base=(0.25,), head=(0.25,), operators=(7, 7)):
        def side(samples, count):
            process = make_process(*samples, round=round, index=index)
            counted = Channel(unit="1", samples=(count,), median=count, mean=count, p20=count)
            return process.model_copy(update={"channels": {**process.channels, "operators": counted}})

        sides = {"base": side(base, operators[0]), "head": side(head, operators[1])}
        return Pair(test=TEST, round=round, index=index, order=SIDES, **sides)

    return make


def write(path, *items):
    path.write_text("".join(f"{item if isinstance(item, str) else to_line(item)}\n" for item in items))
    return path


def test_pairs_are_read_as_they_were_written_but_for_a_torn_last_line(tmp_path, header, make_pair):
    path = write(tmp_path / "p.jsonl", header, make_pair(1), make_pair(2))
    assert read_pairs(path) == Pairs(header, (make_pair(1), make_pair(2)))
    path.write_bytes(path.read_bytes()[:-9])
    assert read_pairs(path).pairs == (make_pair(1),)


def test_a_pair_that_stands_twice_is_refused_as_it_would_count_twice(tmp_path, header, make_pair):
    path = write(tmp_path / "p.jsonl", header, make_pair(1), make_pair(1, index=1), make_pair(1, head=(0.5,)))
    with pytest.raises(BenchmarkError, match=r"p\.jsonl:4: a second pair 0 of .* in round 1"):
        read_pairs(path)


def test_a_file_of_another_writer_reaches_neither_the_terminal_nor_another_folder(tmp_path, header, make_pair):
    for change in ({"class": "../../../tmp/x"}, {"class": ".."}, {"class": "cpu\n"}, {"suite": ESCAPE}):
        plan = json.dumps({**json.loads(to_line(header)), **change})
        with pytest.raises(BenchmarkError, match=r"p\.jsonl:1: "):
            read_pairs(write(tmp_path / "p.jsonl", plan))
    pair = json.loads(to_line(make_pair(1)))
    pair["head"] |= {"status": "error", "reason": ESCAPE}
    with pytest.raises(BenchmarkError, match=r"p\.jsonl:2: .*holds a control character"):
        read_pairs(write(tmp_path / "p.jsonl", header, json.dumps(pair)))


def test_a_count_that_varies_within_a_round_is_not_exact(header, make_pair):
    pairs = [
        make_pair(number, index, operators=(7, 7 + (number == 2 and index == 1)))
        for number in (1, 2)
        for index in (0, 1)
    ]
    (count,) = judge_pairs(Pairs(header, tuple(pairs)), Criterion()).counts
    assert (count.verdict, count.base, count.head) == ("not exact", (7,), (7, 8))


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ("......", "xxxx..", "newly failing"),
        ("......", "x.x...", "ok"),
        ("xx....", "xxxx..", "failing"),
        ("x.x...", "..x...", "ok"),
        ("x.........", "xxxxxxxxxx", "newly failing"),
        ("xxxxxx", "......", "fixed"),
        ("xxxx..", "xx....", "failing"),
        ("xxx", "xxx", "failing"),
    ],
)
def test_a_test_that_fails_now_and_then_on_both_sides_is_failing_and_not_newly(
    header, make_process, base, head, verdict
):
    pairs = []
    for number, marks in enumerate(zip(base, head, strict=True), start=1):
        sides = {
            name: make_process(round=number, status=Status.CRASH if mark == "x" else Status.OK)
            for name, mark in zip(SIDES, marks, strict=True)
        }
        pairs.append(Pair(test=TEST, round=number, index=0, order=SIDES, **sides))
    (outcome,) = judge_pairs(Pairs(header, tuple(pairs)), Criterion()).tests
    assert outcome.verdict == verdict
    for name, marks in (("base", base), ("head", head)):
        failed = marks.count("x")
        assert (f"{name}: crash in {failed} of {len(marks)} processes" in outcome.reason) == (failed > 0)


@pytest.mark.parametrize(("base", "said"), [(".", 1), ("..", 2), ("...", 0), ("xx", 0)])
def test_a_failure_of_one_side_in_fewer_than_three_processes_is_told_with_that(header, make_process, base, said):
    pairs = [
        Pair(
            test=TEST, round=number, index=0, order=SIDES,
            base=make_process(round=number, status=Status.CRASH if mine == "x" else Status.OK),
            head=make_process(round=number, status=Status.CRASH),
        )
        for number, mine in enumerate(base, start=1)
    ]  # fmt: skip
    (outcome,) = judge_pairs(Pairs(header, tuple(pairs)), Criterion()).tests
    assert outcome.verdict == ("failing" if "x" in base else "newly failing")
    told = f"crash in {said} of {said} processes, fewer failures than the 3 that are asked for: "
    assert (told in outcome.reason) == (said > 0)
    assert ("fewer" in outcome.reason) == (said > 0)


def test_pairs_that_tell_of_no_noise_make_no_table(header, make_pair, make_process):
    broken = make_process(status=Status.CRASH)
    failed = [make_pair(number).model_copy(update={"head": broken}) for number in (1, 2, 3)]
    for pairs in ([], [make_pair(1)], failed, [make_pair(1), *failed[1:]]):
        with pytest.raises(BenchmarkError, match="they tell of no noise"):
            noise_table_of(Pairs(header, tuple(pairs)))


def test_a_table_says_how_many_pairs_were_measured_and_not_how_many_were_asked_for(header, make_pair):
    asked = header.model_copy(update={"rounds": 10})
    pairs = (make_pair(1, head=(0.26,)), make_pair(2), make_pair(3, base=(0.24,)))
    assert noise_table_of(Pairs(asked, pairs)).title.endswith("3 pairs of 1 tests")


def test_the_markdown_of_many_tests_has_room_in_a_comment_and_keeps_what_is_worst(header, make_pair, make_process):
    broken = make_process(status=Status.CRASH).model_copy(update={"reason": "`|@all <b>" * 60})
    names = [f"test_eval[model_with_a_long_name_{number:04}-cpu-eager]" for number in range(900)]
    tests = tuple(header.tests[0].model_copy(update={"base": name, "head": name}) for name in names)
    pairs = [
        make_pair(number, head=(0.25 + number / 1000,)).model_copy(update={"test": name})
        for name in names[:600]
        for number in (1, 2)
    ]
    pairs += [
        make_pair(number).model_copy(update={"test": name, "head": broken}) for name in names[600:] for number in (1, 2)
    ]
    measured = Pairs(header.model_copy(update={"tests": tests}), tuple(pairs))
    text = markdown(judge_pairs(measured, Criterion(channels=("latency",))), measured.header)
    assert len(text.encode()) < 65_536
    assert text.startswith("**`newly failing: test_eval[")
    assert " more, in the JSON." in text and " more lines, in the JSON." in text
    assert text.splitlines()[-2].startswith("- `99% sure of all 600 intervals together")


def test_what_a_side_cannot_run_and_what_differs_beside_the_builds_is_told_and_not_passed_over(header, make_pair):
    absent = header.tests[0].model_copy(
        update={
            "base": "test_eval[timm-cpu-eager]",
            "head": "test_eval[timm-cpu-eager]",
            "left_out": "head: needs timm",
        }
    )
    header = header.model_copy(update={"tests": (*header.tests, absent), "differing": ("timm: 1.0 against 1.1",)})
    measured = Pairs(header, (make_pair(1), make_pair(2), make_pair(3)))
    for comparison in (judge_pairs(measured, Criterion()), judge_sequentially(measured, Criterion())[0]):
        assert [(one.test, one.verdict) for one in comparison.tests] == [(TEST, "ok"), (absent.base, "left out")]
        text = markdown(comparison, header)
        assert "- `left out: test_eval[timm-cpu-eager]: head: needs timm`" in text
        assert "- `the sides differ beside their builds: timm: 1.0 against 1.1`" in text


def test_a_run_that_is_given_for_pairs_is_told_as_what_it_is(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(run_of(0, {A: {"cpu_time": [1.0]}}).header.model_dump_json(by_alias=True) + "\n")
    with pytest.raises(BenchmarkError, match=r"a\.jsonl:1: holds a run of `torchbench run` and no pairs; two runs"):
        read_pairs(file)


def test_the_json_of_a_comparison_is_not_its_pairs(tmp_path):
    file = tmp_path / "ab.json"
    file.write_text('{\n "kind": "comparison"\n}\n')
    with pytest.raises(BenchmarkError, match=r"expected a line that `torchbench ab` wrote into its --out"):
        read_pairs(file)


def test_pairs_that_are_given_for_a_run_are_told_as_what_they_are():
    with pytest.raises(
        BenchmarkError, match=r"aa\.jsonl:1: holds pairs of `torchbench ab` and no run; `torchbench comp"
    ):
        decode_run(b'{"kind": "pairs", "schema": 1}\n', "aa.jsonl")
