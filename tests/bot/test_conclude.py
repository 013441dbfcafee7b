"""Concluding several shards and nights at once, and issues that another job files."""

import dataclasses
import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from night_factory import FIRST_NIGHT, A, B, run_of, shards_of

from baselines.pins import read_pins, remove_pin
from baselines.policy import load_policy
from baselines.runs import list_runs, list_series, store_run
from baselines.store import open_store
from baselines.stored_builds import stored_build
from bot.config import NightlyConfig
from bot.errors import BotError
from bot.filing import file_all
from bot.github.issue import Issue, key_of
from bot.github.issue_file import IssueFile, read_issues
from bot.github.outbox import Outbox
from bot.sharded import conclude_files, conclude_shards, make_plan, print_plan, recorded_durations
from torchbenchmark.builds.pinned import PinnedBuild, PinnedWheel
from torchbenchmark.cli import request_of
from torchbenchmark.environment import default_interpreter
from torchbenchmark.experiment import Experiment
from torchbenchmark.records import Run, Shard, Status, encode_run
from torchbenchmark.registry import load_suite
from torchbenchmark.shards import RunPlan

GOOD = {A: 1.0, B: 1.0}


@pytest.fixture
def nightly(tmp_path):
    """Concludes some shards; gives the exit code."""
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", outbox=tmp_path / "outbox")
    config.work.mkdir()
    store, policy = open_store(config.store), load_policy("default")

    def conclude(*shards: Run, tracker=None) -> int:
        return conclude_shards(config, store, policy, shards, tracker or Outbox(config.outbox))

    conclude.store = store
    return conclude


def halves(day, **fields):
    return shards_of(run_of(day, GOOD, **fields), [A], [B])


def names(nightly):
    return [run[-5:] for run in list_runs(nightly.store, "smoke", "cpu-4t")]


def test_a_shard_that_does_not_fit_is_told_and_stops_neither_its_night_nor_the_others(nightly, capsys):
    first, second = halves(0)
    other = halves(0, fingerprint="env2", facts={"driver": "2"})[1]
    assert nightly(first, other, run_of(1, GOOD)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "error: shard 2/2 of run r0000 is not stored" in said and "environment (cpu, driver)" in said
    assert names(nightly) == ["r0000", "r0001"]
    assert nightly(second) == 0


def test_a_night_that_cannot_be_read_stops_no_other(nightly, capsys):
    first, second = halves(0)
    damaged = store_run(nightly.store, first)
    (nightly.store.root / damaged).write_bytes(encode_run(halves(1)[0]))
    assert nightly(second, run_of(2, GOOD)) == 2
    assert "r0001; remove it" in " ".join(capsys.readouterr().err.split())
    assert nightly(run_of(3, GOOD)) == 0


def test_a_shard_that_ended_early_makes_the_code_2_also_beside_a_night_that_is_well(nightly, capsys):
    cut = dataclasses.replace(run_of(1, GOOD), records=())
    assert nightly(run_of(0, GOOD), cut) == 2
    assert "ended early, with 0 of 2 tests" in capsys.readouterr().err
    assert names(nightly) == ["r0000"]


def test_a_class_that_the_configuration_does_not_take_is_left_out(tmp_path, capsys):
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", classes=("cpu-4t",))
    files = [tmp_path / "known.jsonl", tmp_path / "invented.jsonl"]
    for path, machine_class in zip(files, ("cpu-4t", "cpu-9000t"), strict=True):
        run = run_of(0, GOOD, machine_class=machine_class)
        path.write_bytes(gzip.decompress(encode_run(run)))
    assert conclude_files(config, files, Outbox(tmp_path / "outbox")) == 2
    assert "invented.jsonl: is of class cpu-9000t" in " ".join(capsys.readouterr().err.split())
    assert list_series(open_store(config.store)) == [("smoke", "cpu-4t")]


def test_how_the_build_of_a_night_was_pinned_is_stored_with_it(tmp_path):
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", suite="smoke")
    run = run_of(0, GOOD)
    version = run.header.build.wheels["torch"]
    wheel = PinnedWheel(name="torch", version=version, file=f"torch-{version}-py3-none-any.whl")
    pin = PinnedBuild(index="https://example.org", date="2026-03-01", python="3.11", wheels=(wheel,))
    models = tuple(Experiment.parse(test).model for test in GOOD)
    plan = RunPlan(
        run=run.header.run, started=run.header.started, seed=1, suite="smoke", device="cpu", rounds=1, processes=1,
        subject="torch", timeout_s=60, shards=(models,), build=pin,
    )  # fmt: skip
    path = tmp_path / "shard.jsonl"
    path.write_bytes(gzip.decompress(encode_run(run)))
    assert conclude_files(config, [path], Outbox(tmp_path / "outbox"), plan) == 0
    store = open_store(config.store)
    assert stored_build(store, run.header.build.id).pin == pin
    key = f"builds/{run.header.build.id}.json"
    (store.root / key).write_bytes(b"{")
    assert conclude_files(config, [path], Outbox(tmp_path / "outbox"), plan) == 2, "told, and the night is judged"


def test_issues_that_are_left_in_a_file_are_filed_from_it_once(nightly, tmp_path):
    path = tmp_path / "issues.json"
    for day in range(7):
        assert nightly(run_of(day, GOOD), tracker=IssueFile(path)) == 0
    assert read_issues(path) == ()
    assert nightly(run_of(7, {**GOOD, A: 1.5}), tracker=IssueFile(path)) == 1
    assert not (tmp_path / "outbox").exists()
    (issue,) = read_issues(path)
    assert issue.is_open and "test_eval[resnet50-cpu-eager]" in issue.body
    outbox = Outbox(tmp_path / "outbox")
    assert [outbox.put(issue).effect for _ in range(2)] == ["created", "unchanged"]


def test_of_an_issue_of_two_nights_the_later_one_is_kept(tmp_path):
    file, issue = IssueFile(tmp_path / "issues.json"), Issue(key_of("a"), "title", "first", ("torchbench",), True)
    file.put(issue)
    file.put(dataclasses.replace(issue, body="second"))
    assert [one.body for one in read_issues(tmp_path / "issues.json")] == ["second"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "issues.json: "),
        ('{"kind": "issues", "schema": 1, "issues": [{"key": 3}]}', "issues"),
        ("[]", "issues.json"),
    ],
)
def test_a_file_that_holds_no_issues_is_told(tmp_path, content, message):
    path = tmp_path / "issues.json"
    path.write_text(content)
    with pytest.raises(BotError, match=message):
        read_issues(path)
    with pytest.raises(BotError, match="cannot be read"):
        read_issues(tmp_path / "none.json")
    with pytest.raises(BotError, match="cannot be written"):
        IssueFile(tmp_path / "no" / "folder.json")


FIT = {"key": "0" * 16, "title": "t", "body": "b", "labels": ["torchbench"], "is_open": True, "occasion": ""}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "no key"},
        {"key": "0" * 16 + "\n"},
        {"title": "two\nlines ::error::x"},
        {"labels": []},
        {"labels": ["performance regression"]},
        {"labels": ["torchbench", "a,b"]},
        {"occasion": "-->\n"},
        {"occasion": "--> <!-- x -->"},
        {"revision": -1},
    ],
)
def test_issues_that_the_bot_does_not_make_are_refused(tmp_path, changes):
    path = tmp_path / "issues.json"
    path.write_text(json.dumps({"kind": "issues", "schema": 1, "issues": [FIT]}))
    assert len(read_issues(path)) == 1
    path.write_text(json.dumps({"kind": "issues", "schema": 1, "issues": [{**FIT, **changes}]}))
    with pytest.raises(BotError, match=r"issues\.json: "):
        read_issues(path)


def test_an_issue_that_cannot_be_filed_keeps_no_other_from_being_filed(tmp_path):
    outbox = Outbox(tmp_path / "outbox")

    class Failing:
        def put(self, issue):
            if issue.key.startswith("a"):
                raise BotError(f"{issue.title} is locked")
            return outbox.put(issue)

    issues = [Issue(letter * 16, f"issue {letter}", "body", ("torchbench",), True) for letter in "abac"]
    with pytest.raises(BotError, match=r"issue a is locked \(and 1 more issues could not be filed\)"):
        file_all(Failing(), issues)
    assert len(list((tmp_path / "outbox").glob("*.md"))) == 2


def test_a_person_who_closed_an_issue_hears_of_a_further_test_and_of_a_relapse_and_of_nothing_else(nightly, tmp_path):
    def occasion(day, tests):
        path = tmp_path / "issues.json"
        nightly(run_of(day, {**GOOD, **tests}), tracker=IssueFile(path))
        return [issue.occasion for issue in read_issues(path)]

    for day in range(7):
        assert occasion(day, {}) == []
    first = occasion(7, {A: 1.5})
    assert occasion(8, {A: 1.6}) == first
    further = occasion(9, {A: 1.5, B: 5.0})
    assert further != first
    for day in (10, 11, 12):
        assert occasion(day, {}) == further
    relapse = occasion(20, {A: 4.0})
    assert relapse not in (first, further)
    assert occasion(21, {A: 4.0}) == relapse


def test_what_could_not_be_filed_in_the_night_of_closing_is_filed_in_the_next(nightly, tmp_path):
    outbox = Outbox(tmp_path / "outbox")
    start = int((datetime.now(UTC) - FIRST_NIGHT).total_seconds() / 86400) - 20

    def night(number, tests=None, filed=True):
        path = tmp_path / "issues.json"
        nightly(run_of(start + number, {**GOOD, **(tests or {})}), tracker=IssueFile(path))
        return [outbox.put(issue).effect for issue in read_issues(path)] if filed else read_issues(path)

    for number in range(7):
        assert night(number) == []
    assert night(7, {A: 1.5}) == ["created"]
    old = read_issues(tmp_path / "issues.json")
    night(8), night(9), night(10, filed=False)
    assert "*open*" in next(outbox.folder.glob("*.md")).read_text()
    assert night(11) == ["updated"]
    text = next(outbox.folder.glob("*.md")).read_text()
    assert "*closed*" in text and "**Closed: recovered for 3 nights.**" in text and "+50.0%" in text
    assert night(12) == ["unchanged"]
    assert [outbox.put(issue).effect for issue in old] == ["left: it is newer"]


def test_the_issue_of_something_slower_tells_how_to_accept_its_level_and_that_of_failing_tests_does_not(
    nightly, tmp_path
):
    for day in range(7):
        nightly(run_of(day, GOOD))
    nightly(run_of(7, {A: 1.5, B: Status.CRASH}))
    failing, slower = sorted((tmp_path / "outbox").glob("*.md"), key=lambda path: "slower" in path.name)
    key = re.search(r"torchbench alert `(\w+)`", slower.read_text())[1]
    assert f"alerts accept --store {tmp_path / 'store'} smoke cpu-4t {key} --why" in slower.read_text()
    assert "newly-failing" in failing.name and "alerts accept" not in failing.read_text()


def test_score_and_total_say_on_the_terminal_what_they_are(nightly, capsys):
    nightly(run_of(0, {A: {"cpu_time": 1.0, "latency": 2.0}}))
    first = capsys.readouterr().out
    assert "score: none, the first valid night becomes the reference, 1000" in first
    assert "which are 1000" not in first
    nightly(run_of(1, {A: {"cpu_time": 1.0, "latency": 2.5}}))
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "total 1000.0: cpu_time against the nights before, which are 1000 (+0.00% time), over 1 tests" in said
    assert (
        "score 800.0: the published Score V1, on wall latency; no verdict hangs on it "
        "1000 is the run of 2026-03-01, 2.14.0.dev0000; over 1 of 1 tests of the reference"
    ) in said


def test_nothing_of_the_summary_is_cut_however_long_it_is(nightly, capsys, tmp_path):
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", reference="no-such/" + "x" * 300)
    nights = [run_of(0, GOOD)]
    assert conclude_shards(config, nightly.store, load_policy("default"), nights, Outbox(config.outbox)) == 0
    said = "".join(capsys.readouterr().out.replace("│", "").split())
    assert f"score:none,reference{config.reference}:nosuchfile" in said


def test_a_regression_never_becomes_the_reference(nightly, capsys):
    for day in range(7):
        nightly(run_of(day, GOOD))
    assert "pinned as reference" in capsys.readouterr().out
    remove_pin(nightly.store, "smoke", "cpu-4t", "reference")
    assert nightly(run_of(7, {**GOOD, A: 1.5})) == 1
    assert read_pins(nightly.store, "smoke", "cpu-4t") == {}
    nightly(run_of(8, GOOD))
    assert read_pins(nightly.store, "smoke", "cpu-4t")["reference"].run.endswith("r0008")


def test_shards_are_balanced_by_the_newest_run_of_a_day_and_not_by_the_last_name(nightly):
    early, late = run_of(0, {A: {"cpu_time": [1.0, 1.0]}}), run_of(0, {A: 1.0}, run="r0001")
    late = dataclasses.replace(
        late,
        header=late.header.model_copy(
            update={
                "started": early.header.started.replace(hour=20),
                "build": late.header.build.model_copy(update={"id": "a-name-that-comes-first"}),
            }
        ),
    )
    assert nightly(early, late) in (0, 1)
    assert recorded_durations(nightly.store, load_suite("smoke"), "cpu", None) == {"resnet50": 1.0}


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({}, ["1/2 not measured yet hf_Bert", "2/2 not measured yet dlrm, resnet18"]),
        ({"dlrm": 2.0}, ["1/2 not measured yet hf_Bert", "2/2 2, without 1 model not measured yet dlrm, resnet18"]),
        ({"dlrm": 2.4, "resnet18": 3.0, "hf_Bert": 0.0}, ["1/2 0 hf_Bert", "2/2 5 dlrm, resnet18"]),
    ],
)
def test_a_plan_says_how_long_each_shard_took_or_that_it_was_not_measured_yet(tmp_path, capsys, known, told):
    plan = make_plan(NightlyConfig(), load_suite("smoke"), 2, {})
    plan = plan.model_copy(update={"shards": (("hf_Bert",), ("dlrm", "resnet18"))})
    print_plan(plan, known)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:]] == told


def test_a_plan_names_the_interpreter_that_its_shards_measure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = NightlyConfig(python=tmp_path / "env" / "bin" / "python")
    plan = make_plan(config, load_suite("smoke"), 2, {})
    assert plan.python == Path("env/bin/python"), "from the folder of the checkout"
    assert request_of(plan, Shard(index=1, count=2)).python == plan.python
    without = plan.model_copy(update={"python": None})
    assert request_of(without, Shard(index=1, count=2)).python == default_interpreter()
