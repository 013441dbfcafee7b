"""The main roads of commands on alerts, on a third party's emulator of GitHub. It knows no reactions, which are only an
extra, and starts no workflows."""

import json

import pytest
from alert_talk import KEY, WHERE, alert_of
from github_servers import BOT, OTHER, OWNER, REPOSITORY, needs_emulator

from baselines.store import open_store
from bot.alert_issue import issue_of
from bot.answer_command import answer_command
from bot.config import load_config
from bot.event_command import handle_event
from bot.github.alert_store import change_alerts, find_alert
from bot.github.client import Client
from bot.github.issues import GitHubIssues

pytestmark = [needs_emulator, pytest.mark.parametrize("hub", ["emulator"], indirect=True)]


def test_an_alert_is_acknowledged_expected_and_closed_at_once(hub, tmp_path):
    config_file, event_file = tmp_path / "nightly.yaml", tmp_path / "event.json"
    config_file.write_text(f"store: {tmp_path / 'store'}\ngithub: {REPOSITORY}\n")
    config = load_config(config_file)
    store = open_store(config.store)
    change_alerts(store, *WHERE, lambda before: (alert_of(),))
    GitHubIssues(Client(REPOSITORY)).put(issue_of(alert_of(), config))

    def hear(login: str, text: str) -> str | None:
        (issue,) = hub.issues()
        comment = hub.call("POST", f"issues/{issue['number']}/comments", login, body=text)
        payload = {"action": "created", "comment": comment, "issue": issue, "repository": {"full_name": REPOSITORY}}
        event_file.write_text(json.dumps(payload))
        left = tmp_path / str(comment["id"])
        leave = {"out": left / "actions.json", "issues": left / "issues.json"}
        handle_event(event="issue_comment", payload=event_file, config=config_file, **leave)
        if not left.exists():
            return None
        answer_command(left / "actions.json", event_file, left / "issues.json", config_file)
        replies = hub.call("GET", f"issues/{issue['number']}/comments?per_page=100", OWNER)
        return [one["body"] for one in replies if one["user"]["login"] == BOT][-1]

    assert hear(OWNER, "thank you") is None
    assert "**Not done:** you may not command the bot here." in hear(OTHER, "/ack")
    assert "**Acknowledged** by `torch-owner`: `soon`." in hear(OWNER, "/ack soon")
    (issue,) = hub.issues()
    assert issue["state"] == "open" and "alert: acknowledged" in [label["name"] for label in issue["labels"]]
    assert "**Expected** by `torch-owner`." in hear(OWNER, "/expected")
    (issue,) = hub.issues()
    assert issue["state"] == "closed" and find_alert(store, KEY).accepted is not None
    assert "**Not done:** this alert is closed already" in hear(OWNER, "/snooze 7d")
