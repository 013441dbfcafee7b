"""Issues. A listing does not say who closed one; a deleted author is nobody; who may not triage gives no labels."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from githubkit_schemas.latest import models

from fake_github.labels import Label, label_made, on_issue
from fake_github.refusals import Refusal, invalid, must_administrate, not_found, too_long
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/issues"
LONGEST_BODY = 65_536
LONGEST_TITLE = 256
_FILTERS = ("state", "labels", "since", "sort", "direction", "creator")


@dataclass
class Issue:
    id: int
    number: int
    title: str
    body: str | None
    author: Account
    created_at: datetime
    updated_at: datetime
    labels: list[Label] = field(default_factory=list)
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: Account | None = None
    comments: int = 0
    is_pull_request: bool = False
    merged_at: datetime | None = None  # of a pull request
    locked: bool = False  # only who may write may comment
    lock_reason: Literal["resolved", "off-topic", "too heated", "spam"] | None = None


@ROUTES.add(f"GET {PATH}", needs="issues: read", model=models.Issue, query=_FILTERS, paged=True)
def list_issues(request: Request) -> Reply:
    """Where issues are turned off, pull requests are still listed."""
    query = request.query
    state = _one_of(query, "state", ("open", "closed", "all"))
    labels = [name.casefold() for name in query.get("labels", "").split(",") if name]
    since = _since(query.get("since"))
    creator = query.get("creator", "").casefold()
    found = [
        issue
        for issue in request.repository.table(Issue).values()
        if (request.repository.has_issues or issue.is_pull_request)
        and state in ("all", issue.state)
        and set(labels) <= {label.name.casefold() for label in issue.labels}
        and (since is None or issue.updated_at >= since)
        and creator in ("", issue.author.login.casefold())
    ]
    sort = _one_of(query, "sort", ("created", "updated", "comments"))
    keys = {
        "created": lambda one: one.number,
        "updated": lambda one: one.updated_at,
        "comments": lambda one: one.comments,
    }
    newest_first = _one_of(query, "direction", ("desc", "asc")) == "desc"
    return Reply([listed(request, one) for one in sorted(found, key=keys[sort], reverse=newest_first)])


@ROUTES.add(f"POST {PATH}", needs="issues: write", body=models.ReposOwnerRepoIssuesPostBody, model=models.Issue)
def create_issue(request: Request) -> Reply:
    """Anybody who may read may create one."""
    _must_have_issues(request)
    title, body = str(request.body["title"]), request.body.get("body")
    _check_texts(title, body)
    labels = _labels(request, request.body.get("labels") or [])
    now = request.world.clock.now()
    number = request.repository.next_number()
    issue = Issue(request.world.new_id(), number, title, body, request.account, now, now, labels)
    request.repository.table(Issue)[number] = issue
    return Reply(_single(request, issue), 201)


@ROUTES.add(f"GET {PATH}/{{number}}", needs="issues: read", model=models.Issue)
def get_issue(request: Request) -> Reply:
    return Reply(_single(request, issue_of(request)))


@ROUTES.add(
    f"PATCH {PATH}/{{number}}",
    needs="issues: write",
    body=models.ReposOwnerRepoIssuesIssueNumberPatchBody,
    model=models.Issue,
)
def update_issue(request: Request) -> Reply:
    issue, changes = issue_of(request), request.body
    if not request.has_role("triage") and issue.author is not request.account:
        raise must_administrate()
    title = issue.title if changes.get("title") is None else str(changes["title"])
    body = changes.get("body", issue.body)
    _check_texts(title, body)
    labels = _labels(request, changes["labels"]) if "labels" in changes and request.has_role("triage") else issue.labels
    before = (issue.title, issue.body, issue.labels, issue.state)
    issue.title, issue.body, issue.labels = title, body, labels
    _set_state(request, issue, changes.get("state") or issue.state, changes.get("state_reason"))
    if before != (issue.title, issue.body, issue.labels, issue.state):
        issue.updated_at = request.world.clock.now()
    return Reply(_single(request, issue))


def issue_of(request: Request) -> Issue:
    """The issue that the path names."""
    issue = request.repository.table(Issue).get(int(request.places["number"]))
    if issue is None:
        raise not_found()
    if not issue.is_pull_request:
        _must_have_issues(request)
    return issue


def association(request: Request, author: Account) -> str:
    """What the author is to the repository."""
    if author is request.repository.owner:
        return "OWNER"
    teams = [team for team in request.world.teams if team.organization is request.repository.owner]
    if any(author.login in team.members for team in teams):
        return "MEMBER"
    return "COLLABORATOR" if author.login in request.repository.roles else "NONE"


def _must_have_issues(request: Request) -> None:
    if not request.repository.has_issues:
        raise Refusal(410, "Issues has been disabled in this repository.")


def _check_texts(title: str, body: str | None) -> None:
    if not title.strip():
        raise invalid("Issue", "title", "missing_field")
    too_long("Issue", "title", title, LONGEST_TITLE)
    too_long("Issue", "body", body, LONGEST_BODY)


def _labels(request: Request, names: list[Any]) -> list[Label]:
    if not request.has_role("triage"):
        return []  # GitHub drops them without a word
    wanted = [name["name"] if isinstance(name, dict) else name for name in names]
    return list({label.id: label for label in (label_made(request, name) for name in wanted)}.values())


def _set_state(request: Request, issue: Issue, state: Literal["open", "closed"], reason: str | None) -> None:
    if state == issue.state:
        return
    issue.state = state
    if state == "closed":
        issue.state_reason = reason or "completed"
        issue.closed_at, issue.closed_by = request.world.clock.now(), request.account
    else:
        issue.state_reason, issue.closed_at, issue.closed_by = "reopened", None, None


def _one_of(query: dict[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """A parameter, by default the first that is allowed."""
    value = query.get(name, allowed[0])
    if value not in allowed:
        raise invalid("Issue", name, "invalid", value=value)
    return value


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise invalid("Issue", "since", "invalid", value=text) from None
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)


def _single(request: Request, issue: Issue) -> dict[str, Any]:
    return {**listed(request, issue), "closed_by": shown(request, issue.closed_by)}


def listed(request: Request, issue: Issue) -> dict[str, Any]:
    url = f"{request.url}/issues/{issue.number}"
    kind = "pull" if issue.is_pull_request else "issues"
    page = f"https://github.com/{request.repository.full_name}/{kind}/{issue.number}"
    shown_issue = {
        "id": issue.id,
        "node_id": node_id("Issue", issue.id),
        "url": url,
        "repository_url": request.url,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": page,
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "user": shown(request, issue.author),
        "labels": [on_issue(request, label) for label in issue.labels],
        "state": issue.state,
        "state_reason": issue.state_reason,
        "locked": issue.locked,
        "active_lock_reason": issue.lock_reason,
        "assignees": [],
        "milestone": None,
        "comments": issue.comments,
        "created_at": as_time(issue.created_at),
        "updated_at": as_time(issue.updated_at),
        "closed_at": as_time(issue.closed_at),
        "author_association": association(request, issue.author),
        "performed_via_github_app": None,
    }
    if issue.is_pull_request:
        address = f"{request.url}/pulls/{issue.number}"
        shown_issue["pull_request"] = {
            "url": address,
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": as_time(issue.merged_at),
        }
    return shown_issue
