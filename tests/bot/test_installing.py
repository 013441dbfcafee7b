"""`torchbench init` and `torchbench check`: what they write is valid, safe, and calls what there is."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from s3_servers import program

from bot.cli import main
from bot.config import NightlyConfig, load_config
from bot.installing.callers import NAMES, TEMPLATES
from bot.installing.configuration import AS_THEY_ARE, BESIDE_A_COMMIT, REQUIREMENTS

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BOT = ("--bot", f"acme/torchbench-sentinel@{COMMIT}")
WRITTEN = [".github/torchbench.yml", *(f".github/workflows/{name}.yml" for name in NAMES)]

# Every finding of zizmor that is ignored in what is written. Each comment gives its reason.
IGNORED = {
    ("benchmark", "dangerous-triggers", "what a pull request brings runs in a job without rights or secrets"),
    (
        *("issue-commands", "dangerous-triggers"),
        "no job checks out or runs anything that a commenter could have written",
    ),
}


class Installed:
    """A repository in which `torchbench init` is called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("TORCHBENCH_STORE", "s3://bucket/prefix")
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")

    def call(self, *arguments: object, code: int = 0) -> str:
        """What a command says, on one line however narrow the terminal."""
        self.monkeypatch.setattr("sys.argv", ["torchbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self.capsys.readouterr()
        assert ended.value.code == code, said
        return said.out + said.err

    def init(self, *arguments: object, code: int = 0) -> str:
        return self.call("init", *BOT, *arguments, code=code)

    @property
    def config(self) -> NightlyConfig:
        return load_config(self.folder / ".github" / "torchbench.yml")

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def installed(tmp_path, monkeypatch, capsys) -> Installed:
    (tmp_path / "repository").mkdir()
    return Installed(tmp_path / "repository", monkeypatch, capsys)


def lint(folder: Path, *command: object) -> None:
    name, *arguments = map(str, command)
    ended = subprocess.run([program(name), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def parsed(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def test_what_is_written_is_a_configuration_and_five_workflows_that_no_lint_minds(installed):
    installed.init()
    assert installed.files() == sorted(WRITTEN)
    written = sorted((installed.folder / ".github/workflows").iterdir())
    lint(installed.folder, "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *written)
    lint(installed.folder, "actionlint", *written)
    pedantic = ("--offline", "--no-progress", "--no-config", "--strict-collection", "--persona=pedantic")
    lint(installed.folder, "zizmor", *pedantic, *written)
    assert (installed.config.suite, installed.config.device, installed.config.policy) == ("v1", "cuda", "default")
    assert (installed.config.store, installed.config.github) == ("s3://bucket/prefix", "owner/name")


def test_what_zizmor_ignores_there_is_listed_with_its_reason():
    found = {
        (path.stem, *ignored)
        for path in TEMPLATES.iterdir()
        for ignored in re.findall(r"zizmor: *ignore\[(.*?)\] *(.*)", path.read_text())
    }
    assert found == IGNORED


def test_the_first_configuration_measures_what_this_repository_measures(installed):
    installed.init()
    ours = parsed(ROOT / ".github" / "torchbench.yml")
    written = parsed(installed.folder / ".github" / "torchbench.yml")
    assert {key: written[key] for key in ("suite", "device", "store", "github")} == {
        key: ours[key] for key in ("suite", "device", "store", "github")
    }
    assert installed.config.build == NightlyConfig.model_validate({"build": ours["build"]}).build


def test_what_is_chosen_stands_in_the_configuration(installed):
    line = "python3 -m pip wheel --no-deps -w dist . # 'quoted': $x"
    installed.init(
        *("--subject", "transformers", "--build", line, "--build", "https://example.org/nightly"),
        *("--store", "s3://ours/here", "--suite", "smoke", "--device", "cpu", "--runner", "self-hosted, bench h200"),
    )
    config = installed.config
    assert (config.subject, config.suite, config.device, config.store) == (
        *("transformers", "smoke", "cpu", "s3://ours/here"),
    )
    assert config.build.index == "https://example.org/nightly" and config.build.packages == ("transformers",)
    assert config.builds.git.command == line
    assert config.runners.measuring == config.pull_requests.runner == ("self-hosted", "bench", "h200")
    installed.init("--python", "/opt/build/bin/python", "--force")
    assert (installed.config.python, installed.config.build) == (Path("/opt/build/bin/python"), None)
    installed.init("--subject", "mine", "--force")
    assert (installed.config.python, installed.config.build) == (Path("python3"), None)


def test_the_package_in_question_is_not_pinned_beside_itself(installed):
    installed.init("--subject", "transformers", "--build", "https://example.org/nightly")
    names = {
        one.partition("==")[0] for one in (*installed.config.build.requirements, *installed.config.builds.requirements)
    }
    assert names == {"numpy", "timm"}


def test_what_comes_beside_a_build_has_the_versions_that_the_bot_is_tested_with():
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    assert set(REQUIREMENTS) | set(AS_THEY_ARE) <= set(pinned)
    assert set(BESIDE_A_COMMIT) - set(pinned) == {"pillow==13.0.0"}, "which the others bring where it is not said"


def test_a_suite_of_ones_own_is_found_from_where_the_configuration_lies(installed):
    suite = "name: mine\ndescription: Two models.\nmodels: [resnet18, hf_Bert]\n"
    (installed.folder / "mine.yaml").write_text(suite)
    installed.init("--suite", "mine.yaml")
    assert installed.config.suite == str(installed.folder / "mine.yaml")
    assert "4 tests of" in installed.call("check")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--suite", "smok"), "unknown suite 'smok'; did you mean smoke?"),
        (("--runner", "self-hosted,gpu/2"), "this would be no configuration: key runners.measuring.1: expected"),
        (("--runner", ","), "key pull_requests.runner: expected at least 1 entry"),
        (("--build", "make", "--build", "make all"), "--build: name one index of wheels (http…) and one shell line"),
        (("--build", "https://a.example", "--python", "python3"), "both `build` and `python` are set"),
        (("--bot", "acme/torchbench-sentinel@main"), "--bot: expected OWNER/NAME@COMMIT with all 40 digits"),
        (("absent",), "absent: is no folder"),
        (("--repository", "models"), "--repository: expected OWNER/NAME, found 'models'"),
        (
            ("--subject", "my lib"),
            "key subject: expected the name of one package, as pip has it, found the text 'my lib'",
        ),
        (("--store", "gs://bucket"), "`store` in the configuration: gs://bucket: no store of the kind gs://"),
        (("--store", "s3://"), "`store` in the configuration: s3://: names no bucket"),
    ],
)
def test_a_choice_that_cannot_be_is_told_before_anything_is_written(installed, options, said):
    assert said in " ".join(installed.init(*options, code=2).split())
    assert installed.files() == []


def test_what_is_there_is_not_overwritten_unless_that_is_said(installed):
    theirs = installed.folder / ".github" / "workflows" / "nightly.yml"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("name: ours\n")
    said = " ".join(installed.init(code=2).split())
    assert ".github/workflows/nightly.yml there already, nothing was written; --force overwrites" in said
    assert installed.files() == [".github/workflows/nightly.yml"] and theirs.read_text() == "name: ours\n"
    installed.init("--force")
    assert installed.files() == sorted(WRITTEN) and parsed(theirs)["name"] == "nightly"


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(installed, tmp_path):
    (tmp_path / "elsewhere").write_text("kept")
    (installed.folder / ".github").mkdir()
    (installed.folder / ".github" / "torchbench.yml").symlink_to(tmp_path / "elsewhere")
    installed.init(code=2)
    installed.init("--force")
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert installed.config.suite == "v1"


def test_what_remains_to_be_done_is_said(installed):
    git = ("git", "-C", installed.folder)
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "git@github.com:acme/models.git"], check=True)
    said = installed.init("--runner", "self-hosted,h200")
    assert "two roles that acme/models may assume" in said
    assert "TORCHBENCH_STORE=s3://bucket/prefix, TORCHBENCH_REGION, TORCHBENCH_READER_ROLE" in said
    assert "with the labels self-hosted, h200" in said and "docs/install.md of acme/torchbench-sentinel" in said
    assert "TORCHBENCH_STORE=" not in installed.init("--store", "s3://a/b", "--force")


# The bot that is called


def cloned(folder: Path, origin: str) -> str:
    """A clone of a bot with one commit; the commit."""
    git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (
        ("init", "--quiet"),
        ("remote", "add", "origin", origin),
        ("commit", "--quiet", "--allow-empty", "-m", "a"),
    ):
        subprocess.run([*git, *command], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_without_a_name_the_bot_of_this_checkout_is_called_at_its_commit(installed, tmp_path):
    clone = tmp_path / "bot"
    clone.mkdir()
    installed.monkeypatch.setattr("bot.installing.init._ROOT", clone)
    assert "this bot is no clone from GitHub: name the one to call" in installed.call("init", code=2)
    commit = cloned(clone, "https://github.example.com/acme/bench.git")
    assert "was not pushed; push it, or name another with --bot" in " ".join(installed.call("init", code=2).split())
    subprocess.run(["git", "-C", clone, "update-ref", "refs/remotes/origin/main", commit], check=True)
    installed.call("init")
    called = parsed(installed.folder / ".github/workflows/watchdog.yml")["jobs"]["watchdog"]
    assert called["uses"] == f"acme/bench/.github/workflows/watchdog.yml@{commit}"


@pytest.mark.parametrize("name", NAMES)
def test_a_caller_names_the_bot_once_for_github_and_once_for_enterprise_server(installed, name):
    installed.init("--enterprise-server")
    (job,) = parsed(installed.folder / f".github/workflows/{name}.yml")["jobs"].values()
    assert job["uses"] == f"acme/torchbench-sentinel/.github/workflows/{name}.yml@{COMMIT}"
    assert (job["with"]["bot-repository"], job["with"]["bot-commit"]) == ("acme/torchbench-sentinel", COMMIT)


def test_no_caller_lets_a_job_near_a_cache_and_enterprise_server_does_not_know_the_key(installed):
    installed.init()
    workflows = [installed.folder / f".github/workflows/{name}.yml" for name in NAMES]
    assert [parsed(path)["cache-mode"] for path in workflows] == ["none"] * len(NAMES)
    installed.init("--enterprise-server", "--force")
    assert not [path for path in workflows if "cache-mode" in path.read_text()]


def rights_of(workflow: Path) -> dict[str, str]:
    """What the jobs of a workflow have between them."""
    between: dict[str, str] = {}
    for job in parsed(workflow)["jobs"].values():
        for right, level in job["permissions"].items():
            between[right] = "write" if "write" in (level, between.get(right)) else level
    return between


@pytest.mark.parametrize("name", [name for name in NAMES if (WORKFLOWS / f"{name}.yml").exists()])
def test_a_caller_grants_what_the_jobs_it_calls_have_and_passes_what_they_take(name):
    """A right too few, and GitHub does not start the run."""
    caller, called = parsed(TEMPLATES / f"{name}.yml"), parsed(WORKFLOWS / f"{name}.yml")
    ((_, job),) = caller["jobs"].items()
    assert caller["permissions"] == {} and job["permissions"] == rights_of(WORKFLOWS / f"{name}.yml")
    assert set(job["with"]) == set(called[True]["workflow_call"]["inputs"])
    assert caller.get("run-name") == called.get("run-name"), "by which its runs are found again"
    secrets = set(called[True]["workflow_call"].get("secrets", ()))
    assert job.get("secrets", {}) == {one: f"${{{{ secrets.{one} }}}}" for one in secrets}, "by name, and never all"
    own = {event: options for event, options in called[True].items() if event != "workflow_call"}
    assert caller[True] == own, "it starts when the bot's own does"
    assert caller["concurrency"]["group"] != called["concurrency"]["group"], "it would wait for itself"


# The check


def test_a_configuration_is_checked_where_its_variables_are_not_set(installed):
    installed.init()
    for name in ("TORCHBENCH_STORE", "GITHUB_REPOSITORY"):
        installed.monkeypatch.setenv(name, "")
    said = installed.call("check")
    assert "store: $TORCHBENCH_STORE is not set here" in said
    assert ".github/torchbench.yml: is right; 102 tests of v1 on cuda" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("teams: []", "teams: [acme]"), "key pull_requests.teams.0: expected organisation/team"),
        (("suite: v1", "suite: v2"), "torchbench.yml: key suite (line 5): unknown suite 'v2'"),
        (("policy: default", "policy: strict"), "unknown policy 'strict'"),
        (("owners: []", "reference: v1.l"), "key reference"),
        (("store: $TORCHBENCH_STORE", "store: s3:///nightly"), "s3:///nightly: names no bucket"),
        (("store: $TORCHBENCH_STORE", "store: gs://bucket"), "no store of the kind gs://"),
        (("github:", "gihub:"), "unknown key gihub; did you mean github?"),
    ],
)
def test_a_mistake_is_told_by_the_check(installed, wrong, said):
    installed.init()
    path = installed.folder / ".github" / "torchbench.yml"
    path.write_text(path.read_text().replace(*wrong))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if wrong[1] in text)
    told = " ".join(installed.call("check", code=2).split())
    assert said in told and f"(line {line})" in told


def test_a_configuration_that_is_not_there_is_told_with_what_writes_one(installed):
    said = " ".join(installed.call("check", code=2).split())
    assert ".github/torchbench.yml: is not there; `torchbench init` writes .github/torchbench.yml" in said
