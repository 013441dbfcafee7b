"""A bisection over several machines: what each job of a round does, and what is believed of what they leave."""

import json
from pathlib import Path

import pytest
import yaml
from alert_of_commits import KEY, made_up, store_of, stored_alert
from night_factory import A
from small_repository import SmallRepository

from bot import bisect_steps
from bot.bisection.batch import needed, next_builds
from bot.bisection.document import Desk, Made
from bot.bisection.state import Rules, new_search, with_build, with_probes
from bot.config import load_config
from bot.culprits.commission import known_commission
from bot.elsewhere import bisect_rounds
from bot.elsewhere.bisect_builds import MADE, WHEELS, NotHere, name_of
from bot.elsewhere.bisect_question import read_bisect_question
from bot.errors import BotError
from bot.github.issue_file import read_issues
from torchbenchmark.terminal import new_app, run_app


class Rounds:
    """The jobs of a workflow, each in its own way: builds are made up, and so is what they measure."""

    def __init__(self, folder: Path, repository: SmallRepository, monkeypatch) -> None:
        self.folder = folder
        self.repository = repository
        self.output = folder / "output"
        self.measured = made_up(repository, "c0", "c16", "c11")
        self.measured.build = self._not_here
        (folder / "nightly.yaml").write_text(yaml.safe_dump({"store": "store", "work": "work"}))
        monkeypatch.chdir(folder)
        monkeypatch.setenv("GITHUB_OUTPUT", str(self.output))
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary"))
        monkeypatch.setenv("TORCHBENCH_BUILDS", str(folder / "builds"))
        self.app = new_app("workflow")
        self.app.callback()(lambda: None)
        bisect_steps.register(self.app)

    @staticmethod
    def _not_here(commit: str) -> Made:
        raise NotHere(commit)

    def step(self, *arguments: object) -> dict[str, str]:
        """A step on the command line; its outputs."""
        self.output.write_text("")
        with pytest.raises(SystemExit) as ended:
            run_app(self.app, [*map(str, arguments)])
        assert ended.value.code in (0, None)
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())

    def ask(self, there: str = "", *more: str) -> dict[str, str]:
        repo = f"--repo={self.repository.folder}"
        return self.step("bisect-ask", repo, f"--there={there}", "--builds=3", "--out", "question.json", *more)

    def build(self, outputs: dict[str, str], broken: tuple[str, ...] = ()) -> list[str]:
        """What the builders leave."""
        jobs = json.loads(outputs["builds"] or "[]")
        for job in jobs:
            place = self.folder / "made" / job["name"]
            place.mkdir(parents=True, exist_ok=True)
            made = Made(commit=job["commit"], ok=job["commit"] not in broken, reason="`why` @not", seconds=9.0)
            (place / MADE).write_text(made.model_dump_json())
            (place / WHEELS).write_bytes(b"")
        return [job["commit"] for job in jobs]

    def measure(self) -> str:
        def instrument(config, question, folder, leases, archives):
            real = self.measured.measure

            def measure(good, visit, keep):
                for commit in (good, visit.commit):
                    if commit not in archives:
                        raise NotHere(commit)
                return real(good, visit, keep)

            found = made_up(self.repository, "c0", "c16", "c11")
            found.build, found.measure = self._not_here, measure
            return found

        folder = self.folder / "answers" / "bisect-answer-1"
        folder.mkdir(parents=True, exist_ok=True)
        given = (load_config(Path("nightly.yaml")), Path("question.json"), Path("made"), self.folder / "cache")
        return bisect_rounds.measure(*given, folder / "answer.json", 60.0, instrument)

    @property
    def answer(self) -> Path:
        return self.folder / "answers" / "bisect-answer-1" / "answer.json"

    def decide(self, outputs: dict[str, str]) -> dict[str, str]:
        given = ("question.json", "--digest", outputs["digest"], "--answers", "answers", "--issues", "issues.json")
        return self.step("bisect-decide", *given)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> SmallRepository:
    """Nobody writes into it."""
    found = SmallRepository(tmp_path_factory.mktemp("rounds") / "project")
    found.line(16)
    return found


@pytest.fixture
def rounds(tmp_path, repository, monkeypatch) -> Rounds:
    return Rounds(tmp_path, repository, monkeypatch)


@pytest.fixture
def store(rounds):
    return store_of(rounds.folder / "store", rounds.repository, "c0", "c16")


def test_an_alert_is_bisected_round_by_round_until_its_issue_names_the_commit(rounds, store):
    broken = (rounds.repository.git("rev-parse", "c9"),)
    there, builds, again = "", [], "true"
    while again:
        asked = rounds.ask(there)
        builds.append(rounds.build(asked, broken))
        assert asked["measure"] == "true"
        assert (asked["building"], asked["measuring"]) == ('["self-hosted", "builder"]', '["self-hosted", "gpu"]')
        rounds.measure()
        there = asked["there"]
        decided = rounds.decide(asked)
        again = decided["again"]

    assert 1 < len(builds) <= 3
    assert builds[0][:2] == [rounds.measured.line[0], rounds.measured.line[-1]] and len(builds[0]) == 5
    every = [commit for one in builds for commit in one]
    assert len(every) == len(set(every)), "what rounds before have left is not built again"
    culprit = rounds.repository.git("rev-parse", "c11")
    assert [one.commit for one in stored_alert(store).verdict.changes[0].commits] == [culprit]
    assert decided["verdict"] == "true"
    (issue,) = read_issues(Path("issues.json"))
    assert issue.body.startswith(f"**The culprit is** `{culprit[:12]}` `c11 @everyone '<script>'`")
    assert issue.key == KEY
    assert "The culprit is found" in Path("summary").read_text()
    assert rounds.ask()["digest"] == ""  # nothing is left to bisect


def test_the_next_run_has_what_it_needs_built_again(rounds, store):
    asked = rounds.ask()
    rounds.build(asked)
    rounds.measure()
    rounds.decide(asked)

    again = json.loads(rounds.ask()["builds"])

    assert [job["commit"] for job in again[:2]] == [rounds.measured.line[0], rounds.measured.line[-1]]
    assert len(again) == 5 and again[0]["name"] == name_of(rounds.measured.line[0])


def test_ends_that_a_person_names_need_no_alert(rounds):
    asked = rounds.ask("", "--good=c0", "--bad=c16", f"--tests={A}", "--build=make wheels; `x`")

    question = read_bisect_question(Path("question.json"), asked["digest"])
    assert question.commission.asked.tests == (A,) and question.commission.alert == ""
    assert question.commission.asked.build == "make wheels; `x`"
    rounds.build(asked)
    rounds.measure()
    assert rounds.decide(asked)["verdict"] == ""
    assert Desk(bisect_rounds.open_store("store"), question.commission.asked.key).read().rehearsed


def test_an_alert_is_bisected_anew_between_the_ends_that_a_person_names(rounds, store):
    """Also one that has its verdict; and what the nights ask of the alert stays what it was."""
    named, there, again = (f"--signal={KEY}", "--good=c9", "--bad=c12"), "", "true"
    rounds.ask()
    while again:
        asked = rounds.ask(there, *named)
        question = read_bisect_question(Path("question.json"), asked["digest"])
        assert question.commits == tuple(rounds.measured.line[9:13]) and question.commission.asked.tests == (A,)
        rounds.build(asked)
        rounds.measure()
        there = asked["there"]
        again = rounds.decide(asked)["again"]

    verdict = stored_alert(store).verdict
    assert [one.commit for one in verdict.changes[0].commits] == [rounds.repository.git("rev-parse", "c11")]
    assert (verdict.good, verdict.bad) == (rounds.measured.line[9], rounds.measured.line[12])
    assert known_commission(store, stored_alert(store)) is None
    assert rounds.ask()["digest"] == "" and rounds.ask("", *named)["builds"] == ""


NO_ANSWERS = (
    (lambda one: one.update(question="0" * 64), "answers another question"),
    (lambda one: one["visits"][0].update(commit="f" * 40), "pairs of the good end against itself"),
    (lambda one: one["visits"][1].update(commit="f" * 40), "is not in the range"),
    (lambda one: one["visits"][1].update(values=[1e9]), "visits.1.values.0"),
    (lambda one: one["visits"][1].update(values=["1"]), "visits.1.values.0"),
    (lambda one: one["visits"][1].update(values=[]), "visits.1.values"),
    (lambda one: one["builds"].append(one["builds"][0]), "was tried before"),
    (lambda one: one.update(verdict="culprit"), "verdict"),
    (lambda one: one["builds"][0].update(reason="x" * 9_999), "builds.0.reason"),
)


def test_of_an_answer_that_is_none_nothing_is_believed(rounds, store, capsys):
    asked = rounds.ask()
    rounds.build(asked)
    rounds.measure()
    true = rounds.answer.read_text()
    for change, told in NO_ANSWERS:
        content = json.loads(true)
        change(content)
        rounds.answer.write_text(json.dumps(content))
        capsys.readouterr()

        decided = rounds.decide(asked)

        assert decided["again"] == "" and decided["verdict"] == ""
        said = capsys.readouterr().out
        assert "::warning title=bisect%3A nothing was added::" in said and told in said
        assert store.list("bisections/") == []


def test_a_link_in_the_place_of_the_answer_is_not_followed(rounds, store, capsys):
    asked = rounds.ask()
    rounds.build(asked)
    rounds.measure()
    moved = rounds.answer.rename(rounds.folder / "elsewhere.json")
    rounds.answer.symlink_to(moved)

    rounds.decide(asked)

    assert "answer.json: cannot be read" in capsys.readouterr().out


def test_no_answer_is_told_and_another_question_is_refused(rounds, store, capsys):
    asked = rounds.ask()
    assert rounds.decide(asked)["again"] == ""
    assert "answer.json: cannot be read: No such file" in capsys.readouterr().out

    Path("question.json").write_text(Path("question.json").read_text().replace(KEY, "f" * 16))
    config = load_config(Path("nightly.yaml"))
    with pytest.raises(BotError, match="is not the question that was asked"):
        bisect_rounds.decide(config, store, Path("question.json"), asked["digest"], rounds.answer, None)


def test_a_round_in_which_no_builder_has_built_anything_is_the_last(rounds, store, capsys):
    asked = rounds.ask()
    rounds.measure()

    assert rounds.decide(asked)["again"] == ""

    assert "nothing was built or measured" in capsys.readouterr().out
    assert store.list("bisections/") == []


@pytest.mark.parametrize("left", ["no JSON", "a link", "endless seconds", "no wheels"])
def test_what_a_build_script_has_left_keeps_no_other_build_back(rounds, store, left):
    asked = rounds.ask()
    commit = rounds.build(asked)[2]
    place = rounds.folder / "made" / name_of(commit)
    if left == "no JSON":
        (place / MADE).write_text("{")
    elif left == "a link":
        (place / MADE).rename(place / "elsewhere")
        (place / MADE).symlink_to(place / "elsewhere")
    elif left == "endless seconds":
        (place / MADE).write_text(Made(commit=commit, ok=True, seconds=1e300).model_dump_json())
    else:
        (place / WHEELS).unlink()

    why = rounds.measure()

    answer = json.loads(rounds.answer.read_text())
    assert commit not in [one["commit"] for one in answer["builds"]]
    assert {rounds.measured.line[0], rounds.measured.line[-1]} <= {one["commit"] for one in answer["visits"]}
    assert "wanted next" in why
    assert rounds.decide(asked)["again"] == "true"


def test_a_round_whose_bisection_has_gone_on_meanwhile_changes_nothing(rounds, store):
    first = rounds.ask()
    rounds.build(first)
    rounds.measure()
    rounds.decide(first)
    config = load_config(Path("nightly.yaml"))

    with pytest.raises(BotError, match="has gone on meanwhile"):
        bisect_rounds.decide(config, store, Path("question.json"), first["digest"], rounds.answer, None)


def test_a_measuring_job_that_was_killed_goes_on_with_what_it_has(rounds, store):
    rounds.build(rounds.ask())
    rounds.measure()
    done, content = list(rounds.measured.done), rounds.answer.read_bytes()
    rounds.answer.unlink()

    rounds.measure()

    assert rounds.measured.done == done
    assert rounds.answer.read_bytes() == content


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--repo=",), "TORCHBENCH_BISECT_REPO"),
        (("--repo=-x",), "'-x' at 'main'"),
        (("--repo=https://example.invalid/x", "--good=--x", "--bad=b", f"--tests={A}"), "at '--x'"),
        (("--repo=https://example.invalid/x", "--good=a b", "--bad=b", f"--tests={A}"), "at 'a b'"),
        (("--repo=.", "--good=c0"), "name an alert, both ends and an alert, or both ends and tests"),
        (("--repo=.", "--good=a", "--bad=b"), "name an alert, both ends and an alert"),
        (("--repo=.", f"--signal={KEY}", "--bad=b"), "name an alert, both ends and an alert"),
        (("--repo=.", f"--signal={KEY}", "--good=a", "--bad=b", "--tests=c"), "name an alert, both ends and an alert"),
    ],
)
def test_what_cannot_be_asked_is_told(rounds, store, options, told, capsys):
    with pytest.raises(SystemExit) as ended:
        run_app(rounds.app, ["bisect-ask", *options, "--out", "question.json"])

    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


def search(length: int):
    return new_search([str(one) for one in range(length + 1)], Rules(pair_sd=0.01, shared_sd=0.001))


def test_a_batch_begins_with_the_ends_and_divides_what_is_probable():
    state = search(16)
    assert next_builds(state, 3) == ("0", "16", "4", "8", "12")
    for commit in ("0", "16", "4", "8", "12"):
        state = with_build(state, commit, ok=commit != "8")
    state = with_probes(state, "16", [0.1] * 6)
    for commit, level in (("4", 0.0), ("12", 0.1)):
        state = with_probes(state, commit, [level] * 6)
    batch = next_builds(state, 3)
    assert len(batch) == 3 and all(4 < int(commit) < 12 for commit in batch) and "8" not in batch
    assert needed(state) == ("0", "16")


def test_a_search_that_has_ended_has_no_batch():
    state = search(1)
    for commit in ("0", "1"):
        state = with_build(state, commit, ok=True)
    assert next_builds(with_probes(state, "1", [0.1] * 40), 3) == ()
    assert needed(state) == ("0", "1")
