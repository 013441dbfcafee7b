"""The main roads of commands on pull requests, on a third party's emulator of GitHub.

It knows no reactions, which are only an extra.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from github_servers import BOT, OTHER, OWNER, REPOSITORY, GitHub, needs_emulator

from bot.benchmark_request import BenchmarkRequest, read_request
from bot.event_command import handle_event

pytestmark = [needs_emulator, pytest.mark.parametrize("hub", ["emulator"], indirect=True)]


def open_pull_request(hub: GitHub) -> dict[str, Any]:
    """By the owner, from a branch with a commit of its own."""
    main = hub.call("GET", "git/ref/heads/main", OWNER)["object"]["sha"]
    hub.call("POST", "git/refs", OWNER, ref="refs/heads/change", sha=main)
    content = base64.b64encode(b"faster").decode()
    hub.call("PUT", "contents/change.txt", OWNER, message="faster", content=content, branch="change")
    return hub.call("POST", "pulls", OWNER, title="a change", head="change", base="main")


def hear(hub: GitHub, folder: Path, monkeypatch: pytest.MonkeyPatch, login: str, text: str) -> BenchmarkRequest | None:
    """Somebody comments on the pull request, and the bot hears of it."""
    comment = hub.call("POST", "issues/1/comments", login, body=text)
    comment["created_at"] = "2100-01-01T00:00:00Z"  # the emulator's clock has no second between a push and a comment
    payload = {
        "action": "created",
        "comment": comment,
        "issue": {"number": 1, "state": "open", "pull_request": {}},
        "repository": {"full_name": REPOSITORY},
    }
    event, outputs = folder / "event.json", folder / "outputs"
    event.write_text(json.dumps(payload))
    outputs.write_text("")
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    config = folder / "nightly.yaml"
    config.write_text("suite: smoke\n")
    handle_event(event="issue_comment", payload=event, config=config)
    written = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return read_request(written["request"]) if written else None


def bot_comments(hub: GitHub) -> list[str]:
    return [one["body"] for one in hub.call("GET", "issues/1/comments", OWNER) if one["user"]["login"] == BOT]


def test_a_request_is_made_refused_told_of_and_answered_with_help(hub, tmp_path, monkeypatch):
    pull = open_pull_request(hub)
    request = hear(hub, tmp_path, monkeypatch, OWNER, "/benchmark resnet18 mode=eval")
    assert request is not None
    assert (request.pull, request.head, request.base) == (1, pull["head"]["sha"], pull["base"]["sha"])
    assert request.tests == ("test_eval[resnet18-cpu-eager-tiny]",)
    (status,) = bot_comments(hub)
    assert f"**Benchmark of `{request.head[:12]}`: queued.**" in status
    assert hear(hub, tmp_path, monkeypatch, OTHER, "/benchmark resnet18") is None
    assert hear(hub, tmp_path, monkeypatch, OWNER, "/benchmark devcie=cuda") is None
    assert hear(hub, tmp_path, monkeypatch, OTHER, "/benchmark status") is None
    assert hear(hub, tmp_path, monkeypatch, OTHER, "/benchmark help") is None
    assert hear(hub, tmp_path, monkeypatch, OTHER, "thank you") is None
    refused, wrong, told, helped = bot_comments(hub)[1:]
    assert "**Not done:** you may not command the bot here." in refused
    assert "**Not understood:** there is no key `devcie`. Did you mean `device=`?" in wrong
    assert f"- head `{request.head[:12]}`, for `{OWNER}`: queued" in told
    assert "**What can be said here**" in helped
