"""Check runs. Apps alone make them, a job's own token among those, and each changes only its own."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.commits import resolved
from fake_github.refusals import Refusal, invalid, not_found, too_long
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/check-runs"
LONGEST_TEXT = 65_535


@dataclass
class CheckRun:
    id: int
    app: Account
    name: str
    commit: str
    external_id: str = ""
    status: str = "queued"
    conclusion: str | None = None
    details_url: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    output: dict[str, Any] = field(default_factory=dict)


@ROUTES.add(
    f"POST {PATH}",
    needs="checks: write",
    body=models.ReposOwnerRepoCheckRunsPostBodyOneof0 | models.ReposOwnerRepoCheckRunsPostBodyOneof1,
    model=models.CheckRun,
)
def create_check_run(request: Request) -> Reply:
    _must_be_app(request)
    commit = request.body["head_sha"]
    if commit not in request.repository.commits:
        raise Refusal(422, f"No commit found for SHA: {commit}")
    check = CheckRun(request.world.new_id(), request.account, request.body["name"], commit)
    check.started_at = request.world.clock.now()
    _change(request, check)
    request.repository.table(CheckRun)[check.id] = check
    return Reply(_shown(request, check), 201)


@ROUTES.add(
    f"PATCH {PATH}/{{id}}",
    needs="checks: write",
    body=models.ReposOwnerRepoCheckRunsCheckRunIdPatchBodyAnyof0
    | models.ReposOwnerRepoCheckRunsCheckRunIdPatchBodyAnyof1,
    model=models.CheckRun,
)
def update_check_run(request: Request) -> Reply:
    _must_be_app(request)
    check = request.repository.table(CheckRun).get(int(request.places["id"]))
    if check is None:
        raise not_found()
    if check.app is not request.account:
        raise Refusal(403, "Invalid app_id - check run can only be modified by the GitHub App that created it.")
    _change(request, check)
    return Reply(_shown(request, check))


@ROUTES.add(
    "GET /repos/{owner}/{repo}/commits/{ref}/check-runs",
    needs="checks: read",
    model=models.ReposOwnerRepoCommitsRefCheckRunsGetResponse200,
    query=("check_name", "status", "filter", "app_id"),
    paged="check_runs",
)
def list_check_runs(request: Request) -> Reply:
    """By default, of each app and name the latest only."""
    commit = resolved(request.repository, request.places["ref"])
    if commit is None:
        raise Refusal(422, f"No commit found for SHA: {request.places['ref']}")
    name, status = request.query.get("check_name"), request.query.get("status")
    found = [one for one in request.repository.table(CheckRun).values() if one.commit == commit]
    if request.query.get("filter", "latest") == "latest":
        found = list({(one.app.id, one.name): one for one in found}.values())
    found = [one for one in found if name in (None, one.name) and status in (None, one.status)]
    return Reply([_shown(request, one) for one in reversed(found)])


def _must_be_app(request: Request) -> None:
    if request.token is None or request.token.kind != "installation":
        raise Refusal(403, "You must authenticate via a GitHub App.")


def _change(request: Request, check: CheckRun) -> None:
    """Writes what the body says, if all of it is valid."""
    new, output = request.body, request.body.get("output")
    conclusion = new.get("conclusion", check.conclusion)
    status = new.get("status", "completed" if new.get("conclusion") else check.status)
    if status == "completed" and conclusion is None:
        raise invalid("CheckRun", "conclusion", "missing_field")
    for part in ("summary", "text"):
        too_long("CheckRun", part, (output or {}).get(part), LONGEST_TEXT)
    check.name, check.external_id = new.get("name", check.name), new.get("external_id", check.external_id)
    check.details_url = new.get("details_url", check.details_url)
    check.status, check.conclusion = status, conclusion if status == "completed" else None
    check.completed_at = request.world.clock.now() if status == "completed" else None
    if output is not None:
        check.output = check.output | output


def _shown(request: Request, check: CheckRun) -> dict[str, Any]:
    slug, created = check.app.login.removesuffix("[bot]"), as_time(request.repository.created_at)
    url, page = f"{request.url}/check-runs/{check.id}", f"https://github.com/{request.repository.full_name}"
    return {
        "id": check.id,
        "node_id": node_id("CheckRun", check.id),
        "head_sha": check.commit,
        "external_id": check.external_id,
        "url": url,
        "html_url": f"{page}/runs/{check.id}",
        "details_url": check.details_url or f"{page}/runs/{check.id}",
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": as_time(check.started_at),
        "completed_at": as_time(check.completed_at),
        "output": {
            "title": check.output.get("title"),
            "summary": check.output.get("summary"),
            "text": check.output.get("text"),
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "name": check.name,
        "check_suite": {"id": check.app.id},
        "app": {
            "id": check.app.id,
            "slug": slug,
            "node_id": node_id("App", check.app.id),
            "owner": shown(request, request.repository.owner),
            "name": slug,
            "description": None,
            "external_url": f"https://{slug}.example.com",
            "html_url": f"https://github.com/apps/{slug}",
            "created_at": created,
            "updated_at": created,
            "permissions": {"checks": "write"},
            "events": [],
        },
        "pull_requests": [],
    }
