"""The workflows as files: valid, pinned, and with no more rights than each job needs. What they do is in tests/e2e."""

import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from s3_servers import program

from bot.benchmark_request import BenchmarkRequest
from bot.elsewhere.closings import CLOSINGS
from bot.pull_request.following import MEASURE, status_of_step

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").glob("*/action.yml"))
FILES = [*WORKFLOWS, *ACTIONS]

# Every finding that is ignored, and how often. Each comment gives its reason.
IGNORED = {
    ("benchmark.yml", "self-repository", "act, which the tests use, knows no $/"): 4,
    (
        *("benchmark.yml", "dangerous-triggers"),
        "no job that may write anything checks out or runs what a pull request holds",
    ): 1,
    ("benchmark.yml", "unpinned-images", "the first step takes none without a digest"): 1,
    ("bisect.yml", "self-repository", "act, which the tests use, knows no $/"): 4,
    ("bisect-round.yml", "self-repository", "act, which the tests use, knows no $/"): 4,
    (
        "issue-commands.yml",
        "dangerous-triggers",
        "no job checks out or runs anything that a commenter could have written",
    ): 1,
    ("issue-commands.yml", "self-repository", "act, which the tests use, knows no $/"): 2,
    ("nightly.yml", "self-repository", "act, which the tests use, knows no $/"): 8,
    ("watchdog.yml", "self-repository", "act, which the tests use, knows no $/"): 2,
}
READS = {"contents": "read"}
STORES = {**READS, "id-token": "write"}
FILES_ISSUES = {**READS, "issues": "write"}
MEASURING = ("measure", "confirm", "confirm-again")
RUN_OTHERS_CODE = {
    ("benchmark.yml", "measure"),
    *(("nightly.yml", name) for name in MEASURING),
    ("bisect-round.yml", "build"),
    ("bisect-round.yml", "measure"),
}
PERMISSIONS = {
    ("benchmark.yml", "plan"): {**READS, "pull-requests": "write", "checks": "write", "actions": "write"},
    ("benchmark.yml", "measure"): {},
    ("benchmark.yml", "follow"): {**READS, "actions": "read", "pull-requests": "write"},
    ("benchmark.yml", "report"): {**READS, "pull-requests": "write", "checks": "write"},
    ("bisect.yml", "file"): FILES_ISSUES,
    ("bisect-round.yml", "ask"): STORES,
    ("bisect-round.yml", "build"): READS,
    ("bisect-round.yml", "measure"): READS,
    ("bisect-round.yml", "decide"): STORES,
    ("ci.yml", "test"): READS,
    ("issue-commands.yml", "decide"): {**STORES, "issues": "read"},
    ("issue-commands.yml", "answer"): {**FILES_ISSUES, "actions": "write"},
    ("nightly.yml", "plan"): {**READS, "id-token": "write"},
    ("nightly.yml", "measure"): READS,
    ("nightly.yml", "detect"): {**READS, "id-token": "write", "issues": "read"},
    ("nightly.yml", "confirm"): READS,
    ("nightly.yml", "confirm-again"): READS,
    ("nightly.yml", "decide"): {**READS, "id-token": "write", "issues": "read"},
    ("nightly.yml", "file"): {**READS, "issues": "write"},
    ("watchdog.yml", "look"): {**READS, "id-token": "write"},
    ("watchdog.yml", "file"): {**READS, "issues": "write"},
}
# Of jobs that only call a workflow: what its jobs have between them.
CALLING = {
    ("nightly.yml", "bisect"): {**STORES, **FILES_ISSUES},
    ("bisect.yml", "round-1"): STORES,
    ("bisect.yml", "round-2"): STORES,
    ("bisect.yml", "round-3"): STORES,
}


REQUEST = BenchmarkRequest(
    key="0" * 16,
    repository="o/r",
    pull=1,
    comment=1,
    asked_by="ada",
    base="b" * 40,
    head="a" * 40,
    head_repository="o/r",
    suite="smoke",
    tests=("test_eval[resnet18-cpu-eager]",),
    device="cpu",
    pairs=6,
    budget_minutes=1,
)


def parsed(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def all_jobs() -> dict[tuple[str, str], dict[str, Any]]:
    return {(path.name, name): job for path in WORKFLOWS for name, job in parsed(path)["jobs"].items()}


def jobs() -> dict[tuple[str, str], dict[str, Any]]:
    """Those that run something themselves."""
    return {key: job for key, job in all_jobs().items() if "steps" in job}


def steps(path: Path) -> list[dict[str, Any]]:
    content = parsed(path)
    if path in ACTIONS:
        return content["runs"]["steps"]
    return [step for job in content["jobs"].values() for step in job.get("steps", ())]


def lint(*command: object) -> None:
    name, *arguments = map(str, command)
    ended = subprocess.run([program(name), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_there_are_the_workflows_that_the_documentation_describes():
    described = (ROOT / "docs" / "actions.md").read_text()
    assert {path.name for path in WORKFLOWS} == {
        *("benchmark.yml", "bisect.yml", "bisect-round.yml", "ci.yml", "issue-commands.yml", "nightly.yml"),
        "watchdog.yml",
    }
    assert all(f"`{path.name}`" in described for path in WORKFLOWS)


def test_workflows_and_actions_are_valid():
    lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    lint("check-jsonschema", "--builtin-schema", "vendor.github-actions", *ACTIONS)
    lint("actionlint", *WORKFLOWS)


def test_zizmor_finds_nothing_also_not_what_only_pedants_mind():
    lint("zizmor", "--offline", "--no-progress", "--no-config", "--strict-collection", "--persona=pedantic", *FILES)


def test_what_zizmor_ignores_is_listed_here_with_its_reason():
    found: dict[tuple[str, str, str], int] = {}
    for path in FILES:
        for rule, reason in re.findall(r"zizmor: *ignore\[(.*?)\] *(.*)", path.read_text()):
            found[path.name, rule, reason] = found.get((path.name, rule, reason), 0) + 1
    assert found == IGNORED
    assert not list(ROOT.glob("*zizmor.y*ml")) + list(GITHUB.glob("*zizmor.y*ml"))
    assert parsed(GITHUB / "actionlint.yaml") == {"self-hosted-runner": {"labels": ["gpu", "builder"]}}


def test_every_action_of_others_is_pinned_by_commit_with_its_version():
    versions: dict[str, set[str]] = {}
    for path in FILES:
        for line in re.findall(r"uses: *(.*)", path.read_text()):
            if line.startswith("./.github/"):
                continue
            name, pin = re.fullmatch(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", line).groups()
            versions.setdefault(name, set()).add(pin)
    assert len(versions) == 6, sorted(versions)
    assert all(len(pins) == 1 for pins in versions.values()), "one action, one version"


def test_each_job_has_the_permissions_that_it_needs_and_no_other():
    assert all(parsed(path)["permissions"] == {} for path in WORKFLOWS)
    assert {key: job["permissions"] for key, job in jobs().items()} == PERMISSIONS
    for permissions in PERMISSIONS.values():
        writes = {"issues", "pull-requests"} & {right for right, how in permissions.items() if how == "write"}
        assert not (permissions.get("id-token") == "write" and writes), (
            "who writes the store writes on no issue and no pull request"
        )


def test_a_job_that_calls_a_workflow_passes_on_what_the_jobs_there_have_and_no_secret():
    calling = {key: job for key, job in all_jobs().items() if "uses" in job}
    assert {key: job["permissions"] for key, job in calling.items()} == CALLING
    for job in calling.values():
        name = Path(job["uses"]).name
        between = [one for (where, _), one in {**PERMISSIONS, **CALLING}.items() if where == name]
        assert job["permissions"] == {right: one[right] for one in between for right in one}
        assert "secrets" not in job


def test_a_bisection_has_three_rounds_at_most_and_each_begins_where_the_one_before_has_got_to():
    rounds = [job for (_, name), job in all_jobs().items() if name.startswith("round-")]
    assert [job["with"]["round"] for job in rounds] == ["1", "2", "3"]
    asked = parsed(GITHUB / "workflows" / "bisect-round.yml")[True]["workflow_call"]["inputs"]
    assert all(set(job["with"]) == set(asked) for job in rounds)
    for number, job in enumerate(rounds[1:], start=1):
        assert job["if"] == f"${{{{ needs.round-{number}.outputs.again != '' }}}}"
        assert job["with"]["there"] == f"${{{{ needs.round-{number}.outputs.there }}}}"


def labels_of(job: str, output: str) -> str:
    """Those that a job has read in the configuration. Of one that is skipped there are none, and none is asked for."""
    return f"${{{{ fromJSON(needs.{job}.outputs.{output} || '[\"none\"]') }}}}"


def test_builds_are_made_on_builders_and_measured_where_the_gpu_is():
    assert jobs()["bisect-round.yml", "build"]["runs-on"] == labels_of("ask", "building")
    assert jobs()["bisect-round.yml", "measure"]["runs-on"] == labels_of("ask", "measuring")


def test_the_nightly_bisects_only_where_a_repository_is_named_and_after_filing():
    job = all_jobs()["nightly.yml", "bisect"]
    assert job["needs"] == "file"
    assert "needs.file.result == 'success' && vars.TORCHBENCH_BISECT_REPO != ''" in job["if"]


def test_a_role_is_assumed_only_beside_the_permission_and_the_writing_one_only_where_the_night_is_judged():
    roles = {
        key: step["with"]["role-to-assume"]
        for key, job in jobs().items()
        for step in job["steps"]
        if "configure-aws-credentials" in step.get("uses", "")
    }
    assert roles == {
        ("bisect-round.yml", "ask"): "${{ vars.TORCHBENCH_READER_ROLE }}",
        ("bisect-round.yml", "decide"): "${{ vars.TORCHBENCH_WRITER_ROLE }}",
        ("issue-commands.yml", "decide"): "${{ vars.TORCHBENCH_WRITER_ROLE }}",
        ("nightly.yml", "plan"): "${{ vars.TORCHBENCH_READER_ROLE }}",
        ("nightly.yml", "detect"): "${{ vars.TORCHBENCH_WRITER_ROLE }}",
        ("nightly.yml", "decide"): "${{ vars.TORCHBENCH_WRITER_ROLE }}",
        ("watchdog.yml", "look"): "${{ vars.TORCHBENCH_READER_ROLE }}",
    }
    assert set(roles) == {key for key, permissions in PERMISSIONS.items() if "id-token" in permissions}


@pytest.mark.parametrize(
    ("workflow", "job", "used"),
    [
        ("nightly.yml", "detect", "Store the shards, and judge the night"),
        ("nightly.yml", "decide", "Decide by the answers"),
        ("bisect-round.yml", "decide", "Decide by the answer"),
        ("issue-commands.yml", "decide", "Decide"),
    ],
)
def test_the_writing_role_is_assumed_directly_before_it_is_used(workflow, job, used):
    names = [step.get("name", "") for step in jobs()[workflow, job]["steps"]]
    assume = names.index("Assume the role that writes the store")
    assert names[assume + 1] == used


def test_the_only_secret_is_the_token_of_the_steps_that_look_and_write_on_github():
    with_token = [(path.name, step["name"]) for path in FILES for step in steps(path) if "github.token" in str(step)]
    assert with_token == [
        ("benchmark.yml", "Answer the command"),
        ("benchmark.yml", "Follow the measuring job"),
        ("benchmark.yml", "Report"),
        ("bisect.yml", "File"),
        ("issue-commands.yml", "Decide"),
        ("issue-commands.yml", "Answer"),
        ("nightly.yml", "Store the shards, and judge the night"),
        ("nightly.yml", "Decide by the answers"),
        ("nightly.yml", "File"),
        ("watchdog.yml", "File"),
    ]


def test_the_one_secret_there_may_be_is_for_the_steps_that_look_up_who_may_command():
    teams = {"TORCHBENCH_TEAMS_TOKEN": "${{ secrets.TORCHBENCH_TEAMS_TOKEN }}"}
    heeding = {"benchmark.yml": "Answer the command", "issue-commands.yml": "Decide"}
    for path in FILES:
        with_secret = [step for step in steps(path) if "secrets." in str(step)]
        assert (
            [step["name"] for step in with_secret] == [heeding[path.name]]
            if path.name in heeding
            else with_secret == []
        )
        assert all(teams.items() <= step["env"].items() for step in with_secret)
        assert path.read_text().count("secrets.") == len(with_secret)


def test_nothing_is_interpolated_into_a_shell():
    scripts = [step["run"] for path in FILES for step in steps(path) if "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]


def installed_by(action: str, folder: Path) -> list[str]:
    """The calls of Python by which an action installs. It only notes how it is called, and runs scripts."""
    (script,) = [
        step["run"] for step in steps(GITHUB / "actions" / action / "action.yml") if "pip" in step.get("run", "")
    ]
    calls, fake = folder / "calls", folder / "python"
    fake.write_text(
        f'#!/bin/bash\nif [[ "$1" == -c ]]; then exec {sys.executable} "$@"; fi\nprintf "%s\\n" "$*" >> {calls}\n'
    )
    fake.chmod(0o755)
    (folder / "python3").symlink_to(fake)
    (folder / "torchbench" / "bin").mkdir(parents=True)
    (folder / "torchbench" / "bin" / "python").symlink_to(fake)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=environment, cwd=ROOT, check=True)
    assert (folder / "output").read_text() == f"python={folder}/torchbench/bin/python\n"
    return calls.read_text().splitlines()


def test_a_measuring_machine_brings_pip_up_to_date_first_and_compiles_nothing(tmp_path):
    first, second = [line for line in installed_by("set-up-measuring", tmp_path) if line.startswith("-m pip install ")]
    assert first.endswith(" --upgrade pip") and second.endswith(" --editable .")
    for line in (first, second):
        assert "--no-compile" in line and "--only-binary :all:" in line and "--constraint constraints.txt" in line


def test_a_hosted_job_installs_what_the_bot_needs_and_builds_and_compiles_nothing(tmp_path):
    """Whoever has written a comment waits for it; tests/test_install_routes.py says how long."""
    made, installed = installed_by("set-up-trusted", tmp_path)
    assert made == f"-m venv --without-pip {tmp_path}/torchbench"
    assert installed.startswith(f"-m pip --python {tmp_path}/torchbench/bin/python install ")
    assert installed.endswith(f"--constraint constraints.txt --requirement {tmp_path}/requirements.txt")
    assert all(option in installed for option in ("--no-compile", "--only-binary :all:", "--no-cache-dir"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["bot"]]
    assert (tmp_path / "requirements.txt").read_text().splitlines() == wanted


def test_the_constraints_pin_the_pip_that_measuring_machines_bring():
    assert re.search(r"^pip==\d", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", MEASURING)
def test_a_measuring_job_runs_on_a_gpu_runner_and_leaves_artifacts_whatever_happens(name):
    job = jobs()["nightly.yml", name]
    assert job["runs-on"] == labels_of("plan", "second" if name == "confirm-again" else "measuring")
    assert job["strategy"]["fail-fast"] is False
    last = job["steps"][-1]
    assert "upload-artifact" in last["uses"] and last["if"] == "always()"
    assert all(job["runs-on"] == "ubuntu-latest" for key, job in jobs().items() if key not in RUN_OTHERS_CODE)


def test_a_second_runner_is_asked_only_where_a_label_is_named_and_the_night_ends_without_it():
    again, decide = jobs()["nightly.yml", "confirm-again"], jobs()["nightly.yml", "decide"]
    assert again["if"].endswith(" && needs.plan.outputs.second != '' }}") and "!cancelled()" in again["if"]
    assert again["needs"] == ["plan", "detect", "confirm"] and "confirm-again" in decide["needs"]
    names = {step["with"]["name"] for step in again["steps"] if "upload-artifact" in step.get("uses", "")}
    assert not any(name.startswith("answers-") for name in names), "of its artifacts none is taken for one of confirm's"


def test_a_night_ends_and_is_filed_whatever_became_of_its_confirming():
    decide, file = jobs()["nightly.yml", "decide"], jobs()["nightly.yml", "file"]
    assert decide["if"] == "${{ always() && needs.detect.outputs.nights != '' }}"
    assert decide["steps"][-1]["if"] == "always()" and "issues.json" in str(decide["steps"][-1])
    assert file["if"].startswith("${{ always() && (")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_cache_is_restored_and_no_credentials_are_left_in_a_checkout(path):
    for step in steps(path):
        action, options = step.get("uses", ""), step.get("with", {})
        assert "actions/cache" not in action and "cache" not in options
        if "actions/checkout" in action:
            assert options["persist-credentials"] is False
        if "actions/setup-node" in action:
            assert options["package-manager-cache"] is False


OF_THE_BOT = {
    "repository": "${{ job.workflow_repository || inputs.bot-repository || github.repository }}",
    "ref": "${{ job.workflow_sha || inputs.bot-commit || github.sha }}",
    "persist-credentials": False,
}
OF_THE_CALLER = {"path": "caller", "persist-credentials": False}


@pytest.mark.parametrize("path", [path for path in WORKFLOWS if path.name != "ci.yml"], ids=lambda path: path.name)
def test_a_workflow_works_in_every_repository_that_calls_it(path):
    """It runs the bot's code at its own commit, and reads the configuration of the one that calls."""
    for job in parsed(path)["jobs"].values():
        if "uses" in job:
            assert job["uses"].startswith("./.github/workflows/"), "of the same commit"
            for name in ("bot-repository", "bot-commit"):
                assert job["with"][name] == f"${{{{ inputs.{name} || '' }}}}"
            continue
        first, second = [
            step for step in job["steps"] if "checkout" in step.get("uses", "") or step.get("id") == "set-up"
        ]
        assert "actions/checkout" in first["uses"] and first["with"] == OF_THE_BOT
        assert second["uses"].startswith("./.github/actions/set-up-")
    config = "caller/${{ vars.TORCHBENCH_CONFIG || '.github/torchbench.yml' }}"
    assert re.findall(r"^ *CONFIG: (.*)$", path.read_text(), re.MULTILINE) in ([config], [])
    inputs = parsed(path)[True]["workflow_call"]["inputs"]
    assert all(inputs[name]["type"] == "string" for name in ("bot-repository", "bot-commit"))


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_what_sets_up_a_job_checks_out_the_configuration_and_never_a_pull_request(path):
    checkouts = [step for step in steps(path) if "actions/checkout" in step.get("uses", "")]
    assert [step["with"] for step in checkouts] == [OF_THE_CALLER]
    assert "/caller/" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_job_ends_in_time_and_no_two_nights_are_measured_at_once():
    assert all(isinstance(job["timeout-minutes"], int) for job in jobs().values())
    nightly = parsed(GITHUB / "workflows" / "nightly.yml")
    assert nightly["concurrency"] == {"group": "torchbench-nightly", "cancel-in-progress": False}
    assert {"schedule", "workflow_dispatch", "workflow_call"} == set(nightly[True])  # YAML takes `on` for true


def test_the_job_that_runs_a_pull_request_has_no_permission_no_token_no_cache_and_a_container():
    job = jobs()["benchmark.yml", "measure"]
    assert job["permissions"] == {}
    assert "secrets" not in str(job) and "github.token" not in str(job) and "cache" not in str(job)
    assert job["container"]["image"] == "${{ vars.TORCHBENCH_IMAGE != 'none' && vars.TORCHBENCH_IMAGE || '' }}"
    assert job["steps"][0]["name"] == "Take no container that may be another one tomorrow"
    assert job["concurrency"] == {
        "group": "torchbench-benchmark-${{ github.event.issue.number }}",
        "cancel-in-progress": False,
    }
    checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert [step["with"] for step in checkouts] == [OF_THE_BOT], "the harness, and nothing of the pull request"


@pytest.mark.parametrize(
    ("image", "ends"),
    [("none", 0), ("", 1), ("pytorch:latest", 1), (f"ghcr.io/x/y@sha256:{'0' * 64}", 0), (f"@sha256:{'0' * 63}", 1)],
)
def test_the_measuring_job_takes_a_container_by_its_digest_or_says_that_it_has_none(image, ends):
    script = jobs()["benchmark.yml", "measure"]["steps"][0]["run"]
    ended = subprocess.run(["bash", "-eo", "pipefail", "-c", script], env={"IMAGE": image}, check=False)
    assert ended.returncode == ends


def test_code_of_a_pull_request_runs_by_the_isolating_script_alone():
    """Every step between checking out and taking the results is a step of .github/benchmark-step, which builds with the
    network, measures without it, and goes by `isolate` but for taking the results."""
    names = [step.get("run", "") for step in jobs()["benchmark.yml", "measure"]["steps"]]
    steps = [name.removeprefix("exec .github/benchmark-step ") for name in names if "benchmark-step" in name]
    assert steps == ["build base", "build head", *(f"measure {part}/4" for part in (1, 2, 3, 4)), "profile", "pack"]
    script = (GITHUB / "benchmark-step").read_text()
    assert script.count("--network") == 1
    assert [
        line.split(")")[0] for line in script.splitlines() if " isolated " in f" {line} " and "--network" in line
    ] == ["build"]


def test_the_steps_of_the_measuring_job_are_those_that_the_status_comment_knows():
    known = 0
    for step in jobs()["benchmark.yml", "measure"]["steps"]:
        if "benchmark-step" in step.get("run", "") and not step["run"].endswith("pack"):
            told = status_of_step(REQUEST, step["name"], "")
            assert told is not None, step["name"]
            known += 1
    assert known == 7
    assert jobs()["benchmark.yml", "measure"]["name"] == MEASURE


def test_an_ordinary_comment_starts_no_job_and_what_it_says_is_in_no_script():
    workflow = parsed(GITHUB / "workflows" / "benchmark.yml")
    assert workflow[True]["issue_comment"] == {"types": ["created"]} and set(workflow[True]) == {
        *("issue_comment", "workflow_call"),
    }
    plan = workflow["jobs"]["plan"]
    assert "github.event.issue.pull_request" in plan["if"]
    assert "startsWith(github.event.comment.body, '/b')" in plan["if"]  # also a misspelt one, which is answered
    assert r"contains(toJSON(github.event.comment.body), '\n/b')" in plan["if"]
    rest = str({**workflow, "jobs": {**workflow["jobs"], "plan": {**plan, "if": ""}}})
    assert "comment.body" not in rest and "issue.title" not in rest and "head_ref" not in rest
    others = {name: job for name, job in workflow["jobs"].items() if name != "plan"}
    assert all("needs.plan.outputs.request != ''" in job["if"] for job in others.values())


def test_the_report_comes_whatever_became_of_the_measuring_and_believes_the_plan():
    report = jobs()["benchmark.yml", "report"]
    assert report["if"].startswith("${{ always() && ")
    (download,) = [step for step in report["steps"] if "download-artifact" in step.get("uses", "")]
    assert download["continue-on-error"] is True
    last = report["steps"][-1]
    assert last["env"]["REQUEST"] == "${{ needs.plan.outputs.request }}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_trusted_workflow_restores_a_cache(path):
    """Neither by an action nor by one that does it besides: what code of others has left there would be run."""
    for step in [*steps(path), *(step for action in ACTIONS for step in steps(action))]:
        assert not re.search(r"\bactions/cache\b|setup-uv|rust-cache|ccache", step.get("uses", ""))
        asked = {name: value for name, value in step.get("with", {}).items() if "cache" in name}
        assert asked in ({}, {"package-manager-cache": False}), step


def test_pull_requests_run_what_every_machine_runs():
    workflow = parsed(GITHUB / "workflows" / "ci.yml")
    assert "pull_request" in workflow[True] and "pull_request_target" not in workflow[True]
    assert [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step] == [".ci/run"]


def test_what_is_filed_is_the_artifact_of_the_job_that_made_it_also_after_a_re_run():
    """By a name it could be that of an earlier attempt."""
    file = jobs()["nightly.yml", "file"]
    (download,) = [step for step in file["steps"] if "download-artifact" in step.get("uses", "")]
    ids = "needs.detect.outputs.nights == '' && needs.detect.outputs.issues || needs.decide.outputs.issues"
    assert download["with"] == {"artifact-ids": f"${{{{ {ids} }}}}"}
    for name in ("detect", "decide"):
        job = jobs()["nightly.yml", name]
        assert job["outputs"]["issues"] == "${{ steps.issues.outputs.artifact-id }}"
        (upload,) = [step for step in job["steps"] if step.get("id") == "issues"]
        assert "upload-artifact" in upload["uses"] and "issues.json" in upload["with"]["path"]


def test_the_answers_about_alerts_are_left_beside_those_of_the_night_and_never_by_a_second_runner():
    def left_by(job: str) -> str:
        (step,) = [one for one in jobs()["nightly.yml", job]["steps"] if one.get("name") == "Leave the answers"]
        return step["with"]["path"].replace("${{ matrix.name }}", "confirm-1")

    names = ("confirm-1.jsonl", f"confirm-1{CLOSINGS}.jsonl")
    assert [fnmatch(name, left_by("confirm")) for name in names] == [True, True]
    assert [fnmatch(name, left_by("confirm-again")) for name in names] == [False, False]


def test_comments_are_handled_one_after_the_other_and_none_is_dropped():
    workflow = parsed(GITHUB / "workflows" / "issue-commands.yml")
    assert workflow[True]["issue_comment"] == {"types": ["created"]}
    assert workflow["concurrency"] == {
        "group": "torchbench-issue-commands-${{ github.event.issue.number }}",
        "cancel-in-progress": False,
        "queue": "max",
    }


def test_what_is_answered_is_the_artifact_of_the_job_that_decided_also_if_that_came_to_an_error():
    decide, answer = jobs()["issue-commands.yml", "decide"], jobs()["issue-commands.yml", "answer"]
    assert decide["steps"][-1]["id"] == "leave" and decide["steps"][-1]["if"] == "${{ !cancelled() }}"
    assert decide["outputs"] == {"answer": "${{ steps.leave.outputs.artifact-id }}"}
    wanted = "!cancelled() && needs.decide.result != 'skipped' && needs.decide.outputs.answer != ''"
    assert answer["if"] == f"${{{{ {wanted} }}}}"
    (download,) = [step for step in answer["steps"] if "download-artifact" in step.get("uses", "")]
    assert download["with"] == {"artifact-ids": "${{ needs.decide.outputs.answer }}"}


def test_one_comment_starts_one_bisection_which_shows_by_whose_key_it_was_started():
    workflow = parsed(GITHUB / "workflows" / "bisect.yml")
    assert workflow["run-name"] == "bisect ${{ inputs.asked }}"
    assert {"signal", "asked", "good", "bad"} <= set(workflow[True]["workflow_dispatch"]["inputs"])
