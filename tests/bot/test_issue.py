"""The issue as a maintainer reads it, and the outbox that holds it."""

import dataclasses
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from night_factory import A, B, C, equal_weights, night_of, run_of

from baselines.policy import load_policy
from bot.errors import BotError
from bot.github.alerts import apply_report
from bot.github.issue import Issue
from bot.github.outbox import Outbox
from bot.pages.issue import (
    IssueFacts,
    NightLine,
    accepting_command,
    render_body,
    render_evidence,
    render_title,
    reproduce_commands,
    side_by_side_command,
)
from regression_detector import detect
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.records import Status

GOOD = {A: 1.0, B: 1.0, C: 1.0}
KEY = "0123456789abcdef"


def report_of(tests):
    return detect(
        night_of(7, {**GOOD, **tests}),
        [night_of(day, GOOD) for day in range(7)],
        load_policy("default"),
        weights=equal_weights,
    )


def alert_of(report, kind):
    return next(alert for alert in apply_report((), report, now=report.tonight.started) if alert.kind == kind)


def facts_of(tests, kind="regression", **changes):
    facts = {
        "kind": kind,
        "suite": "smoke",
        "tests": alert_of(report_of(tests), kind).tests,
        "is_open": True,
        "closed_because": "",
        "opened": "2026-03-08",
        "nights": (NightLine("2026-03-08 02:00", "build0007", "found", "opened"),),
        "owners": (),
        "worst": "" if kind == "failure" else "+50.0%",
    }
    return IssueFacts(**{**facts, **changes})


def body_of(tests, kind="regression", *, score=912.3, **changes) -> str:
    report = report_of(tests)
    evidence = render_evidence(kind, alert_of(report, kind).tests, report, ("torchbench run",), score, "v1.1")
    return render_body(facts_of(tests, kind, **changes), evidence)


def test_the_first_line_says_how_many_tests_are_slower_and_by_how_much():
    first = body_of({A: 1.5, B: 1.2}).splitlines()[0]
    assert first.startswith("**2 of 3 tests are slower, by +20.0% to +50.0%**, on `build0007`")


def test_one_slower_test_is_told_in_the_singular():
    assert body_of({A: 1.5}).startswith("**1 of 3 tests is slower, by +50.0%**")


def test_the_title_names_count_size_and_night():
    assert render_title(facts_of({A: 1.5, B: 1.2})) == "2 tests slower by up to 50.0% since 2026-03-08 (smoke)"
    assert render_title(facts_of({A: 1.5})).startswith("1 test slower")


def test_the_table_has_the_alerts_tests_worst_first_with_channel_values_change_and_nights():
    rows = [line for line in body_of({A: 1.5, B: 1.2}).splitlines() if line.startswith("| `test")]
    assert rows[0] == f"| `{A}` | cpu_time p20 | 1 s | 1.5 s | +50.0% | 7 |"
    assert rows[1].startswith(f"| `{B}` |")
    assert len(rows) == 2


def test_a_failing_test_is_told_with_its_reason():
    body = body_of({A: Status.CRASH}, kind="failure")
    assert body.startswith("**1 test that ran before now fails**")
    assert "planted crash" in body


def test_both_builds_the_limits_and_the_flat_rule_are_told():
    body = body_of({A: 1.5})
    assert "Last good build: `build0006`" in body
    assert "This build: `build0007`" in body
    assert "flat rule of 7 % a test and 1 % of the total: regression" in body
    assert "| build | `wheels.torch` | `2.14.0.dev0006` | `2.14.0.dev0007` |" in body


def test_score_and_total_say_what_they_are():
    body = body_of({A: 1.5})
    assert "- Score **912.3**: the published Score V1, wall latency against `v1.1`, which is 1000; no verdict" in body
    total = "- Total **873.6**: `cpu_time` against the nights before, which are 1000 (+14.5% time), over 3 tests."
    assert total in body
    assert "- Score" not in body_of({A: 1.5}, score=None)
    assert "\n\n- " not in body.partition("- Last good build")[2], "one list"


def test_a_closed_alert_says_so_first():
    assert body_of({A: 1.5}, is_open=False, closed_because="recovered for 3 nights").startswith(
        "**Closed: recovered for 3 nights.**"
    )


def test_what_people_decided_stands_before_the_words_that_lead_to_the_numbers():
    nights = (NightLine("2026-03-09 02:00", "build0008", "", "recovered, night 1 of 3"),)
    for changes in ({"is_open": False, "closed_because": "called noise by ada"}, {"nights": nights}):
        body = body_of({A: 1.5}, decided=("Acknowledged by ada.",), **changes)
        before, leading, after = body.partition("What was found, with the newest night that found it:\n")
        assert "Acknowledged by ada." in before and leading and after.lstrip().startswith("**1 of 3 tests is slower")
    assert "What was found, with" not in body_of({A: 1.5}, decided=("Acknowledged by ada.",))


def test_a_night_that_recovers_shows_the_numbers_of_the_slow_night_and_not_its_own():
    nights = (
        NightLine("2026-03-09 02:00", "build0008", "", "recovered, night 1 of 3"),
        NightLine("2026-03-08 02:00", "build0007", "found", "opened"),
    )
    body = body_of({A: 1.5}, nights=nights)
    assert body.startswith("**Nothing found in the night of 2026-03-09 02:00** (recovered, night 1 of 3).")
    assert "1 of 3 tests is slower" in body and "This build: `build0007`" in body and "+50.0%" in body


@pytest.mark.parametrize(
    "hostile",
    ["@everyone", "a|b", "`code`", "<script>alert(1)</script>", "![x](http://e.vil/x.png)", "two\nlines", "\x1b[31m"],
)
def test_foreign_text_becomes_one_code_span_that_ends_neither_itself_nor_a_table_cell(hostile):
    span = inline_code(hostile)
    assert span.startswith("`") and span.endswith("`")
    assert not re.search(r"[`|\n\x1b]", span[1:-1])


def test_the_commands_measure_the_same_tests_the_same_way_before_the_alert():
    header = run_of(3, GOOD).header
    run, compare = reproduce_commands(
        header, "smoke", (A, "total"), "a store", "smoke", datetime(2026, 3, 8, 2, 0, tzinfo=UTC)
    )
    assert f"--test '{A}'" in run
    assert "total" not in run
    assert "--threads 4" in run
    assert (
        compare.partition("torchbench detect ")[2]
        == "again.jsonl --store 'a store' --policy smoke --before 2026-03-08T02:00:00"
    )


def test_the_commands_say_where_a_policy_is_that_stands_in_the_configuration():
    moment = datetime(2026, 3, 8, 2, 0, tzinfo=UTC)
    _, compare = reproduce_commands(run_of(3, GOOD).header, "smoke", (A,), "store", None, moment)
    command, _, comment = compare.partition("  # ")
    assert " --policy policy.yaml --before " in command and "`policy` in the configuration" in comment


def test_an_issue_of_something_slower_says_how_to_see_both_builds_and_while_it_is_open_how_to_accept_the_level():
    header = run_of(3, GOOD).header
    pairs = side_by_side_command(header, "my suite.yaml", (A, "total"))
    assert pairs.partition("torchbench ")[2].split(" \\\n  ") == [
        f"ab LAST_GOOD {header.build.interpreter}",
        "--suite 'my suite.yaml' --device cpu --threads 4",
        f"--budget {header.measuring.budget_s:g}",
        f"--test '{A}'",
    ]
    evidence = render_evidence("regression", (A,), report_of({A: 1.5}), ("again",), None, "", side_by_side=pairs)
    assert f"```sh\n{pairs}\n```" in evidence

    accept = accepting_command("smoke", "cpu-4t", "a store", KEY)
    assert accept.partition("torchbench ")[2] == (
        f"alerts accept --store 'a store' smoke cpu-4t {KEY} --why 'the reason'"
    )
    facts = facts_of({A: 1.5}, accept=accept)
    assert f"```sh\n{accept}\n```" in render_body(facts, evidence)
    closed = dataclasses.replace(facts, is_open=False, closed_because="accepted")
    assert "What to do" not in render_body(closed, evidence)


def test_what_may_be_said_in_a_comment_stands_with_its_meaning_before_the_command_for_a_machine():
    said = ("/ack", "/expected", "/noise", "/snooze 7d", "/bisect")
    body = body_of({A: 1.5}, accept="torchbench alerts accept", comments=said)
    comments, _, command = body.partition("What to do")[2].partition("```sh")
    assert [line.partition(":")[0] for line in comments.splitlines() if line.startswith("- ")] == [
        *(f"- `{one}`" for one in said),
        "- `/help`",
    ]
    assert "- `/noise`: nothing has changed\n" in comments and command.startswith("\ntorchbench alerts accept\n```")
    assert "accept the level" in body_of({A: 1.5}, accept="torchbench alerts accept")
    body = render_body(dataclasses.replace(facts_of({A: 1.5}, comments=("/noise",)), kind="failure"), "")
    assert "- `/noise`: flaky\n" in body.partition("### What to do\n\nWhat you know of it")[2]


def issue(body: str = "first", is_open: bool = True) -> Issue:
    return Issue(KEY, "3 tests slower", body, ("torchbench",), is_open)


def test_the_outbox_creates_then_updates_the_file_with_the_key_and_leaves_an_equal_one_alone(tmp_path):
    outbox = Outbox(tmp_path / "out")
    created = outbox.put(issue())
    assert created.effect == "created"
    assert outbox.put(issue()).effect == "unchanged"
    path = Path(created.where)
    renamed = path.rename(path.with_name("renamed.md"))
    updated = outbox.put(issue("second", is_open=False))
    assert (updated.effect, updated.where) == ("updated", str(renamed))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["renamed.md"]
    first, *rest = renamed.read_text().splitlines()
    assert first.startswith(f"<!-- torchbench-alert: {KEY} -->")
    assert rest[:5] == ["# 3 tests slower", "", "*closed* · `torchbench`", "", "second"]
    older = outbox.put(dataclasses.replace(issue("third"), revision=-1))
    assert (older.effect, renamed.read_text().splitlines()[5]) == ("left: it is newer", "second")


def test_another_alert_is_another_file(tmp_path):
    outbox = Outbox(tmp_path)
    outbox.put(issue())
    outbox.put(Issue("f" * 16, "3 tests slower", "other", (), True))
    assert len(list(tmp_path.glob("*.md"))) == 2


def test_an_outbox_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BotError, match="file: the outbox cannot be written"):
        Outbox(tmp_path / "file").put(issue())
