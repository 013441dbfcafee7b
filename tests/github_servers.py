"""Two servers that stand in for GitHub, each with one repository in which the bot may write and anybody may file: an
emulator by a third party (npm `emulate`), and our own fake, which also keeps GitHub's rules of who may do what.
Both are on free ports and can fail as told."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
import yaml
from faulty_proxy import Proxy, faulty_proxy
from s3_servers import free_ports

if TYPE_CHECKING:  # only who starts the fake needs githubkit
    from fake_github import FakeGitHub

NODE = Path(__file__).parent / "node"
EMULATE = NODE / "node_modules" / ".bin" / "emulate"
REPOSITORY = "torch-owner/nightlies"
BOT, OTHER, OWNER = "perf-bot", "mallory", "torch-owner"
TOKENS = {BOT: "token-of-the-bot", OTHER: "token-of-mallory", OWNER: "token-of-the-owner"}
READY_TIMEOUT_S = 30

needs_emulator = pytest.mark.skipif(
    not EMULATE.exists() or shutil.which("node") is None,
    reason="the emulator of GitHub is not installed: needs node 20 and `make test`, or `npm ci --prefix tests/node`",
)


@dataclass(frozen=True)
class GitHub:
    """A running one."""

    url: str
    proxy: Proxy

    def use(self, monkeypatch: pytest.MonkeyPatch, login: str = BOT) -> None:
        """Let this process find it, and write as fast as it can."""
        monkeypatch.setattr("bot.github.client._BETWEEN_WRITES_S", 0.0)
        monkeypatch.setenv("GITHUB_API_URL", self.url)
        monkeypatch.setenv("GITHUB_TOKEN", TOKENS[login])

    def call(self, method: str, path: str, login: str = BOT, **body: object) -> Any:
        """A request past the code under test."""
        answer = requests.request(
            method,
            f"{self.url}/repos/{REPOSITORY}/{path}",
            headers={"Authorization": f"Bearer {TOKENS[login]}", "Accept": "application/vnd.github+json"},
            data=json.dumps(body) if body else None,
            timeout=20,
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content else None

    def issues(self) -> list[dict[str, Any]]:
        """All issues, oldest first."""
        return self.call("GET", "issues?state=all&per_page=100&sort=created&direction=asc")

    def labels(self) -> list[str]:
        return [label["name"] for label in self.call("GET", "labels?per_page=100")]


@dataclass(frozen=True)
class OwnGitHub(GitHub):
    """The fake, with what only it can show."""

    fake: "FakeGitHub"


@contextmanager
def own_github(_folder: Path) -> Iterator[OwnGitHub]:
    """The fake, started as the emulator is, though it needs no folder. Raises AssertionError at the end if anything was
    asked or answered that GitHub does not know."""
    from fake_github import Token, fake_github

    with fake_github() as fake:
        for login, token in TOKENS.items():
            fake.world.add_account(login)
            fake.world.add_token(Token(token, login))
        fake.world.add_repository(REPOSITORY, roles={BOT: "write"})
        yield OwnGitHub(fake.url, fake.proxy, fake)


@contextmanager
def github(folder: Path) -> Iterator[GitHub]:
    """The emulator."""
    port, proxy_port = free_ports(2)
    seed = {
        "tokens": {token: {"login": login, "scopes": ["repo", "user"]} for login, token in TOKENS.items()},
        "github": {
            "users": [{"login": login} for login in TOKENS],
            "repos": [{"owner": OWNER, "name": "nightlies", "auto_init": True}],
        },
    }
    (folder / "seed.yaml").write_text(yaml.safe_dump(seed))
    command = [str(EMULATE), "start", "--service", "github", "--port", str(port), "--seed", str(folder / "seed.yaml")]
    command += ["--base-url", f"http://127.0.0.1:{proxy_port}"]
    with open(folder / "emulator.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with faulty_proxy(f"http://127.0.0.1:{port}", port=proxy_port) as proxy:
            _wait_until_ready(port, process, folder / "emulator.log")
            yield GitHub(proxy.url, proxy)
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        assert process.poll() is None, log.read_text()
        try:
            requests.get(f"http://127.0.0.1:{port}/repos/{REPOSITORY}", timeout=2).raise_for_status()
            return
        except requests.RequestException:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
