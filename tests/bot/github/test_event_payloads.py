"""Every event that GitHub sends, by a third party's collection (npm @octokit/webhooks-examples): handled or ignored."""

import json
from pathlib import Path
from typing import Any

import pytest
from github_servers import NODE

from bot import event_command
from bot.errors import BotError
from bot.event_command import LARGEST_PAYLOAD, handle_event, read_payload
from bot.github.events import CommentEvent, Ignored, read_event

EXAMPLES = NODE / "node_modules" / "@octokit" / "webhooks-examples"
needs_examples = pytest.mark.skipif(
    not EXAMPLES.exists(), reason="the collected events are not installed: `make test`, or `npm ci --prefix tests/node`"
)
FEWEST = 40  # events; of github.com there are several hundred
SERVERS = ("api.github.com", "ghes-31", "ghes-32", "ghes-33", "ghes-34", "ghes-35")


def events(server: str) -> list[tuple[str, dict[str, Any]]]:
    kinds = json.loads((EXAMPLES / server / "index.json").read_bytes())
    return [(kind["name"], example) for kind in kinds for example in kind["examples"]]


@pytest.fixture(autouse=True)
def nothing_is_looked_up(monkeypatch):
    def refuse(*_):
        raise AssertionError("an event without a command needs no configuration and no GitHub")

    monkeypatch.setattr(event_command, "load_config", refuse)


@needs_examples
@pytest.mark.parametrize("server", SERVERS)
def test_all_events_of_the_collection_are_heeded_or_ignored(server, tmp_path, capsys):
    file = tmp_path / "event.json"
    told = []
    for name, payload in events(server):
        file.write_text(json.dumps(payload))
        handle_event(event=name, payload=file, config=Path("nightly.yaml"))
        told.append(capsys.readouterr().out.strip())
    assert len(told) >= FEWEST
    assert all(line.startswith("ignored: ") for line in told)
    assert "ignored: the comment has no command" in told


@needs_examples
@pytest.mark.parametrize("server", SERVERS)
def test_a_new_comment_of_the_collection_is_read_with_who_wrote_it_and_where(server):
    read = [read_event(name, payload) for name, payload in events(server) if name == "issue_comment"]
    heeded = [event for event in read if isinstance(event, CommentEvent)]
    assert heeded and all(isinstance(event, Ignored) for event in read if event not in heeded)
    for event in heeded:
        assert event.comment.user is not None and event.comment.user.login == "Codertocat"
        assert (event.repository.full_name, event.issue.number) == ("Codertocat/Hello-World", 1)
        assert event.comment.created_at.tzinfo is not None


def read(content: bytes, tmp_path: Path) -> str:
    path = tmp_path / "event.json"
    path.write_bytes(content)
    with pytest.raises(BotError) as refused:
        read_payload(path)
    return str(refused.value)


def test_what_is_no_event_is_an_error_that_says_so(tmp_path):
    assert read(b"", tmp_path) == "event.json: is no JSON, as every event of GitHub is"
    assert read(b"[" * 100_000, tmp_path) == "event.json: is no JSON, as every event of GitHub is"
    assert read(b"\xff{}", tmp_path) == "event.json: is no JSON, as every event of GitHub is"
    assert read(b"[]", tmp_path) == "event.json: is no event of GitHub, which has keys with values"
    assert read(b" " * (LARGEST_PAYLOAD + 1), tmp_path) == "event.json: larger than 25 MiB"
    with pytest.raises(BotError, match=r"missing\.json: cannot be read: No such file"):
        read_payload(tmp_path / "missing.json")
    with pytest.raises(BotError, match="the payload of issue_comment: key comment: is missing"):
        read_event("issue_comment", {"action": "created"})


def test_a_payload_is_no_link(tmp_path):
    (tmp_path / "event.json").symlink_to("/etc/hostname")
    with pytest.raises(BotError, match=r"event\.json: cannot be read"):
        read_payload(tmp_path / "event.json")
