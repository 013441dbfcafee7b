"""The steps of benchmark.yml after planning: the report on the fake of GitHub, the status that follows the measuring
job, and a build that fails."""

import json
import subprocess
from pathlib import Path

import pytest
from conversation import Conversation
from fake_github.workflows import Step, add_run, add_workflow
from github_servers import REPOSITORY, own_github
from made_results import SAME, SLOW, make_request, measured, write_results

from bot import pull_request_steps
from bot.benchmark_request import BenchmarkRequest, written
from bot.config import NightlyConfig
from bot.github.client import Client
from bot.github.github_looking import GitHubLooking
from bot.github.performing import perform
from bot.github.request_status import statuses_in
from bot.pull_request import following
from bot.pull_request.measuring import build_side, measure_part
from bot.pull_request.reporting import status_action
from torchbenchmark.builds.settings import BuildSettings, GitSettings
from torchbenchmark.terminal import new_app, run_app

JOB = {"pull_requests": "write", "checks": "write"}


@pytest.fixture
def talk(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        talk = Conversation(hub)
        talk.as_job(monkeypatch, contents="read", actions="read", **JOB)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "nightly.yaml").write_text("suite: smoke\n")
        yield talk


@pytest.fixture
def asked(talk, tmp_path) -> BenchmarkRequest:
    number = talk.open_pull_request()
    repository = talk.repository
    request = make_request(pull=number, head=talk.head(number), base=repository.branches["main"])
    (tmp_path / "request.json").write_text(written(request))
    perform(Client(REPOSITORY), [status_action(request, 5, "queued", "waits")])
    return request


@pytest.fixture
def bot(capsys):
    app = new_app("torchbench")
    app.callback()(lambda: None)
    pull_request_steps.register(app)

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            run_app(app, [*map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return run


def report(bot, how="success"):
    return bot("report", "request.json", "--results", "results", "--measured", how, "--run", 5)


def test_the_report_edits_the_status_and_posts_one_verdict_however_often_it_runs(talk, asked, bot, tmp_path):
    write_results(tmp_path / "results", asked, {SLOW: 1.3})
    assert report(bot)[0] == 0
    status, verdict = talk.bot_comments(asked.pull)
    assert f"**Benchmark of `{asked.head[:12]}`: done.** Slower: 1 of 3 tests" in status
    assert "### Changed: 1 test" in verdict and "has moved since" not in verdict
    assert "### Changed: 1 test" in (tmp_path / "summary").read_text()
    (found,) = statuses_in(GitHubLooking(Client(REPOSITORY)).bot_comments(asked.pull))
    assert (found.key, found.run, found.stage) == (asked.key, 5, "done")

    talk.push(asked.pull)
    assert report(bot)[0] == 0
    assert talk.bot_comments(asked.pull) == [status, verdict]


def test_the_report_advises_no_more_pairs_than_the_configuration_takes(talk, asked, bot, tmp_path):
    (tmp_path / "nightly.yaml").write_text("suite: smoke\npull_requests: {most_pairs: 20}\n")
    write_results(tmp_path / "results", asked, noise=0.05)
    assert report(bot)[0] == 0
    assert "takes at most `pairs=20`" in talk.bot_comments(asked.pull)[1]


def test_a_push_during_the_measuring_is_said(talk, asked, bot, tmp_path):
    write_results(tmp_path / "results", asked)
    later = talk.push(asked.pull)
    assert report(bot)[0] == 0
    assert f"has moved since, to `{later[:12]}`" in talk.bot_comments(asked.pull)[1]


def test_refused_results_are_an_error_of_the_step_and_a_comment(talk, asked, bot, tmp_path):
    folder = write_results(tmp_path / "results", asked, {SLOW: 1.3})
    (folder / "measured.json").write_text(json.dumps({**measured(), "pull": 1, "reason": "::error::@team"}))
    code, log = report(bot)
    assert code == 0 and "::error title=the results were refused::measured.json: " in log
    assert "**Nothing measured: the results were refused.**" in talk.bot_comments(asked.pull)[1]
    assert "@team" not in "".join(talk.bot_comments(asked.pull))


def test_what_a_comment_has_cancelled_is_reported_by_nobody_else(talk, asked, bot):
    perform(Client(REPOSITORY), [status_action(asked, 5, "cancelled", "**Cancelled** by `ada`.")])
    before = talk.bot_comments(asked.pull)
    assert report(bot, "cancelled")[0] == 0
    assert talk.bot_comments(asked.pull) == before


def test_one_that_gave_way_to_a_newer_request_says_so_in_its_status(talk, asked, bot):
    assert report(bot, "cancelled")[0] == 0
    (status,) = talk.bot_comments(asked.pull)
    assert "a newer request of this pull request took its place in the queue" in status


def test_a_request_of_another_repository_writes_nothing(talk, asked, bot, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "torch-owner/other")
    before = talk.bot_comments(asked.pull)
    code, log = report(bot)
    assert code == 2 and "this is a workflow of torch-owner/other" in log
    assert talk.bot_comments(asked.pull) == before


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "benchmark request", "pull": 1}', "x" * 70_000])
def test_what_is_no_request_is_an_error_before_anything_is_done(talk, bot, tmp_path, text):
    (tmp_path / "request.json").write_text(text)
    code, log = report(bot)
    assert code == 2 and "request" in log


def test_the_status_follows_the_steps_of_the_measuring_job_to_its_end(talk, asked, monkeypatch):
    world = talk.hub.fake.world
    workflow = add_workflow(world, talk.repository, "benchmark.yml")
    run = add_run(world, talk.repository, workflow, world.account(talk.bot), "plan", "measure", "follow")
    run.status, job = "in_progress", run.jobs[1]
    seen: list[str] = []
    names = ["Build base", "Build head", "Measure, part 1 of 4", "Take the results"]

    def next_step(_: float) -> None:
        seen.append(talk.bot_comments(asked.pull)[0])
        job.status = "in_progress"
        for step in job.steps:
            step.status = "completed"
        if len(job.steps) == len(names):
            job.status = "completed"
        else:
            job.steps.append(Step(names[len(job.steps)], "in_progress"))

    client = Client(REPOSITORY)
    edits = following.follow(asked, run.id, GitHubLooking(client), lambda actions: perform(client, actions), next_step)
    assert edits == 3
    told = [body.partition("**Benchmark of ")[2].partition("**")[0] for body in seen]
    head = f"`{asked.head[:12]}`"
    assert told == [
        "",
        f"{head}: building base.",
        f"{head}: building head.",
        f"{head}: measuring 1 of 4.",
        f"{head}: measuring 1 of 4.",
    ]


def test_a_run_that_is_not_to_be_found_is_not_followed(talk, asked):
    looks = GitHubLooking(Client(REPOSITORY))
    assert following.follow(asked, 999_999, looks, lambda actions: None, lambda seconds: None) == 0


def test_a_commit_that_does_not_build_is_an_answer_and_then_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "unused"))
    served = tmp_path / "torch-owner" / "nightlies.git"
    served.mkdir(parents=True)

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        ended = subprocess.run(["git", *identity, *arguments], cwd=served, capture_output=True, text=True, check=True)
        return ended.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--quiet", "--allow-empty", "--message", "begin")
    commit = git("rev-parse", "HEAD")
    command = "echo 'error: @team expected ;' >&2; exit 3"
    config = NightlyConfig(builds=BuildSettings(git=GitSettings(command=command)), subject="worksteps")
    request = make_request(tests=(SAME,), base=commit, head=commit)
    server = f"file://{tmp_path}"

    made = build_side(request, "head", config, server, tmp_path / "head")
    assert (made.state, made.side, made.commit) == ("failed", "head", commit)
    assert "could not be built" in made.reason and "error: @team expected ;" in made.lines[-1]
    absent = make_request(tests=(SAME,), base="d" * 40, head=commit)
    assert build_side(absent, "base", config, server, tmp_path / "base").state == "not there"

    sides = {"base": tmp_path / "base", "head": tmp_path / "head"}
    outcome = measure_part(request, config, server, sides, (1, 4), tmp_path / "measured")
    assert (outcome.state, outcome.reason) == ("not measured", "base was not built")
    assert not (tmp_path / "measured" / "pairs.jsonl").exists()


def test_results_are_copied_out_as_plain_files_and_no_link_is_followed(bot, tmp_path):
    for name in ("base", "head", "measured"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "base" / "built.json").write_text("{}")
    (tmp_path / "head" / "built.json").symlink_to(tmp_path / "secret")
    (tmp_path / "measured" / "pairs.jsonl").write_text("pairs")
    (tmp_path / "measured" / "further").write_text("not taken")
    with (tmp_path / "measured" / "profiles.jsonl").open("wb") as file:
        file.truncate(97 * 2**20)
    sides = ("--base", tmp_path / "base", "--head", tmp_path / "head", "--measured", tmp_path / "measured")
    code, log = bot("pull-pack", *sides, "--into", tmp_path / "results")
    assert code == 0
    assert {path.name: path.read_text() for path in Path(tmp_path / "results").iterdir()} == {
        "base.json": "{}",
        "pairs.jsonl": "pairs",
    }
    assert log.count("::warning title=left out of the results::") == 2
