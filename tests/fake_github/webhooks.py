"""What GitHub sends of a comment, checked by githubkit's models of its events."""

from typing import Any, Literal

from githubkit_schemas.latest import models

from fake_github.comments import Comment, add_comment, shown_comment
from fake_github.issues import Issue, listed
from fake_github.repository import whole
from fake_github.routing import Request
from fake_github.server import FakeGitHub
from fake_github.users import shown
from fake_github.validation import mistake_in_answer
from fake_github.world import Repository

Action = Literal["created", "edited", "deleted"]
_MODELS: dict[Action, Any] = {
    "created": models.WebhookIssueCommentCreated,
    "edited": models.WebhookIssueCommentEdited,
    "deleted": models.WebhookIssueCommentDeleted,
}
_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def comment(fake: FakeGitHub, repository: Repository, number: int, login: str, body: str) -> dict[str, Any]:
    """Somebody comments on an issue or a pull request: the event that this sends."""
    request = request_of(fake, repository)
    made = add_comment(request, repository.table(Issue)[number], fake.world.account(login), body)
    return event_of(fake, repository, made)


def event_of(
    fake: FakeGitHub, repository: Repository, about: Comment, action: Action = "created", before: str = ""
) -> dict[str, Any]:
    """`issue_comment`, as GitHub sends it; of an edited one with what it was before."""
    request = request_of(fake, repository)
    author, issue = shown(request, about.author), listed(request, about.issue)
    issue["events_url"] = f"{issue['url']}/events"
    issue["timeline_url"] = f"{issue['url']}/timeline"
    payload = {
        "action": action,
        "issue": {**issue, "assignee": None, "reactions": _reactions(issue["url"])},
        "comment": shown_comment(request, about),
        "repository": whole(request, repository),
        "sender": author or shown(request, fake.world.ghost),
        **({"changes": {"body": {"from": before}}} if action == "edited" else {}),
    }
    payload["comment"]["reactions"] = _reactions(payload["comment"]["url"])
    mistake = mistake_in_answer(payload, _MODELS[action])
    assert mistake is None, f"the fake's event is none of GitHub's: {mistake}"
    return payload


def request_of(fake: FakeGitHub, repository: Repository) -> Request:
    """A request of nobody, for what shows something of a repository."""
    return Request(fake.world, fake.url, None, repository, {}, {}, None)


def _reactions(url: str) -> dict[str, Any]:
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(_REACTIONS, 0)}
