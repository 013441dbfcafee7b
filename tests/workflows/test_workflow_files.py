"""The workflows as files: valid, pinned, and with no more rights than each job needs. What they do is in tests/e2e."""

import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from s3_servers import program

from bot.elsewhere.closings import CLOSINGS

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").glob("*/action.yml"))
FILES = [*WORKFLOWS, *ACTIONS]

# Every finding that is ignored, and how often. Each comment gives its reason.
IGNORED = {
    ("bisect.yml", "self-repository", "act, which the tests use, knows no $/"): 4,
    ("bisect-round.yml", "self-repository", "act, which the tests use, knows no $/"): 4,
    ("nightly.yml", "self-repository", "act, which the tests use, knows no $/"): 8,
    ("watchdog.yml", "self-repository", "act, which the tests use, knows no $/"): 2,
}
READS = {"contents": "read"}
STORES = {**READS, "id-token": "write"}
FILES_ISSUES = {**READS, "issues": "write"}
MEASURING = ("measure", "confirm", "confirm-again")
RUN_OTHERS_CODE = {
    *(("nightly.yml", name) for name in MEASURING),
    ("bisect-round.yml", "build"),
    ("bisect-round.yml", "measure"),
}
PERMISSIONS = {
    ("bisect.yml", "file"): FILES_ISSUES,
    ("bisect-round.yml", "ask"): STORES,
    ("bisect-round.yml", "build"): READS,
    ("bisect-round.yml", "measure"): READS,
    ("bisect-round.yml", "decide"): STORES,
    ("ci.yml", "test"): READS,
    ("nightly.yml", "plan"): {**READS, "id-token": "write"},
    ("nightly.yml", "measure"): READS,
    ("nightly.yml", "detect"): {**READS, "id-token": "write"},
    ("nightly.yml", "confirm"): READS,
    ("nightly.yml", "confirm-again"): READS,
    ("nightly.yml", "decide"): {**READS, "id-token": "write"},
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
        *("bisect.yml", "bisect-round.yml", "ci.yml", "nightly.yml", "watchdog.yml"),
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
    assert len(versions) == 6
    assert all(len(pins) == 1 for pins in versions.values()), "one action, one version"


def test_each_job_has_the_permissions_that_it_needs_and_no_other():
    assert all(parsed(path)["permissions"] == {} for path in WORKFLOWS)
    assert {key: job["permissions"] for key, job in jobs().items()} == PERMISSIONS
    for permissions in PERMISSIONS.values():
        assert not {"id-token", "issues"} <= set(permissions), "who writes the store files no issue"


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


def test_builds_are_made_on_builders_and_measured_where_the_gpu_is():
    assert jobs()["bisect-round.yml", "build"]["runs-on"] == ["self-hosted", "builder"]
    assert jobs()["bisect-round.yml", "measure"]["runs-on"] == ["self-hosted", "gpu"]


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
    ],
)
def test_the_writing_role_is_assumed_directly_before_it_is_used(workflow, job, used):
    names = [step.get("name", "") for step in jobs()[workflow, job]["steps"]]
    assume = names.index("Assume the role that writes the store")
    assert names[assume + 1] == used


def test_the_only_secret_is_the_token_of_the_filing_steps():
    with_token = [(path.name, step["name"]) for path in FILES for step in steps(path) if "github.token" in str(step)]
    assert with_token == [("bisect.yml", "File"), ("nightly.yml", "File"), ("watchdog.yml", "File")]
    assert not [path.name for path in FILES if "secrets." in path.read_text()]


def test_nothing_is_interpolated_into_a_shell():
    scripts = [step["run"] for path in FILES for step in steps(path) if "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize(
    ("action", "wanted"), [("set-up-measuring", "."), ("set-up-trusted", ".[bot]")], ids=["measuring", "trusted"]
)
def test_an_action_that_installs_brings_pip_up_to_date_first_and_compiles_nothing(action, wanted, tmp_path):
    """The script of the action is run with a Python that only notes how it is called."""
    (script,) = [
        step["run"] for step in steps(GITHUB / "actions" / action / "action.yml") if "pip" in step.get("run", "")
    ]
    calls = tmp_path / "calls"
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/bash\nprintf "%s\\n" "$*" >> {calls}\n')
    fake.chmod(0o755)
    (tmp_path / "python3").symlink_to(fake)
    (tmp_path / "torchbench" / "bin").mkdir(parents=True)
    (tmp_path / "torchbench" / "bin" / "python").symlink_to(fake)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    ended = subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=environment, check=False)
    assert ended.returncode == 0
    first, second = [line for line in calls.read_text().splitlines() if line.startswith("-m pip install ")]
    assert first.endswith(" --upgrade pip") and second.endswith(f" --editable {wanted}")
    for line in (first, second):
        assert "--no-compile" in line and "--only-binary :all:" in line and "--constraint constraints.txt" in line
    assert (tmp_path / "output").read_text() == f"python={tmp_path}/torchbench/bin/python\n"


def test_the_constraints_pin_the_pip_that_the_actions_bring():
    assert re.search(r"^pip==\d", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", MEASURING)
def test_a_measuring_job_runs_on_a_gpu_runner_and_leaves_artifacts_whatever_happens(name):
    job = jobs()["nightly.yml", name]
    second = "${{ vars.TORCHBENCH_SECOND_RUNNER }}"  # another label, so that it is another machine
    assert job["runs-on"] == ["self-hosted", second if name == "confirm-again" else "gpu"]
    assert job["strategy"]["fail-fast"] is False
    last = job["steps"][-1]
    assert "upload-artifact" in last["uses"] and last["if"] == "always()"
    assert all(job["runs-on"] == "ubuntu-latest" for key, job in jobs().items() if key not in RUN_OTHERS_CODE)


def test_a_second_runner_is_asked_only_where_a_label_is_named_and_the_night_ends_without_it():
    again, decide = jobs()["nightly.yml", "confirm-again"], jobs()["nightly.yml", "decide"]
    assert again["if"].endswith(" && vars.TORCHBENCH_SECOND_RUNNER != '' }}") and "!cancelled()" in again["if"]
    assert again["needs"] == ["detect", "confirm"] and "confirm-again" in decide["needs"]
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
            assert options == {"persist-credentials": False}
        if "actions/setup-node" in action:
            assert options["package-manager-cache"] is False


def test_every_job_ends_in_time_and_no_two_nights_are_measured_at_once():
    assert all(isinstance(job["timeout-minutes"], int) for job in jobs().values())
    nightly = parsed(GITHUB / "workflows" / "nightly.yml")
    assert nightly["concurrency"] == {"group": "torchbench-nightly", "cancel-in-progress": False}
    assert {"schedule", "workflow_dispatch"} == set(nightly[True])  # YAML takes `on` for true


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
