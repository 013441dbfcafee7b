"""A conversation with the bot, for tests: a repository with people of every role, pull requests and alerts, what is
said on them, and what the bot has answered since.

    talk = Conversation(hub)
    number = talk.open_pull_request()
    event = talk.say("maintainer", "/benchmark help", on=number)  # the payload of `issue_comment`
    ...
    assert talk.answers(number) == snapshot
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from fake_github import Repository, Token, webhooks
from fake_github.access import Role
from fake_github.comments import Comment, add_comment
from fake_github.issues import Issue
from fake_github.pulls import PullRequest, close, head_of, open_pull_request
from fake_github.reactions import Reaction
from github_servers import BOT, REPOSITORY, OwnGitHub

ROLES: dict[str, Role] = {"maintainer": "maintain", "writer": "write", "triager": "triage", "reader": "read"}
ACTIONS_LOGIN = "github-actions[bot]"
STRANGER, OTHER_BOT = "stranger", "other-app[bot]"
SECONDS_BETWEEN_COMMENTS = 10.0  # so that what was said after a push is known to have been


@dataclass
class Conversation:
    """`maintainer`, `writer`, `triager` and `reader` have the role of their name, `stranger` has none, `torch-owner` is
    the owner."""

    hub: OwnGitHub
    bot: str = BOT  # who the bot writes as
    _read: set[int] = field(default_factory=set)  # comments of the bot that a test has looked at

    def __post_init__(self) -> None:
        world = self.hub.fake.world
        for login, role in ROLES.items():
            world.add_account(login)
            self.repository.roles[login] = role
        world.add_account(STRANGER)
        world.add_account(OTHER_BOT, "Bot")

    def as_job(self, monkeypatch: pytest.MonkeyPatch, **permissions: Literal["read", "write"]) -> None:
        """From now on the bot is a job of GitHub Actions, whose token has these permissions: checks, contents, …"""
        world, self.bot = self.hub.fake.world, ACTIONS_LOGIN
        if ACTIONS_LOGIN not in world.accounts:
            world.add_account(ACTIONS_LOGIN, "Bot")
        world.add_token(
            Token("token-of-a-job", ACTIONS_LOGIN, "installation", tuple(permissions.items()), (REPOSITORY,))
        )
        monkeypatch.setenv("GITHUB_TOKEN", "token-of-a-job")
        monkeypatch.setenv("GITHUB_ACTIONS", "true")

    @property
    def repository(self) -> Repository:
        return self.hub.fake.world.repository(*REPOSITORY.split("/"))

    def open_pull_request(self, by: str = "writer", fork: bool = False, title: str = "a change", body: str = "") -> int:
        """One with a commit of its own; the time is well after its push. Returns its number."""
        world, head, branch = self.hub.fake.world, self.repository, f"change-by-{by}"
        if fork:
            head = next((one for one in world.repositories if one.fork_of and one.owner.login == by), None) or (
                world.fork(self.repository, by)
            )
        world.push(head, branch)
        pull = open_pull_request(world, self.repository, by, branch, head, title=title, body=body)
        world.clock.advance(SECONDS_BETWEEN_COMMENTS)
        return pull.number

    def open_issue(self, body: str, by: str | None = None, title: str = "3 tests slower") -> int:
        """An issue, by the bot unless said otherwise. Returns its number."""
        world, number = self.hub.fake.world, self.repository.next_number()
        now = world.clock.now()
        issue = Issue(world.new_id(), number, title, body, world.account(by or self.bot), now, now)
        self.repository.table(Issue)[number] = issue
        return number

    def pull_request(self, number: int) -> PullRequest:
        return self.repository.table(PullRequest)[number]

    def head(self, number: int) -> str:
        """The commit that a pull request is at."""
        return head_of(self.hub.fake.world, self.pull_request(number))

    def push(self, number: int) -> str:
        """A further commit of the pull request. Returns it."""
        pull = self.pull_request(number)
        return self.hub.fake.world.push(pull.head_repository, pull.head)

    def merge(self, number: int, by: str = "maintainer") -> None:
        close(self.hub.fake.world, self.pull_request(number), merged_by=by)

    def close(self, number: int) -> None:
        """A pull request or an issue."""
        issue = self.repository.table(Issue)[number]
        issue.state, issue.closed_at = "closed", self.hub.fake.world.clock.now()

    def lock(self, number: int) -> None:
        self.repository.table(Issue)[number].locked = True

    def delete_head_repository(self, number: int) -> None:
        self.hub.fake.world.delete_repository(self.pull_request(number).head_repository)

    def say(self, login: str, text: str, on: int) -> dict[str, Any]:
        """Somebody comments: the payload of the event that this sends."""
        self.hub.fake.world.clock.advance(SECONDS_BETWEEN_COMMENTS)
        return webhooks.comment(self.hub.fake, self.repository, on, login, text)

    def edit(self, said: dict[str, Any], text: str) -> dict[str, Any]:
        """The comment of a payload is edited: the payload of that."""
        comment = self._comment(said)
        before, comment.body = comment.body, text
        return webhooks.event_of(self.hub.fake, self.repository, comment, "edited", before)

    def delete(self, said: dict[str, Any]) -> dict[str, Any]:
        """The comment of a payload is deleted: the payload of that."""
        comment = self._comment(said)
        del self.repository.table(Comment)[comment.id]
        return webhooks.event_of(self.hub.fake, self.repository, comment, "deleted")

    def bot_says(self, text: str, on: int) -> int:
        """The bot has written that earlier. Returns the comment's id; `answers` does not show it."""
        request = webhooks.request_of(self.hub.fake, self.repository)
        issue = self.repository.table(Issue)[on]
        comment = add_comment(request, issue, self.hub.fake.world.account(self.bot), text)
        self._read.add(comment.id)
        return comment.id

    def answers(self, on: int) -> list[str]:
        """The bot's comments on an issue or a pull request that this was not asked for before, as they now are."""
        new = [one for one in self._by_bot(on) if one.id not in self._read]
        self._read.update(one.id for one in new)
        return [one.body for one in new]

    def bot_comments(self, on: int) -> list[str]:
        """All that the bot has written there, as it now is."""
        return [one.body for one in self._by_bot(on)]

    def reactions(self, to: dict[str, Any]) -> list[str]:
        """What was made of the comment of a payload."""
        reactions = self.repository.table(Reaction).values()
        return [one.content for one in reactions if one.comment.id == to["comment"]["id"]]

    def _by_bot(self, on: int) -> list[Comment]:
        comments = self.repository.table(Comment).values()
        return [one for one in comments if one.issue.number == on and one.author.login == self.bot]

    def _comment(self, said: dict[str, Any]) -> Comment:
        return self.repository.table(Comment)[said["comment"]["id"]]
