"""The steps of the workflows on the command line: what they tell the runner, and what they let nobody else tell it."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from night_factory import A, B, run_of, shards_of
from package_index import keep_pip_offline, serve

from bot.errors import BotError
from bot.github.issue_file import read_issues
from bot.github.workflow_log import LONGEST_SUMMARY, add_summary, annotate, foreign_output, set_output
from torchbenchmark.experiment import Experiment
from torchbenchmark.records import Run, RunHeader, Status, read_run, replace_lines
from torchbenchmark.shards import RunPlan, write_plan

ROOT = Path(__file__).parents[2]
GOOD = {A: 1.0, B: 1.0}


class Job:
    """A job's folder, and the files by which its steps speak to the runner."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configure()

    def configure(self, **keys: object) -> None:
        config = {"store": "store", "work": "work", "threads": 1, "rounds": 1, "budget_s": 0.05, **keys}
        (self.folder / "nightly.yaml").write_text(yaml.safe_dump(config))

    def step(self, *arguments: object, **variables: str) -> "subprocess.CompletedProcess[str]":
        files = {name: str(self.folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        return subprocess.run(
            [sys.executable, "-m", "bot", *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **files, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def plan(self, header: RunHeader) -> str:
        """Write the plan that such a shard would be of; its digest."""
        parts = {header.shard.index: header.plan}
        parts |= {int(other.partition("/")[0]): header.elsewhere for other in header.shard.others()}
        models = [tuple({Experiment.parse(one.test).model for one in parts[index]}) for index in sorted(parts)]
        plan = RunPlan(
            run=header.run, started=header.started, seed=header.seed, suite=header.suite, device=header.device,
            rounds=header.rounds, processes=header.processes, subject=header.build.subject, timeout_s=60, shards=models,
        )  # fmt: skip
        write_plan(plan, self.folder / "plan.json")
        return hashlib.sha256((self.folder / "plan.json").read_bytes()).hexdigest()

    def conclude(
        self, *shards: Run, plan: Run, digest: str | None = None, questions: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        for shard in shards:
            folder = self.folder / "shards" / f"{shard.header.run}-{shard.header.shard.index}"
            folder.mkdir(parents=True, exist_ok=True)
            replace_lines(folder / "shard.jsonl", [shard.header, *shard.records])
        made = self.plan(plan.header)
        options = ("--plan", "plan.json", "--digest", digest or made, "--issues", "issues.json")
        options += ("--questions", "questions") if questions else ()
        return self.step("workflow", "conclude", "shards", *options)

    def said(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def obeyed(log: str) -> list[str]:
    """The commands in a log that the runner obeys."""
    commands, token = [], None
    for line in log.splitlines():
        if token is not None:
            token = None if line.strip() == f"::{token}::" else token
        elif stopped := re.fullmatch(r"::stop-commands::(\w+)", line):
            token = stopped[1]
        elif line.lstrip().startswith(("::", "##[")):
            commands.append(line)
    assert token is None, "the runner obeys again after the step"
    return commands


def test_a_regression_is_a_success_with_a_warning_a_summary_and_an_issue_in_the_file(job):
    for day in range(7):
        assert job.conclude(run_of(day, GOOD), plan=run_of(day, GOOD)).returncode == 0
        (job.folder / "shards" / f"r{day:04}-1" / "shard.jsonl").unlink()
    assert read_issues(job.folder / "issues.json") == ()
    shards = shards_of(run_of(7, {A: 1.5, B: 1.0}), [A], [B])
    ended = job.conclude(*shards, plan=shards[0])
    assert ended.returncode == 0, ended.stdout
    (warning,) = obeyed(ended.stdout)
    assert warning.startswith(
        "::warning title=nightly%3A regression::slower by over 7%25: test_eval[resnet50-cpu-eager]"
    )
    summary = job.said("GITHUB_STEP_SUMMARY").rpartition("## Nightly")[2]
    assert summary.startswith(": regression\n") and f"| `{A}` | slower | +50.0% |" in summary and B not in summary
    (issue,) = read_issues(job.folder / "issues.json")
    assert "1 test slower by up to 50.0%" in issue.title
    assert f"issue: `{issue.title}`" in summary


def nights_through_detect(job: Job, crashed: bool = False) -> dict[str, str]:
    """Three nights through the first judging step, the last slow; its outputs, with that one not judged yet."""
    for day in range(2):
        run = run_of(day, GOOD)
        ended = job.conclude(run, plan=run, questions=True)
        assert ended.returncode == 0 and "verdict: " in ended.stdout, ended.stdout
        (job.folder / "shards" / f"r{day:04}-1" / "shard.jsonl").unlink()
    assert job.said("GITHUB_OUTPUT") == ""
    run = run_of(2, {A: 1.5, B: Status.CRASH if crashed else 1.0})
    if crashed:
        (job.folder / "shards" / "damaged.jsonl").write_text('{"not": "a run"}\n')
    ended = job.conclude(run, plan=run, questions=True)
    assert "verdict: " not in ended.stdout
    errors = ["::error title=nightly%3A not whole::something was left out; see the log of this step"]
    assert (ended.returncode, obeyed(ended.stdout)) == ((2, errors) if crashed else (0, [])), ended.stdout
    return dict(line.split("=", 1) for line in job.said("GITHUB_OUTPUT").splitlines())


def test_what_looks_slower_is_asked_of_another_machine_and_decided_by_what_that_answers(job):
    outputs = nights_through_detect(job)
    assert json.loads(outputs["confirm"]) == [{"name": "confirm-1"}]
    (night,) = json.loads(outputs["nights"])
    assert night == {"key": "runs/smoke/cpu-4t/2026-03-03-build0002-r0002", "name": "confirm-1"}

    answers = job.folder / "answers" / "answers-confirm-1" / "confirm-1.jsonl"
    answers.parent.mkdir(parents=True)
    keep = ("--into", "kept", "--out", answers)
    store = (job.folder / "store").rename(job.folder / "out of reach")
    ended = job.step("workflow", "confirm", "questions/confirm-1.json.gz", *keep)
    assert ended.returncode == 0, ended.stdout  # that machine has none of the builds, and says so
    assert not (job.folder / "store").exists()
    store.rename(job.folder / "store")
    assert [json.loads(line).get("answer") for line in answers.read_text().splitlines()[1:-1]] == [False, False]

    ended = job.step(
        "workflow", "confirm-again", "questions/confirm-1.json.gz",
        "--answers", "answers", "--into", "kept", "--out", "confirm-1-again.jsonl",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    (warning,) = obeyed(ended.stdout)
    assert warning.startswith(
        "::warning title=no second runner::nothing was measured here, as this is the machine that"
    )
    assert '"refused":"same machine"' in (job.folder / "confirm-1-again.jsonl").read_text()

    ended = job.step("workflow", "decide", "answers", "--nights", outputs["nights"], "--issues", "issues.json")
    assert ended.returncode == 0, ended.stdout
    (warning,) = obeyed(ended.stdout)
    assert "not to be confirmed, as no build from before can be had" in warning
    assert read_issues(job.folder / "issues.json") == ()
    again = job.step("workflow", "decide", "answers", "--nights", outputs["nights"], "--issues", "issues.json")
    assert obeyed(again.stdout) == [warning]


def test_a_night_whose_confirming_job_left_nothing_ends_and_files_what_failed(job):
    outputs = nights_through_detect(job, crashed=True)
    ended = job.step("workflow", "decide", "answers", "--nights", outputs["nights"], "--issues", "issues.json")
    assert ended.returncode == 0, ended.stdout
    told, verdict = obeyed(ended.stdout)
    assert told.startswith("::warning title=not measured again::the confirming job has left no answers")
    assert verdict.startswith("::warning title=nightly%3A regression::newly failing: ") and A in verdict
    assert "- not measured again: `the confirming job" in job.said("GITHUB_STEP_SUMMARY").rpartition("## Nightly")[2]
    (issue,) = read_issues(job.folder / "issues.json")
    assert "newly failing" in issue.title


def test_nights_that_detect_did_not_name_are_an_error(job):
    for nights in ("", "[]", '[{"key": "runs/../../x", "name": "confirm-1"}]'):
        ended = job.step("workflow", "decide", "answers", "--nights", nights, "--issues", "issues.json")
        assert ended.returncode == 2 and "::error title=decide failed::nights: " in ended.stdout


def test_a_shard_that_is_missing_is_an_error_that_names_it_and_exit_code_2(job):
    shard = shards_of(run_of(0, GOOD), [A], [B])[0]
    ended = job.conclude(shard, plan=shard)
    assert ended.returncode == 2
    (error,) = obeyed(ended.stdout)
    assert error.startswith("::error title=nightly%3A broken::") and "shard 2/2 is missing" in error
    assert "## Nightly: broken" in job.said("GITHUB_STEP_SUMMARY")
    assert read_issues(job.folder / "issues.json") == ()


def test_shards_that_cannot_be_read_or_are_of_another_run_stop_no_other(job):
    damaged = job.folder / "shards" / "damaged.jsonl"
    damaged.parent.mkdir()
    damaged.write_text('{"not": "a run"}\n')
    ended = job.conclude(run_of(0, GOOD), run_of(1, GOOD), plan=run_of(0, GOOD))
    assert ended.returncode == 2, "something was left out"
    assert "damaged.jsonl:1" in ended.stdout
    assert "its run is r0001, and r0000 was planned; left out" in ended.stdout
    (stored,) = (job.folder / "store" / "runs").rglob("*.jsonl.gz")
    assert read_run(stored).header.run == "r0000"


def test_a_shard_that_does_not_keep_to_the_plan_is_left_out_and_spoils_nothing(job):
    honest = shards_of(run_of(0, GOOD), [A], [B])
    changes = {"started": honest[0].header.started - timedelta(days=3), "seed": 9, "rounds": 7, "device": "cuda"}
    forged = [
        Run(honest[0].header.model_copy(update={name: value}), honest[0].records) for name, value in changes.items()
    ]
    forged += [run_of(0, GOOD), shards_of(run_of(0, GOOD), [B], [A])[0], shards_of(run_of(0, {A: 1.0}), [A], [])[0]]
    forged.append(shards_of(run_of(0, GOOD, suite="other"), [A], [B])[0])
    for shard in forged:
        ended = job.conclude(shard, honest[1], plan=honest[0])
        assert ended.returncode == 2 and "planned" in ended.stdout and "left out" in ended.stdout, ended.stdout
    (stored,) = (job.folder / "store" / "runs").rglob("*.jsonl.gz")
    assert stored.name == "2-of-2.jsonl.gz"
    assert job.conclude(*honest, plan=honest[0]).returncode == 0


def test_a_plan_that_is_not_the_planning_jobs_is_refused(job):
    ended = job.conclude(run_of(0, GOOD), plan=run_of(0, GOOD), digest="0" * 64)
    assert ended.returncode == 2
    assert "plan.json: is not the plan that the planning job has made" in ended.stdout
    assert not (job.folder / "store").exists()


def test_a_night_without_any_shard_leaves_a_file_of_no_issues(job):
    ended = job.conclude(plan=run_of(0, GOOD))
    assert ended.returncode == 2
    assert obeyed(ended.stdout) == ["::error title=conclude failed::shards: no shard has come; see the measuring jobs"]
    assert read_issues(job.folder / "issues.json") == ()


def test_the_verdict_of_an_earlier_night_is_not_taken_for_tonights(job):
    assert job.conclude(run_of(0, GOOD), plan=run_of(0, GOOD)).returncode == 0
    (job.folder / "GITHUB_STEP_SUMMARY").unlink()
    ended = job.conclude(plan=run_of(9, GOOD))
    assert ended.returncode == 2
    assert "no verdict was reached" in obeyed(ended.stdout)[-1]
    assert job.said("GITHUB_STEP_SUMMARY") == ""


def test_text_of_a_model_neither_commands_the_runner_nor_becomes_markdown(job):
    hostile = run_of(7, {A: 1.0, B: Status.CRASH}, run="r0007")
    reason = "::error::pwned | <img src=x> [link](http://evil) `code`"
    records = tuple(
        record.model_copy(update={"reason": reason}) if record.test == B else record for record in hostile.records
    )
    for day in range(2):
        job.conclude(run_of(day, GOOD), plan=run_of(day, GOOD))
        (job.folder / "shards" / f"r{day:04}-1" / "shard.jsonl").unlink()
    ended = job.conclude(Run(hostile.header, records), plan=hostile)
    assert ended.returncode == 0, ended.stdout
    assert all(command.startswith("::warning title=nightly") for command in obeyed(ended.stdout))
    assert "::error::pwned ¦ <img src=x> [link](http://evil) 'code'`" in job.said("GITHUB_STEP_SUMMARY")


def test_while_foreign_text_is_printed_the_runner_obeys_nothing_and_after_an_error_again(capfd):
    with pytest.raises(ValueError, match="in between"), foreign_output():
        print("::set-output name=a::b\n##[add-path]/evil")
        raise ValueError("in between")
    with foreign_output():
        print("::add-mask::everything")
    annotate("warning", "a: b, c", "50%\n::error::second line\r\x1b[31m")
    log = capfd.readouterr().out
    tokens = re.findall(r"::stop-commands::(\w+)", log)
    assert len(set(tokens)) == 2
    assert obeyed(log) == ["::warning title=a%3A b%2C c::50%25%0A::error::second line[31m"]


def test_an_output_has_one_line_and_a_long_summary_is_cut_at_a_line(monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    with pytest.raises(BotError, match="more than one line"):
        set_output("run", "a\nshards=[]")
    set_output("run", "a")
    assert (tmp_path / "output").read_text() == "run=a\n"
    add_summary("x" * 99 + "\n" + "y" * LONGEST_SUMMARY)
    assert (tmp_path / "summary").read_text() == "x" * 99 + "\n\n…cut here.\n"
    monkeypatch.delenv("GITHUB_OUTPUT")
    with pytest.raises(BotError, match="is called by the jobs"):
        set_output("run", "a")


def test_a_plan_gives_the_matrix_its_jobs_and_tells_of_mistakes_before_anything_is_measured(job):
    job.configure(runners={"shards": 2, "measuring": ["gpu", "h200"]})
    ended = job.step("workflow", "plan")
    assert ended.returncode == 0, ended.stdout
    assert obeyed(ended.stdout) == []
    outputs = dict(line.split("=", 1) for line in job.said("GITHUB_OUTPUT").splitlines())
    assert outputs["digest"] == hashlib.sha256(job.said("plan.json").encode()).hexdigest()
    assert json.loads(outputs["shards"]) == [
        {"shard": "1/2", "name": "shard-1-of-2"},
        {"shard": "2/2", "name": "shard-2-of-2"},
    ]
    assert (outputs["measuring"], outputs["second"]) == ('["gpu", "h200"]', "")
    job.configure(policy="absent.yaml")
    ended = job.step("workflow", "plan", "--shards", 2)
    assert ended.returncode == 2
    (error,) = obeyed(ended.stdout)
    assert error.startswith("::error title=plan failed::") and "absent.yaml" in error


def write_model(folder: Path, name: str, first_lines: str) -> None:
    """A model of the tests whose module begins with these lines."""
    (folder / name).mkdir(parents=True)
    healthy = ROOT / "tests" / "misbehaving_models" / "healthy"
    for file in ("__init__.py", "metadata.yaml"):
        text = (healthy / file).read_text()
        (folder / name / file).write_text(first_lines + text if file.endswith(".py") else text)


def test_a_failed_test_fails_no_job_and_the_build_can_neither_command_the_runner_nor_see_its_files(job):
    models = job.folder / "models"
    write_model(
        models,
        "hostile",
        "import os\nprint('::error::printed')\n"
        "raise ValueError('\\n::error::raised, sees ' + str([n for n in os.environ if n.startswith('GITHUB_')]))\n",
    )
    write_model(models, "healthy", "")
    suite = "name: trial\ndescription: For a test.\nmodels: [hostile, healthy]\ntests: [train]\npreset: tiny\n"
    (job.folder / "suite.yaml").write_text(suite)
    job.configure(suite="suite.yaml", models=["models"])
    assert job.step("workflow", "plan", "--shards", 1).returncode == 0
    measure = ("workflow", "measure", "--plan", "plan.json", "--shard", "1/1", "--into", "build", "--out", "1.jsonl")
    ended = job.step(*measure)
    assert ended.returncode == 0, ended.stdout
    assert {record.status for record in read_run(job.folder / "1.jsonl").records} == {Status.OK, Status.ERROR}
    (warning,) = obeyed(ended.stdout)
    assert warning.startswith("::warning title=shard 1/1%3A 1 tests failed::test_train[hostile-cpu-eager-tiny]")
    assert "raised, sees []" in warning

    ended = job.step(*measure, "--shard", "2/2")
    assert ended.returncode == 2
    (error,) = obeyed(ended.stdout)
    assert error.startswith("::error title=shard 2/2 failed::") and "the plan has 1 shards" in error


def test_the_build_of_the_plan_is_installed_and_else_the_one_of_the_configuration_is_measured(
    job, monkeypatch, tmp_path_factory
):
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    night = datetime.now(UTC).date() - timedelta(days=1)
    version = f"2.14.0.dev{night:%Y%m%d}+cpu"
    measure = ("workflow", "measure", "--plan", "plan.json", "--shard", "1/1", "--into", "build", "--out")
    with serve() as index:
        index.add("torch", version)
        job.configure(build={"index": index.address, "extra_index": index.address})
        planned = job.step("workflow", "plan", "--shards", 1)
        assert planned.returncode == 0, planned.stdout
        ended = job.step(*measure, "pinned.jsonl")
    assert ended.returncode == 0, ended.stdout
    header = read_run(job.folder / "pinned.jsonl").header
    assert header.build.version == version
    assert header.build.interpreter == str(job.folder / "build" / "bin" / "python")

    job.configure(python=str(job.folder / "build" / "bin" / "python"))
    assert job.step("workflow", "plan", "--shards", 1).returncode == 0
    ended = job.step(*measure, "named.jsonl")
    assert ended.returncode == 0, ended.stdout
    assert read_run(job.folder / "named.jsonl").header.build.version == version


def test_the_watchdog_leaves_its_issue_to_the_job_that_may_write_it(job):
    ended = job.step("workflow", "watchdog", "--issues", "issues.json")
    assert ended.returncode == 0, ended.stdout
    assert obeyed(ended.stdout) == ["::warning title=watchdog::smoke on any class: there has been no night"]
    assert "there has been no night" in job.said("GITHUB_STEP_SUMMARY")
    (issue,) = read_issues(job.folder / "issues.json")
    assert issue.is_open and issue.title == "No nightly of smoke on any class"

    ended = job.step("watchdog", "--issues", "issues.json")
    assert ended.returncode == 1, "outside of a workflow the exit code tells"
    (again,) = read_issues(job.folder / "issues.json")
    assert dataclasses.replace(again, revision=issue.revision) == issue
    assert again.revision >= issue.revision
    assert not (job.folder / ".nightly").exists(), "nothing is filed"
