"""The main roads of looking and performing once more, on a third party's emulator of GitHub as well as on our own fake,
so that the fake is not the only one to say what GitHub is like. Reactions and dispatches the emulator has not."""

import pytest
from fake_github.pulls import open_pull_request
from faulty_proxy import LOSE_ANSWER
from github_servers import BOT, OTHER, OWNER, REPOSITORY

from bot.errors import BotError
from bot.github import client as client_module
from bot.github.actions import React, Reply, Status
from bot.github.client import Client
from bot.github.github_looking import GitHubLooking
from bot.github.hidden_marks import mark
from bot.github.performing import perform

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    made: list[float] = []
    monkeypatch.setattr(client_module.time, "sleep", made.append)
    return made


@pytest.fixture
def number(hub) -> int:
    """A pull request from a branch of the repository."""
    if not hasattr(hub, "fake"):
        return hub.call("POST", "pulls", OWNER, title="a change", head="change", base="main")["number"]
    repository = hub.fake.world.repository(*REPOSITORY.split("/"))
    hub.fake.world.push(repository, "change")
    return open_pull_request(hub.fake.world, repository, OWNER, "change").number


def effects(*actions) -> list[str]:
    return [done.effect for done in perform(Client(REPOSITORY), actions)]


def comments(hub, number: int) -> list[str]:
    found = hub.call("GET", f"issues/{number}/comments?per_page=100")
    return [one["body"] for one in found if one["user"]["login"] == BOT]


def test_a_reply_is_posted_once_and_a_status_comment_is_edited_in_place(hub, number):
    reply = Reply(number=number, key=KEY, body="Done.")
    assert effects(reply, Status(number=number, key=KEY, body="queued")) == ["made", "made"]
    assert effects(reply, Status(number=number, key=KEY, body="queued")) == ["there already", "unchanged"]
    assert effects(Status(number=number, key=KEY, body="measuring")) == ["changed"]
    assert comments(hub, number) == [f"{mark('reply', KEY)}\nDone.", f"{mark('status', KEY)}\nmeasuring"]
    assert [one.body for one in GitHubLooking(Client(REPOSITORY)).bot_comments(number)] == comments(hub, number)


def test_comments_of_others_and_further_pages_change_nothing(hub, number):
    reply = Reply(number=number, key=KEY, body="Done.")
    hub.call("POST", f"issues/{number}/comments", OTHER, body=f"{mark('reply', KEY)}\nI am the bot")
    for _ in range(101):
        hub.call("POST", f"issues/{number}/comments", OTHER, body="+1")
    assert effects(reply) == ["made"]
    assert effects(reply) == ["there already"]


def test_a_comment_whose_answer_is_lost_is_not_written_twice(hub, number, pauses):
    hub.proxy.faults[:] = [LOSE_ANSWER]
    hub.proxy.concerns = lambda seen: seen.startswith("POST")
    assert effects(Reply(number=number, key=KEY, body="Done.")) == ["made"]
    assert not hub.proxy.faults and pauses
    assert len(comments(hub, number)) == 1


def test_a_status_comment_that_somebody_deleted_is_made_anew(hub, number):
    effects(Status(number=number, key=KEY, body="queued"))
    (found,) = hub.call("GET", f"issues/{number}/comments")
    hub.call("DELETE", f"issues/comments/{found['id']}", OWNER)
    assert effects(Status(number=number, key=KEY, body="measuring")) == ["made"]
    assert len(comments(hub, number)) == 1


def test_a_reaction_that_cannot_be_made_stops_nothing(hub, number):
    assert effects(React(comment=10**9, content="eyes"), Reply(number=number, key=KEY, body="x")) == ["refused", "made"]


def test_a_pull_request_its_commits_and_roles_are_looked_up(hub, number):
    look = GitHubLooking(Client(REPOSITORY))
    pull = look.pull_request(number)
    assert (pull.is_open, pull.is_merged, pull.author, pull.base_branch) == (True, False, OWNER, "main")
    assert pull.head_repository == REPOSITORY and pull.head_pushed_at is not None
    assert look.commit("main") == look.commit(pull.base[:10]) == pull.base
    assert look.merge_base(pull.base, pull.head) == pull.base
    assert look.commit("nowhere") is None and look.run(10**9) is None
    assert look.role(OWNER) == "admin"
    assert look.role("nobody-of-that-name") == "none"
    with pytest.raises(BotError, match="there is no pull request #99"):
        look.pull_request(99)
