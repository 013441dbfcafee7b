"""docs/install.md, followed to the letter in fresh clones: every block that is not left out with a reason is called as
it stands, and what it has written is run by act, which knows as little of GitHub as an Enterprise Server."""

import os
import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from acting import Acting
from calling import CLONED, commit_without_what_act_does_not_know, their_repository
from conversation import Conversation
from github_servers import BOT, REPOSITORY, TOKENS, github, needs_emulator, own_github
from pull_requests import LOOPS, PACKAGE, open_pull_request, project
from s3_servers import BUCKET, READER_KEY
from slow_build import make_slow_build

DOC = Path(__file__).parents[2] / "docs" / "install.md"
_BLOCK = re.compile(r"(?:<!-- not called by the test: ([^\n]*) -->\n)?```(\w*)\n(.*?)```", re.DOTALL)


def blocks() -> list[str]:
    """The commands in the document that are to be called, in order."""
    found = _BLOCK.findall(DOC.read_text())
    assert all(reason or language == "sh" for reason, language, _ in found)
    return [commands for reason, _, commands in found if not reason]


def test_what_the_document_installs_is_what_the_command_writes():
    said = DOC.read_text()
    assert len(blocks()) == 4
    assert "torchbench init --subject" in said and "`.github/torchbench.yml`" in said
    assert all(f"`{name}.yml`" in said for name in ("nightly", "watchdog", "bisect", "benchmark", "issue-commands"))
    assert "public" in said and "TORCHBENCH_READER_ROLE" in said


def instead_of_github(acting: Acting) -> dict[str, str]:
    """Variables by which git finds there what has an address of github.com; and who commits."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{acting.folder / 'repositories'}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        **{f"GIT_{who}_{what}": "they@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }


@pytest.mark.long
@pytest.mark.timeout(1200)
@needs_emulator
def test_a_newcomer_gets_from_nothing_to_a_first_nightly(
    tmp_path: Path,
    seaweedfs_endpoint,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
):
    seaweedfs_endpoint.use(monkeypatch)
    python3 = make_slow_build(
        tmp_path / "python3", training=0, inference=0
    )  # no slower, and without this project in it
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(python3.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    writer = seaweedfs_endpoint.variables()
    store = f"s3://{BUCKET}/{secrets.token_hex(4)}/torchbench"
    with github(tmp_path) as hub:
        acting = Acting(
            folder=tmp_path / "acting",
            github=hub.url,
            token=TOKENS[BOT],
            roles={"writer": writer, "reader": {**writer, "AWS_ACCESS_KEY_ID": READER_KEY}},
            variables={
                "TORCHBENCH_STORE": store,
                "TORCHBENCH_REGION": "us-east-1",
                "TORCHBENCH_READER_ROLE": "reader",
                "TORCHBENCH_WRITER_ROLE": "writer",
            },
            repository=REPOSITORY,
            files={},
            bot=CLONED,
        )
        their_repository(acting.checkout)
        here = tmp_path / "newcomer"
        here.mkdir()
        began = time.monotonic()
        ended = subprocess.run(
            ["bash", "-c", "set -euo pipefail\n" + "".join(blocks())],
            cwd=here,
            env={
                **os.environ,
                **instead_of_github(acting),
                "PYTHONPATH": str(here / "torchbench-sentinel"),  # as an editable installation of it
                "BOT": CLONED,
                "REPO": REPOSITORY,
                "PACKAGE": "torch",
                "TORCHBENCH_STORE": store,
                "GITHUB_REPOSITORY": REPOSITORY,
                "GITHUB_API_URL": hub.url,
                "GITHUB_TOKEN": TOKENS[BOT],
            },
            capture_output=True,
            text=True,
            check=False,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said
        assert ".github/torchbench.yml: is right; 10 tests of smoke on cpu" in said
        assert f"two roles that {REPOSITORY} may assume" in said and "labels self-hosted, bench" in said
        assert "issue created: No nightly of smoke on any class" in said

        nightly = yaml.safe_load((acting.checkout / ".github/workflows/nightly.yml").read_text())
        assert nightly["jobs"]["nightly"]["uses"] == f"{CLONED}/.github/workflows/nightly.yml@{acting.commit}"
        commit_without_what_act_does_not_know(acting.checkout)
        for workflow in ("nightly", "watchdog"):
            exit_code, log = acting.run_with_its_own_artifacts(workflow)
            assert exit_code == 0, log
            if workflow == "nightly":
                assert "verdict: baseline made" in log, log
        seconds = time.monotonic() - began
        assert TOKENS[BOT] not in said + log and writer["AWS_SECRET_ACCESS_KEY"] not in said
        (issue,) = hub.issues()
    assert (issue["title"], issue["state"]) == ("No nightly of smoke on any class", "closed")
    record_property(
        "figure", f"docs/install.md to the end of the first nightly, as far as one machine can: {seconds:.0f} s"
    )


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="to isolate a command needs root")
@pytest.mark.timeout(1200)
def test_the_first_comments_of_the_document_are_answered_in_a_repository_that_is_installed_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
):
    """Step 7: a pull request of a package that is built by a command of its own, whose wheel sees the torch, timm and
    transformers of this interpreter, so that none of them is installed anew."""
    (written,) = re.findall(r"^torchbench (init .*)$", DOC.read_text(), flags=re.MULTILINE)
    first, second = re.findall(r"^gh pr comment 1 .* --body '(.*)'$", DOC.read_text(), flags=re.MULTILINE)
    with own_github(tmp_path) as hub, project(tmp_path / "subject") as served:
        talk = Conversation(hub)
        talk.as_job(monkeypatch, contents="read", pull_requests="write", checks="write", actions="write")
        acting = Acting(
            folder=tmp_path / "acting",
            github=hub.url,
            token="token-of-a-job",
            roles={},
            variables={"TORCHBENCH_IMAGE": "none"},
            repository=REPOSITORY,
            files={},
            bot=CLONED,
            environment={"GITHUB_SERVER_URL": served.server, "GITHUB_REPOSITORY": REPOSITORY},
        )
        their_repository(acting.checkout)
        command = [
            *shlex.split(written.replace("$PACKAGE", "worksteps")),
            *("--build", "python make_wheel.py", "--bot", f"{CLONED}@{acting.commit}"),
        ]
        subprocess.run([sys.executable, "-m", "bot", *command, acting.checkout], check=True, cwd=acting.home)
        config = acting.checkout / ".github" / "torchbench.yml"
        chosen = yaml.safe_load(config.read_text())
        assert [one.partition("==")[0] for one in chosen["builds"]["requirements"]] == ["numpy", "timm", "transformers"]
        chosen["builds"]["requirements"] = []
        config.write_text(yaml.safe_dump(chosen))
        commit_without_what_act_does_not_know(acting.checkout)
        head = served.commit({"worksteps.py": PACKAGE.format(loops=2 * LOOPS)}, "other-work")
        number = open_pull_request(talk, served, head)

        began = time.monotonic()
        exit_code, log = acting.run("benchmark", talk.say("maintainer", first, on=number))
        seconds = time.monotonic() - began

        assert exit_code == 0, log
        status, verdict = talk.answers(number)
        assert f"**Benchmark of `{head[:12]}`: done.**" in status, status
        tests = {f"test_{kind}[resnet18-cpu-eager-tiny]" for kind in ("train", "eval")}
        assert tests == set(re.findall(r"test_\w+\[[^\]]*\]", verdict)), verdict
        assert not re.search(r"\*\*(Slower|Faster|Newly failing|Nothing measured)", verdict), verdict

        exit_code, log = acting.run_with_its_own_artifacts("benchmark", talk.say("maintainer", second, on=number))

        assert exit_code == 0, log
        *_, answer = talk.answers(number)
        assert "/benchmark cancel" in answer
    record_property("figure", f"docs/install.md, step 7, from the comment to its verdict: {seconds:.0f} s")
