"""Alerts to talk about: each stored and filed as an issue of the fake; and the two jobs that answer a comment, one
after the other, each with what only it has."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from conversation import Conversation
from fake_github.issues import Issue
from fake_github.workflows import Run, add_workflow
from github_servers import REPOSITORY, OwnGitHub
from night_factory import FIRST_NIGHT, A, B

from baselines.confirming.state import Interval
from baselines.store import open_store
from bot.alert_issue import issue_of
from bot.answer_command import answer_command
from bot.config import load_config
from bot.event_command import handle_event
from bot.github.alert import Alert, AlertNight
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.client import Client
from bot.github.issues import GitHubIssues

WHERE = ("smoke", "cpu-4t")
KEY = "00000000000000aa"
_MARKS = re.compile(r"^(?:<!--.*?-->\s*)+")


def at(day: int):
    return FIRST_NIGHT + timedelta(days=day)


def alert_of(**fields: object) -> Alert:
    """Of something slower, confirmed, and open since the second night."""
    interval = Interval(test=A, channel="cpu_time", base=at(0), head=at(1), effect=0.12, low=0.11, high=0.13)
    night = AlertNight(run="r0001", started=at(1), build="build0001", findings={A: "+12.0%"})
    given = {
        "key": KEY, "kind": "regression", "suite": WHERE[0], "class": WHERE[1], "opened": at(1), "good_until": at(0),
        "tests": (A, B), "nights": (night,), "signal": "signal-1", "effects": {A: 0.12}, "intervals": (interval,),
        "evidence": "what the night showed",
        **fields,
    }  # fmt: skip
    return Alert.model_validate(given)


class AlertTalk:
    def __init__(self, hub: OwnGitHub, folder: Path, monkeypatch: pytest.MonkeyPatch, store: str | None = None) -> None:
        """The store is a folder, if it is not named."""
        self.folder, self.talk, self.monkeypatch = folder, Conversation(hub), monkeypatch
        self.hub, self.say, self.edit = hub, self.talk.say, self.talk.edit
        self.config_file = folder / "nightly.yaml"
        self.config_file.write_text(yaml.safe_dump({"store": store or str(folder / "store"), "github": REPOSITORY}))
        self.config = load_config(self.config_file)
        self.store = open_store(self.config.store)
        dispatched = dict.fromkeys(("signal", "repo", "good", "bad", "tests", "build", "asked"), False)
        add_workflow(hub.fake.world, self.talk.repository, "bisect.yml", dispatched, "bisect {asked}")
        self._jobs = 0

    def open_alert(self, **fields: object) -> int:
        """An alert as stored, and filed. Returns the number of its issue."""
        alert = alert_of(**fields)
        self.keep(alert)
        before = {issue["number"] for issue in self.hub.issues()}
        self.file(alert.model_copy(update={"closed": None}))
        if not alert.is_open:
            self.file(alert)
        (number,) = {issue["number"] for issue in self.hub.issues()} - before
        self.talk.answers(number)  # what the issue says of itself
        return number

    def keep(self, alert: Alert) -> None:
        def put(before: tuple[Alert, ...]) -> tuple[Alert, ...]:
            return (*(one for one in before if one.key != alert.key), alert)

        change_alerts(self.store, *WHERE, put)

    def file(self, alert: Alert) -> None:
        """As the job of a nightly does."""
        self.talk.as_job(self.monkeypatch, contents="read", issues="write")
        GitHubIssues(Client(REPOSITORY)).put(issue_of(alert, self.config))

    @property
    def alert(self) -> Alert:
        (alert,) = [one for one in read_alerts(self.store, *WHERE) if one.key == KEY]
        return alert

    def issue(self, number: int) -> Issue:
        return self.talk.repository.table(Issue)[number]

    def labels(self, number: int) -> set[str]:
        return {label.name for label in self.issue(number).labels}

    @property
    def bisections(self) -> list[dict[str, str]]:
        """The inputs of each that was started, but the key of the comment."""
        runs = [run for run in self.talk.repository.table(Run).values() if run.workflow.file == "bisect.yml"]
        return [{name: value for name, value in run.inputs.items() if name != "asked"} for run in runs]

    def decide(self, event: dict) -> Path | None:
        """The first job. Returns the folder that it leaves, if it leaves one."""
        self.talk.as_job(self.monkeypatch, contents="read", issues="read")
        self._jobs += 1
        left = self.folder / f"answer-{self._jobs}"
        handle_event(
            event="issue_comment", payload=self.payload(event), config=self.config_file,
            out=left / "actions.json", issues=left / "issues.json", dry_run=False,
        )  # fmt: skip
        return left if left.exists() else None

    def answer(self, event: dict, left: Path) -> None:
        """The second job, which has no store."""
        self.talk.as_job(self.monkeypatch, contents="read", issues="write", actions="write")
        (self.folder / "store").rename(self.folder / "out of reach")
        try:
            answer_command(
                actions=left / "actions.json", issues=left / "issues.json", payload=self.payload(event),
                config=self.config_file,
            )  # fmt: skip
        finally:
            (self.folder / "out of reach").rename(self.folder / "store")

    def payload(self, event: dict) -> Path:
        path = self.folder / "event.json"
        path.write_text(json.dumps(event))
        return path

    def hear(self, event: dict) -> str | None:
        """Both jobs; the reply, as it is read, or None for silence."""
        left = self.decide(event)
        if left is not None:
            self.answer(event, left)
        replies = [one for one in self.talk.answers(event["issue"]["number"]) if "<!-- torchbench-reply" in one]
        assert len(replies) <= 1
        return _MARKS.sub("", replies[0]) if replies else None

    def says(self, login: str, text: str, on: int) -> str | None:
        """Somebody comments; the reply."""
        return self.hear(self.say(login, text, on=on))
