"""The comment with the verdict, and what else is done on GitHub when a request has been measured."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from made_results import (
    FINE,
    HEAD,
    LATER,
    SAME,
    SLOW,
    built,
    make_profiles,
    make_request,
    measured,
    write_results,
)
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.benchmark_request import MOST_TESTS
from bot.github.actions import LONGEST_COMMENT
from bot.pull_request.answer import Answer, read_answer
from bot.pull_request.reporting import Around, report_actions
from torchbenchmark.records import to_line

REQUEST = make_request()
RUN = "https://github.example/torch-owner/nightlies/actions/runs/5"
HOSTILE = "@team <img src=x onerror=alert(1)> [click](http://evil.example) http://evil.example `code` | # ::error::x ‮"


def around(**changes) -> Around:
    facts = {"job": "success", "run": 5, "server": "https://github.example", "config": ".github/nightly.yaml"}
    return Around(**{**facts, "run_url": RUN, "head_now": HEAD, **changes})


def comment_of(request, answer: Answer, **changes) -> str:
    (body,) = [one.body for one in report_actions(request, answer, around(**changes)) if one.kind == "reply"]
    return body


def told(folder: Path, request=REQUEST, **changes) -> str:
    return comment_of(request, read_answer(request, folder), **changes)


def headline(body: str) -> str:
    return body.splitlines()[0].strip("*")


def tokens_of(markdown: str) -> Iterable[Token]:
    """What a reader of Markdown finds, code left out."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        yield from (one for one in token.children or [token] if one.type not in ("code_inline", "fence"))


def require_harmless(markdown: str) -> None:
    """No mention, no link but ours, no HTML but the folds."""
    for token in tokens_of(markdown):
        if token.type == "link_open":
            assert token.attrs["href"] == RUN
        assert token.type != "image"
        if token.type in ("html_block", "html_inline"):
            left = re.sub(r"</?(?:details|summary)>", "", token.content)
            assert "<" not in left.replace("<!-- torchbench-", ""), token.content
            assert "@" not in left and "http" not in left
        elif token.type == "text":
            assert "@" not in token.content and "http" not in token.content, token.content


def test_the_verdict_stands_first_and_the_changed_test_alone_is_open(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, {SLOW: 1.3}))
    first, _, rest = body.partition("<details>")
    assert first == (
        "**Slower: 1 of 3 tests: `test_eval[dlrm-cpu-eager]` +30.1 % (cpu_time).**\n"
        "\n"
        "Head `aaaaaaaaaaaa` against base `bbbbbbbbbbbb` (the merge base), side by side on `cpu-4t`, 2026-03-02. "
        "Asked for by `ada`.\n"
        "\n"
        "### Changed: 1 test\n"
        "\n"
        "| test | channel | base | head | change | 99 % interval | pairs | verdict |\n"
        "|---|---|--:|--:|--:|--:|--:|---|\n"
        "| `test_eval[dlrm-cpu-eager]` | cpu_time | 999.3 ms | 1.3 s | +30.1 % | +29.7 % to +30.5 % | 6 | slower |\n"
        "| `test_eval[dlrm-cpu-eager]` | latency | 1.099 s | 1.43 s | +30.1 % | +29.7 % to +30.5 % | 6 | slower |\n"
        "\n"
    ), first
    assert "<summary>No change: 2 tests; 3 exact counts the same</summary>" in rest
    assert f"| `{SAME}` | cpu_time |" in rest and "no change beyond 5 %" in rest
    assert "Builds and environment" in rest and "`worksteps" not in rest and "`torch 2.14.0.dev0001`" in rest
    assert "torchbench build 'git:https://github.example/torch-owner/nightlies.git@" + HEAD in rest
    assert "torchbench ab BASE_PYTHON HEAD_PYTHON \\\n  --suite smoke --device cpu --pairs 6 --sequential" in rest
    require_harmless(body)


def test_nothing_that_changed_is_said_with_what_would_have_counted(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST))
    assert headline(body) == "No change beyond 5 % in 3 tests."
    assert report_actions(REQUEST, read_answer(REQUEST, tmp_path / "r"), around())[1].conclusion == "success"
    assert "### " not in body


@pytest.mark.parametrize("how", ["left out", "no pair", "head was lost"])
def test_a_test_that_was_not_measured_has_not_passed(tmp_path, how):
    folder = write_results(tmp_path / "r", REQUEST)
    header, *pairs = map(json.loads, (folder / "pairs.jsonl").read_text().splitlines())
    others = [one for one in pairs if one["test"] != SLOW]
    if how == "left out":
        next(one for one in header["tests"] if one["base"] == SLOW)["left_out"] = "head cannot run it"
    elif how == "head was lost":
        others += [one | {"head": None} for one in pairs if one["test"] == SLOW]
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in (header, *others)))
    _, check, reply = report_actions(REQUEST, read_answer(REQUEST, folder), around())
    assert headline(reply.body) == "No change beyond 5 % in 2 tests. Not measured: 1 of 3 tests."
    assert "<summary>Not compared: 1 test</summary>" in reply.body
    assert check.conclusion == "neutral"


def test_what_is_faster_is_said_too(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, {SAME: 0.8}))
    assert headline(body).startswith("Faster: 1 of 3 tests: `test_eval[resnet18-cpu-eager]` -20.")


def test_what_cannot_be_told_says_how_many_pairs_it_needs_and_how_to_ask(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, noise=0.03))
    needs = re.match(r"\*\*Inconclusive: 3 of 3 tests: needs (\d+) more pairs\.\*\*\n", body)
    assert needs, body
    assert f"Ask again with `pairs={6 + int(needs[1])}` to have them decided" in body
    assert "<summary>Inconclusive: 3 tests, needs" in body


def test_more_pairs_than_may_be_asked_for_are_not_advised(tmp_path):
    answer = read_answer(REQUEST, write_results(tmp_path / "r", REQUEST, noise=0.05))
    more = re.search(r"needs (\d+) more pairs", comment_of(REQUEST, answer, most_pairs=1000))
    assert more is not None
    needed = REQUEST.pairs + int(more[1])
    body = comment_of(REQUEST, answer, most_pairs=needed - 1)
    assert f"About {needed} pairs would decide them all" in body and f"takes at most `pairs={needed - 1}`" in body
    assert "Ask again" not in body
    assert f"Ask again with `pairs={needed}`" in comment_of(REQUEST, answer, most_pairs=needed)


def test_where_no_test_is_without_change_the_counts_stand_in_no_empty_fold(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, noise=0.05))
    assert "No change: 0 tests" not in body and "3 exact counts are the same.\n" in body


def test_newly_failing_is_loud_and_before_what_is_slower(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, {SLOW: 1.3}, {SAME: f"ValueError: {HOSTILE}"}))
    assert headline(body).startswith("Newly failing: 1 of 3 tests: `test_eval[resnet18-cpu-eager]`. Slower: 1 of 3 ")
    assert body.index("### Newly failing: 1 test\n") < body.index("### Changed: 1 test\n")
    assert (
        "| test | how it fails |\n|---|---|\n| `test_eval[resnet18-cpu-eager]` | `head: error in 6 of 6 processes: "
        in body
    )
    require_harmless(body)


def test_a_head_that_does_not_build_is_an_answer_with_the_end_of_its_log(tmp_path):
    (folder := tmp_path / "r").mkdir()
    failed = built("head", HEAD, state="failed", reason=f"could not be built {HOSTILE}", lines=[HOSTILE, "error: no ;"])
    (folder / "base.json").write_text(json.dumps(built("base", REQUEST.base)))
    (folder / "head.json").write_text(json.dumps(failed))
    (folder / "measured.json").write_text(json.dumps(measured(state="not measured", reason="head was not built")))
    body = told(folder)
    assert headline(body) == "Nothing measured: head `aaaaaaaaaaaa` does not build."
    assert "### The build of head failed\n" in body and "- `error: no ;`\n" in body
    assert "What went wrong" not in body
    require_harmless(body)
    status, check, _ = report_actions(REQUEST, read_answer(REQUEST, folder), around())
    assert (check.state, check.conclusion) == ("completed", "failure")
    assert "failed.** Nothing was measured: `head aaaaaaaaaaaa does not build`.\n" in status.body


def test_refused_results_are_said_on_the_pull_request_of_the_request(tmp_path):
    folder = write_results(tmp_path / "r", REQUEST, {SLOW: 1.3})
    (folder / "measured.json").write_text(json.dumps({**measured(), "pull": 1}))
    actions = report_actions(REQUEST, read_answer(REQUEST, folder), around())
    assert {one.number for one in actions if one.kind in ("status", "reply")} == {7}
    assert [one.conclusion for one in actions if one.kind == "check"] == ["neutral"]
    (reply,) = [one for one in actions if one.kind == "reply"]
    assert headline(reply.body) == "Nothing measured: the results were refused."
    assert "Why the results were refused: `measured.json: " in reply.body
    assert "slower" not in reply.body


def test_what_the_artifact_says_of_itself_is_harmless(tmp_path):
    folder = write_results(tmp_path / "r", REQUEST, {SLOW: 1.3})
    path = folder / "pairs.jsonl"
    header, *pairs = path.read_text().splitlines()
    content = json.loads(header)
    content |= {"suite": HOSTILE, "class": "x" * 50, "harness": HOSTILE, "differing": [HOSTILE] * 400}
    content["environment"]["facts"] = {f"cpu {HOSTILE} {number}": HOSTILE * 20 for number in range(400)}
    for side in ("base", "head"):
        build = content[side]["build"]
        build |= {"subject": HOSTILE, "version": HOSTILE, "python": HOSTILE}
        build["wheels"] = {f"{HOSTILE} {number}": f"{side} {HOSTILE}" for number in range(400)}
        content[side]["asked"] = HOSTILE
    path.write_text("\n".join([json.dumps(content), *pairs]) + "\n")
    body = told(folder)
    assert headline(body).startswith("Slower: 1 of 3 tests")
    assert "@team" in body, "it is shown"
    require_harmless(body)
    assert len(body) < LONGEST_COMMENT


@pytest.mark.parametrize("what", ["slower", "failing", "open", "same"])
def test_two_hundred_tests_of_the_longest_names_fit_into_a_comment(tmp_path, what):
    tests = [f"test_eval[{'m' * 170}{number:03}-cpu-eager]" for number in range(MOST_TESTS)]
    request = make_request(tests, pairs=6)
    ratios = dict.fromkeys(tests, 1.5) if what == "slower" else {}
    failing = dict.fromkeys(tests, "x" * 600) if what == "failing" else {}
    body = told(write_results(tmp_path / "r", request, ratios, failing, 0.05 if what == "open" else 0.001), request)
    assert len(body) < LONGEST_COMMENT
    assert body.count("<details>") == body.count("</details>")
    assert f"{MOST_TESTS} of {MOST_TESTS} tests" in headline(body) or f"in {MOST_TESTS} tests" in headline(body)
    if what in ("slower", "failing"):
        assert re.search(r"…and \d+ more", body)
    require_harmless(body)


def test_what_differs_inside_is_told_in_brief_and_folded_by_operator(tmp_path):
    request = make_request((SLOW,), profile=True)
    folder = write_results(tmp_path / "r", request, {SLOW: 1.4})
    lines = make_profiles(request, f"aten::gelu {HOSTILE}")
    (folder / "profiles.jsonl").write_text("".join(f"{to_line(line)}\n" for line in lines))
    body = told(folder, request)
    first, _, folded = body.partition("<details>")
    assert f"Inside, both builds profiled by turns:\n\n- `{SLOW}: aten::gelu" in first
    assert "<summary>Difference by operator and by kernel</summary>" in folded and "| `aten::gelu " in folded
    assert "Note: " not in body
    require_harmless(body)


def test_a_head_that_has_moved_meanwhile_is_said(tmp_path):
    folder = write_results(tmp_path / "r", REQUEST)
    assert "has moved since" not in told(folder)
    body = told(folder, head_now=LATER)
    assert f"**The head of this pull request has moved since, to `{LATER[:12]}`.**" in body
    assert f"`{HEAD[:12]}` alone" in body


def test_a_cancelled_request_is_told_by_its_status_and_check_alone(tmp_path):
    status, check = report_actions(REQUEST, read_answer(REQUEST, tmp_path / "absent"), around(job="cancelled"))
    assert "**Benchmark of `aaaaaaaaaaaa`: cancelled.**" in status.body
    assert "a newer request of this pull request took its place" in status.body
    assert check.conclusion == "cancelled"


def test_a_job_that_left_nothing_is_a_failure_that_is_said(tmp_path):
    body = told(tmp_path / "absent", job="failure")
    assert headline(body) == "Nothing measured."
    assert "What went wrong: `the measuring job failed, or ran out of time and left no results; see its log`" in body
    assert f"[The run on GitHub Actions]({RUN})" in body


def test_pairs_of_a_job_that_ran_out_of_time_are_told_as_what_they_are(tmp_path):
    folder = write_results(tmp_path / "r", REQUEST, {SLOW: 1.3})
    (folder / "measured.json").write_text(json.dumps(measured(part=2)))
    body = told(folder, job="failure")
    assert headline(body).startswith("Slower: 1 of 3 tests")
    assert "ran out of time after part 2 of 4: what is told is of the pairs until then" in body


def test_the_status_keeps_what_the_commands_find_it_by_and_the_verdict_is_posted_once(tmp_path):
    folder = write_results(tmp_path / "r", REQUEST, {SLOW: 1.3})
    first, again = (report_actions(REQUEST, read_answer(REQUEST, folder), around()) for _ in range(2))
    assert first == again
    status, check, reply = first
    assert status.body.startswith(f"<!-- torchbench-request: {REQUEST.key} 5 ada {HEAD} done -->\n")
    assert status.key == check.key == REQUEST.key != reply.key
    assert (check.commit, check.conclusion) == (HEAD, "failure")
    assert "`" not in check.title
    assert [one.kind for one in report_actions(REQUEST, read_answer(REQUEST, folder), around(check_run=False))] == [
        "status",
        "reply",
    ]


@pytest.mark.parametrize("left", ["nothing", "some pairs"])
def test_a_verdict_is_told_after_a_measuring_job_that_failed_was_run_again(tmp_path, left):
    folder = write_results(tmp_path / "r", REQUEST, {SLOW: 1.3})
    before = folder if left == "some pairs" else tmp_path / "absent"
    failed = report_actions(REQUEST, read_answer(REQUEST, before), around(job="failure"))
    run_again = report_actions(REQUEST, read_answer(REQUEST, folder), around())
    assert failed[0].key == run_again[0].key, "the status is edited"
    assert failed[-1].key != run_again[-1].key, "and the verdict is no second telling of the failure"


def test_a_screen_reader_finds_headers_in_every_table_and_no_meaning_in_a_picture(tmp_path):
    body = told(write_results(tmp_path / "r", REQUEST, {SLOW: 1.3, FINE: 0.7}, {SAME: "gone"}))
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    headers = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "th_open"]
    assert headers and all(headers)
    assert not re.search(r"[\U0001F000-\U0001FFFF☀-➿]", body), "no emoji"
