"""Runs the workflows of this repository by `act` on this machine, with stand-ins for the actions of others.

The repository is a copy of what the jobs need, or one that calls the workflows of such a copy. Stand-ins keep artifacts
in a folder, check out a repository at a commit, and give credentials of an S3 server for a role, to jobs with
`id-token: write` only: act itself knows no permissions.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from s3_servers import program

ROOT = Path(__file__).parents[2]
NEEDED = (".github", "baselines", "bot", "score", "torchbenchmark", "constraints.txt", "pyproject.toml")
NEEDED += ("regression_detector.py",)

UPLOAD = """
name: upload
description: A folder as the store of artifacts.
inputs: {name: {}, path: {}, if-no-files-found: {}, overwrite: {}, retention-days: {}}
outputs: {artifact-id: {value: "${{ steps.keep.outputs.artifact-id }}"}}
runs:
  using: composite
  steps:
    - id: keep
      shell: bash
      env: {NAME: "${{ inputs.name }}", FILE: "${{ inputs.path }}", MISSING: "${{ inputs.if-no-files-found }}"}
      run: |
        shopt -s nullglob
        IFS= found=($FILE)
        if [ -e "${found[0]:-}" ]; then
          rm -rf "ARTIFACTS/$NAME" && mkdir -p "ARTIFACTS/$NAME" && cp "${found[@]}" "ARTIFACTS/$NAME/"
          id=$(stat --format=%i "ARTIFACTS/$NAME")  # a number that no other one has
          echo "artifact-id=$id" >> "$GITHUB_OUTPUT"
        else
          echo "no file $FILE" && [ "$MISSING" != error ]
        fi
"""
DOWNLOAD = """
name: download
description: Of one name or number into the path, of a pattern into a folder each.
inputs: {name: {}, pattern: {}, artifact-ids: {}, path: {default: .}}
runs:
  using: composite
  steps:
    - shell: bash
      env:
        NAME: "${{ inputs.name }}"
        PATTERN: "${{ inputs.pattern }}"
        ID: "${{ inputs.artifact-ids }}"
        INTO: "${{ inputs.path }}"
      run: |
        if [ -n "$ID" ]; then
          found=$(find ARTIFACTS -mindepth 1 -maxdepth 1 -inum "$ID")
          [ -n "$found" ] || exit 1
          mkdir -p "$INTO" && cp "$found/"* "$INTO/"
        elif [ -n "$NAME" ]; then
          mkdir -p "$INTO" && cp "ARTIFACTS/$NAME/"* "$INTO/"
        else
          for found in ARTIFACTS/$PATTERN; do
            [ ! -d "$found" ] || { mkdir -p "$INTO" && cp -r "$found" "$INTO/"; }
          done
        fi
"""
CREDENTIALS = """
name: assume a role
description: The credentials of a role, for jobs that may ask for a token.
inputs: {role-to-assume: {required: true}, aws-region: {required: true}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {ROLE: "${{ inputs.role-to-assume }}", REGION: "${{ inputs.aws-region }}"}
      run: |
        grep -qx "$GITHUB_WORKFLOW/$GITHUB_JOB" "ROLES/jobs-with-id-token" || { echo "no id-token here"; exit 1; }
        cat "ROLES/$ROLE" >> "$GITHUB_ENV"
        echo "AWS_REGION=$REGION" >> "$GITHUB_ENV"
"""
CHECKOUT = """
name: checkout
description: Of a repository at a commit; where neither is named, act itself copies the one whose workflow runs.
inputs: {repository: {required: true}, ref: {required: true}, path: {default: .}, persist-credentials: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {REPOSITORY: "${{ inputs.repository }}", REF: "${{ inputs.ref }}", INTO: "${{ inputs.path }}"}
      run: |
        git init --quiet "$INTO"
        git -C "$INTO" fetch --quiet --depth 1 "REPOSITORIES/$REPOSITORY" "$REF"
        git -C "$INTO" checkout --quiet FETCH_HEAD
"""
NOTHING = "name: nothing\ndescription: Not called.\nruns: {using: composite, steps: [{shell: bash, run: 'exit 1'}]}\n"
STAND_INS = {
    "actions/upload-artifact": UPLOAD,
    "actions/download-artifact": DOWNLOAD,
    "actions/checkout": CHECKOUT,
    "aws-actions/configure-aws-credentials": CREDENTIALS,
    "actions/setup-python": NOTHING,
}


def workflows(folder: Path = ROOT) -> dict[str, dict]:
    """The workflows by their names. (YAML takes the key `on` for true.)"""
    read = [yaml.safe_load(path.read_text()) for path in sorted((folder / ".github/workflows").glob("*.yml"))]
    return {workflow["name"]: workflow for workflow in read}


def actions_used(folder: Path = ROOT) -> set[str]:
    """`OWNER/NAME@REF` of every step, of workflows and of actions."""
    steps = [
        step for one in workflows(folder).values() for job in one["jobs"].values() for step in job.get("steps", ())
    ]
    for path in (folder / ".github/actions").glob("*/action.yml"):
        steps += yaml.safe_load(path.read_text())["runs"]["steps"]
    return {step["uses"] for step in steps if "uses" in step}


@dataclass
class Acting:
    """A repository whose workflows are run."""

    folder: Path
    github: str  # address of the API
    token: str
    roles: Mapping[str, Mapping[str, str]]  # variables of the environment that a role brings
    variables: Mapping[str, str]  # of the repository
    repository: str
    files: Mapping[str, Mapping[str, object]]  # YAML to be added
    bot: str | None = None  # OWNER/NAME of the copy, if the repository is there and only calls its workflows
    environment: Mapping[str, str] = field(default_factory=dict)  # of every step, beside what act gives
    _stand_ins: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in NEEDED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            self.home.mkdir(parents=True, exist_ok=True)
            options = {"ignore": shutil.ignore_patterns("__pycache__")} if copy is shutil.copytree else {}
            copy(ROOT / name, self.home / name, **options)
        for path in (self.home / ".github" / "workflows").glob("*.yml"):
            path.write_text(path.read_text().replace("  queue: max\n", ""))  # which act does not know
        for name, content in self.files.items():
            (self.home / name).write_text(yaml.safe_dump(dict(content)))
        self.artifacts.mkdir()
        for name, folder in {self.repository: self.checkout, self.bot or self.repository: self.home}.items():
            (self.folder / "repositories" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "repositories" / name).symlink_to(folder)
        self._keep_roles()
        self._make_stand_ins()
        identity = ("-c", "user.name=tests", "-c", "user.email=tests@example.org")
        for command in (
            ("init", "--quiet", "--initial-branch", "main"),
            ("remote", "add", "origin", f"https://github.com/{self.bot or self.repository}"),
            ("add", "--all"),
            (*identity, "commit", "--quiet", "--message", "all"),
        ):
            subprocess.run(["git", *command], cwd=self.home, check=True)

    @property
    def home(self) -> Path:
        """Where the bot's own files are."""
        return self.checkout if self.bot is None else self.folder / "bot"

    @property
    def commit(self) -> str:
        """That of the bot."""
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.home, capture_output=True, text=True, check=True)
        return told.stdout.strip()

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def start(
        self, workflow: str, log: Path, payload: Mapping[str, object] | None = None, **variables: str
    ) -> "subprocess.Popen[bytes]":
        """Start a workflow by hand, or by a comment whose event is the payload; what the jobs say goes to the log."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        event = "workflow_dispatch" if payload is None else "issue_comment"
        command = [program("act"), event, "--workflows", f".github/workflows/{workflow}.yml"]
        if payload is not None:
            (self.folder / "event.json").write_text(json.dumps(payload))
            command += ["--eventpath", str(self.folder / "event.json")]
        command += ["--no-cache-server", "--concurrent-jobs", "1", "--secret", f"GITHUB_TOKEN={self.token}"]
        command += [f"--platform={label}=-self-hosted" for label in ("ubuntu-latest", "self-hosted", "gpu")]
        local = [*self._stand_ins, *([f"{self.bot}@{self.commit}={self.home}"] if self.bot else [])]
        command += [f"--local-repository={one}" for one in local]
        command += [f"--var={name}={value}" for name, value in {**self.variables, **variables}.items()]
        command += [f"--env=TORCHBENCH_PYTHON={sys.executable}", f"--env=GITHUB_API_URL={self.github}"]
        command += [f"--env={name}={value}" for name, value in self.environment.items()]
        command += ["--env=NO_COLOR=1", "--env=COLUMNS=160"]  # act gives every step a terminal
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        with open(log, "wb") as file:
            return subprocess.Popen(command, cwd=self.checkout, env=environment, stdout=file, stderr=file)

    def run(self, workflow: str, payload: Mapping[str, object] | None = None, **variables: str) -> tuple[int, str]:
        """Run a workflow to its end: the exit code of act, and what the jobs said."""
        log = self.folder / f"{workflow}.log"
        ended = self.start(workflow, log, payload, **variables).wait(timeout=1200)
        return ended, log.read_text()

    def forget_artifacts(self) -> None:
        """Each run of a workflow has its own."""
        shutil.rmtree(self.artifacts)
        self.artifacts.mkdir()

    def run_with_its_own_artifacts(
        self, workflow: str, payload: Mapping[str, object] | None = None, **variables: str
    ) -> tuple[int, str]:
        self.forget_artifacts()
        return self.run(workflow, payload, **variables)

    def _keep_roles(self) -> None:
        roles = self.folder / "roles"
        roles.mkdir()
        for role, variables in self.roles.items():
            (roles / role).write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
        allowed = [
            f"{name}/{job}\n"
            for name, workflow in workflows(self.home).items()
            for job, content in workflow["jobs"].items()
            if content["permissions"].get("id-token") == "write"
        ]
        (roles / "jobs-with-id-token").write_text("".join(allowed))

    def _make_stand_ins(self) -> None:
        for used in actions_used(self.home):
            name, _, _ = used.partition("@")
            if name in STAND_INS:
                folder = self.folder / "stand-ins" / name.replace("/", "-")
                folder.mkdir(parents=True)
                text = STAND_INS[name].replace("ARTIFACTS", str(self.artifacts))
                text = text.replace("REPOSITORIES", str(self.folder / "repositories"))
                (folder / "action.yml").write_text(text.replace("ROLES", str(self.folder / "roles")))
                self._stand_ins.append(f"{used}={folder}")


def plan_of(acting: Acting) -> dict:
    return json.loads((acting.artifacts / "plan" / "plan.json").read_text())
