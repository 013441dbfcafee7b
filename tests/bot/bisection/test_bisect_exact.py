"""`torchbench bisect` of what is compared exactly: counts and failures, by runs that agree."""

import json
from pathlib import Path

import pytest
from small_repository import SmallRepository

from bot import bisect
from bot.bisection.document import Asked, End, Visit
from bot.bisection.outcomes import in_brief, numbered, shift_text, told
from bot.bisection.script import CannotMeasure, exact_numbers
from torchbenchmark.terminal import new_app, run_app

COUNT = Asked(good="0", bad="1", compared="counts")
STATUS = Asked(good="0", bad="1", compared="status")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> SmallRepository:
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    return SmallRepository(tmp_path / "project")


@pytest.fixture
def torchbench(capsys, tmp_path, repository):
    app = new_app("torchbench")
    app.callback()(lambda: None)
    bisect.register(app)
    files = {kind: tmp_path / f"answer.{kind}" for kind in ("json", "markdown")}

    def run(*arguments: object) -> tuple[int, str, dict, str]:
        """Exit code, all that was printed on one line, the JSON and the Markdown."""
        every = ["bisect", "--work", tmp_path / "work", "--repo", repository.folder, *arguments]
        with pytest.raises(SystemExit) as ended:
            run_app(app, [*map(str, every), *(f"--{kind}={path}" for kind, path in files.items())])
        printed = "".join(capsys.readouterr()).replace("\n", " ")
        return (ended.value.code, printed, *map(_content, files.values()))

    return run


def _content(path: Path):
    if not path.exists():
        return None
    return json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()


def commits(repository: SmallRepository, scripts: list[str]) -> None:
    for place, script in enumerate(scripts):
        (repository.folder / "run.sh").write_text(f"{script}\n")
        (repository.folder / f"note{place}").touch()  # so that each can be reverted, and has something to commit
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", f"c{place}")
        repository.git("tag", f"c{place}")


def test_a_commit_that_fails_is_found_a_skipped_and_a_flaky_one_are_told(repository, torchbench, tmp_path):
    flaky = f'echo >> "{tmp_path}/turns"; test $(($(wc -l < "{tmp_path}/turns") % 2)) = 0'
    fails = "echo 'no `kernel` | found' >&2; exit 3"
    commits(repository, ["exit 0"] * 4 + ["exit 125", flaky] + [fails] * 5)

    code, printed, report, markdown = torchbench(
        "--good=c0", "--bad=c10", "--measure", "sh run.sh", "--fails", "--build", "true"
    )

    assert code == 1, printed
    assert report["verdict"] == "set"
    names = [repository.git("rev-parse", f"c{place}") for place in (4, 5, 6)]
    assert [one["commits"] for one in report["changes"]] == [names]
    assert report["flaky"] == [names[1]]
    assert f"flaky, and left out: {names[1][:12]} (" in printed
    assert report["changes"][0]["before"]["outcome"] == "ok"
    assert report["changes"][0]["after"]["why"] == "exit 3: no `kernel` | found"
    assert "log_ratio" not in report["changes"][0]
    assert "(ok -> fails: exit 3: no `kernel` | found (worse); probability 1.000, certain)" in printed
    assert "`ok -> fails: exit 3: no 'kernel' ¦ found (worse)` at" in markdown
    assert "1 whose runs disagree (flaky)" in markdown
    assert "exits with 125, which skips a commit" in markdown
    assert "%" not in markdown


def test_a_count_that_was_nought_is_found_by_exact_runs(repository, torchbench):
    commits(repository, ["echo 0; echo 7"] * 3 + ["echo 2; echo 7"] * 3)

    code, printed, report, markdown = torchbench(
        "--good=c0", "--bad=c5", "--measure", "sh run.sh", "--exact", "--prior", "paths"
    )

    assert code == 1, printed
    assert [one["commits"] for one in report["changes"]] == [[repository.git("rev-parse", "c3")]]
    assert "(0, 7 -> 2, 7; probability 1.000, certain; measured again, parent against culprit: 0, 7 -> 2, 7" in printed
    assert "reverting it on the bad end: 2, 7 -> 0, 7)" in printed
    assert "| `2, 7 in 3` |" in markdown
    assert "Prior: by touched paths; 0 of 5 commits touch code that computes" in markdown
    assert {one["weight"] for one in report["commits"][1:]} == {1}
    assert report["commits"][5]["outcomes"][0]["outcome"] == "2, 7"
    assert [one["commit"] for one in report["builds"]].count(repository.git("rev-parse", "c3")) == 1


def test_ends_that_fail_alike_are_told_with_what_they_said(repository, torchbench):
    commits(repository, ["exit 0"] * 2)

    code, printed, _, markdown = torchbench("--good=c0", "--bad=c1", "--measure", "sh rum.sh", "--fails")

    assert code == 0
    assert "not reproduced: the good end gave fails: exit" in printed
    assert "rum.sh" in markdown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--measure", "true", "--status"), "--status: is of --tests"),
        (("--tests", "resnet18", "--fails"), "--fails: is of --measure"),
        (("--measure", "true", "--fails", "--exact"), "--exact and --fails: are two ways of comparing"),
        (("--tests", "resnet18", "--status", "--channel", "latency"), "are two ways of comparing"),
        (("--measure", "true", "--exact", "--beyond", ".1"), "--beyond: is of times"),
        (("--tests", "resnet18", "--channel", "launches"), "needs a GPU"),
        (("--measure", "true", "--closing", "5"), "an interval takes at least 6 pairs; 0 leaves it out"),
        (("--measure", "true", "--prior", "author"), "--prior author: is none; there are flat, paths"),
    ],
)
def test_ways_of_comparing_that_do_not_go_together_are_refused(repository, torchbench, arguments, told):
    commits(repository, ["exit 0"] * 2)

    code, printed, _, _ = torchbench("--good=c0", "--bad=c1", *arguments)

    assert code == 2
    assert told in printed


def test_a_plan_of_runs_counts_runs(repository, torchbench):
    commits(repository, ["exit 0"] * 5)

    _, printed, _, _ = torchbench(
        "--good=c0", "--bad=c4", "--measure", "true", "--fails", "--plan", "--build-seconds=60", "--pair-seconds=10"
    )

    assert "runs: about 12, 3 of each build; 6 and 2 builds if nothing changed" in printed
    assert "once a culprit is found: 12 runs more" in printed
    assert "time: about 9 min (60 s a build, 10 s a run)" in printed


def test_numbers_are_compared_as_they_are_in_one_way_of_writing():
    assert exact_numbers("12.0\n1e1\n0\n-0.0\n.5\n") == "12, 10, 0, 0, 0.5"
    assert exact_numbers(str(2**80 + 1)) == str(2**80 + 1)
    for text in ("", "nan", "inf", "many", "1 2", "1\n" * 101):
        with pytest.raises(CannotMeasure):
            exact_numbers(text)


def ends(*outcomes: str, why: str = "") -> tuple[End, ...]:
    return tuple(End(outcome=one, why=why, seconds=0) for one in outcomes)


def test_an_outcome_is_to_the_search_the_number_under_which_it_was_first_seen():
    first = numbered((), Visit(number=0, commit="a", n=3, ends=ends("ok", "ok", "ok")))
    second = numbered((first,), Visit(number=1, commit="b", n=3, ends=ends("oom", "crash", "oom")))
    third = numbered((first, second), Visit(number=2, commit="c", n=1, ends=ends("crash")))
    assert (first.values, second.values, third.values) == ((0.0, 0.0, 0.0), (1.0, 2.0, 1.0), (2.0,))


def test_what_changed_is_told_with_its_direction():
    assert shift_text(COUNT, ends("12"), ends("14")) == "12 -> 14 (worse)"
    assert shift_text(COUNT, ends("12"), ends("9")) == "12 -> 9 (better)"
    assert shift_text(COUNT.model_copy(update={"higher_is_better": True}), ends("1"), ends("2")) == "1 -> 2 (better)"
    assert shift_text(COUNT, ends("1, 2"), ends("1, 3")) == "1, 2 -> 1, 3"
    assert shift_text(STATUS, ends("ok"), ends("crash", why="signal 11")) == "ok -> crash: signal 11 (worse)"
    assert shift_text(STATUS, ends("oom", why="of memory"), ends("ok")) == "oom: of memory -> ok (better)"
    assert shift_text(STATUS, ends("oom"), ends("timeout")) == "oom -> timeout"
    assert told(ends("ok", "crash", "ok")) == "ok in 2 of 3; crash in 1 of 3"
    assert (in_brief(ends("ok", "ok")), in_brief(ends("ok", "crash"))) == ("ok in 2", "flaky: ok, crash in 2")


def test_what_is_asked_otherwise_is_another_bisection():
    assert len({one.key for one in (COUNT, STATUS, Asked(good="0", bad="1"))}) == 3
