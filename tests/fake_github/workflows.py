"""Workflows: started by a dispatch, looked at, cancelled. What a run does is the test's to say."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from githubkit_schemas.latest import models

from fake_github.refusals import Refusal, must_administrate, not_found
from fake_github.repository import minimal
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import Account, Repository, World, as_time, node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/actions"


@dataclass
class Workflow:
    """`inputs`: those that a dispatch may have, and whether each must be given; None where it cannot be dispatched."""

    id: int
    file: str
    inputs: dict[str, bool] | None = None
    run_name: str = ""  # with the inputs as {name}
    is_disabled: bool = False


@dataclass
class Step:
    name: str
    status: str = "queued"
    conclusion: str | None = None


@dataclass
class Job:
    id: int
    name: str
    status: str = "queued"
    conclusion: str | None = None
    steps: list[Step] = field(default_factory=list)


@dataclass
class Run:
    id: int
    number: int
    workflow: Workflow
    actor: Account
    commit: str
    created_at: datetime
    event: str = "issue_comment"
    status: str = "queued"
    conclusion: str | None = None
    title: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)


def add_workflow(
    world: World, repository: Repository, file: str, inputs: dict[str, bool] | None = None, run_name: str = ""
) -> Workflow:
    workflow = Workflow(world.new_id(), file, inputs, run_name)
    repository.table(Workflow)[workflow.id] = workflow
    return workflow


def add_run(world: World, repository: Repository, workflow: Workflow, actor: Account, *jobs: str) -> Run:
    """One that waits."""
    commit = repository.branches[repository.default_branch]
    runs = repository.table(Run)
    run = Run(world.new_id(), len(runs) + 1, workflow, actor, commit, world.clock.now(), title=workflow.file)
    run.jobs = [Job(world.new_id(), name) for name in jobs]
    runs[run.id] = run
    return run


@ROUTES.add(
    f"POST {PATH}/workflows/{{file}}/dispatches",
    needs="actions: write",
    body=models.ReposOwnerRepoActionsWorkflowsWorkflowIdDispatchesPostBody,
    model=None,
)
def dispatch(request: Request) -> Reply:
    if not request.has_role("write"):
        raise must_administrate()
    workflow, ref, inputs = _workflow(request), request.body["ref"], request.body.get("inputs") or {}
    if request.repository.branches.get(ref.removeprefix("refs/heads/")) is None:
        raise Refusal(422, f"No ref found for: {ref}")
    if workflow.inputs is None:
        raise Refusal(422, "Workflow does not have 'workflow_dispatch' trigger")
    if workflow.is_disabled:
        raise Refusal(422, "Cannot trigger a 'workflow_dispatch' on a disabled workflow")
    if unexpected := [name for name in inputs if name not in workflow.inputs]:
        raise Refusal(422, f"Unexpected inputs provided: {unexpected}")
    if missing := [name for name, is_required in workflow.inputs.items() if is_required and not inputs.get(name)]:
        raise Refusal(422, f"Required input '{missing[0]}' not provided")
    run = add_run(request.world, request.repository, workflow, request.account)
    run.event, run.inputs = "workflow_dispatch", inputs
    run.title = workflow.run_name.format(**dict.fromkeys(workflow.inputs, "") | inputs) or workflow.file
    return Reply(status=204)


@ROUTES.add(
    f"GET {PATH}/workflows/{{file}}/runs",
    needs="actions: read",
    model=models.ReposOwnerRepoActionsWorkflowsWorkflowIdRunsGetResponse200,
    query=("event", "actor", "status", "created"),
    paged="workflow_runs",
)
def list_runs(request: Request) -> Reply:
    """The newest first. `created` is known in the form >=TIME only."""
    workflow, query = _workflow(request), request.query
    since = query.get("created", "").removeprefix(">=")
    found = [
        run
        for run in request.repository.table(Run).values()
        if run.workflow is workflow
        and query.get("event") in (None, run.event)
        and query.get("status") in (None, run.status, run.conclusion)
        and query.get("actor", "").casefold() in ("", run.actor.login.casefold())
        and (not since or run.created_at >= datetime.fromisoformat(since))
    ]
    return Reply([_shown(request, run) for run in reversed(found)])


@ROUTES.add(f"GET {PATH}/runs/{{id}}", needs="actions: read", model=models.WorkflowRun)
def get_run(request: Request) -> Reply:
    return Reply(_shown(request, _run(request)))


@ROUTES.add(
    f"GET {PATH}/runs/{{id}}/jobs",
    needs="actions: read",
    model=models.ReposOwnerRepoActionsRunsRunIdJobsGetResponse200,
    query=("filter",),
    paged="jobs",
)
def list_jobs(request: Request) -> Reply:
    run = _run(request)
    return Reply([_shown_job(request, run, job) for job in run.jobs])


@ROUTES.add(f"POST {PATH}/runs/{{id}}/cancel", needs="actions: write", model=models.EmptyObject)
def cancel_run(request: Request) -> Reply:
    if not request.has_role("write"):
        raise must_administrate()
    run = _run(request)
    if run.status == "completed":
        raise Refusal(409, "Cannot cancel a workflow run that is completed.")
    run.status, run.conclusion = "completed", "cancelled"
    for job in run.jobs:
        if job.status != "completed":
            job.status, job.conclusion = "completed", "cancelled"
    return Reply({}, 202)


def _workflow(request: Request) -> Workflow:
    wanted = request.places["file"]
    for workflow in request.repository.table(Workflow).values():
        if wanted in (workflow.file, str(workflow.id)):
            return workflow
    raise not_found()


def _run(request: Request) -> Run:
    run = request.repository.table(Run).get(int(request.places["id"]))
    if run is None:
        raise not_found()
    return run


def _shown(request: Request, run: Run) -> dict[str, Any]:
    url, created = f"{request.url}/actions/runs/{run.id}", as_time(run.created_at)
    actor, here = shown(request, run.actor), minimal(request, request.repository)
    return {
        "id": run.id,
        "name": run.workflow.file.removesuffix(".yml"),
        "node_id": node_id("WorkflowRun", run.id),
        "check_suite_id": run.id,
        "check_suite_node_id": node_id("CheckSuite", run.id),
        "head_branch": request.repository.default_branch,
        "head_sha": run.commit,
        "path": f".github/workflows/{run.workflow.file}",
        "run_number": run.number,
        "run_attempt": 1,
        "event": run.event,
        "display_title": run.title,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": run.workflow.id,
        "url": url,
        "html_url": f"https://github.com/{request.repository.full_name}/actions/runs/{run.id}",
        "pull_requests": [],
        "created_at": created,
        "updated_at": created,
        "run_started_at": created,
        "actor": actor,
        "triggering_actor": actor,
        **{f"{part}_url": f"{url}/{part}" for part in ("jobs", "logs", "artifacts", "cancel", "rerun")},
        "previous_attempt_url": None,
        "check_suite_url": f"{request.url}/check-suites/{run.id}",
        "workflow_url": f"{request.url}/actions/workflows/{run.workflow.id}",
        "head_commit": None,
        "repository": here,
        "head_repository": here,
    }


def _shown_job(request: Request, run: Run, job: Job) -> dict[str, Any]:
    began = as_time(run.created_at)
    return {
        "id": job.id,
        "run_id": run.id,
        "run_url": f"{request.url}/actions/runs/{run.id}",
        "run_attempt": 1,
        "node_id": node_id("Job", job.id),
        "head_sha": run.commit,
        "head_branch": request.repository.default_branch,
        "url": f"{request.url}/actions/jobs/{job.id}",
        "html_url": f"https://github.com/{request.repository.full_name}/actions/runs/{run.id}/job/{job.id}",
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": began,
        "started_at": began,
        "completed_at": began if job.status == "completed" else None,
        "name": job.name,
        "workflow_name": run.workflow.file.removesuffix(".yml"),
        "steps": [
            {
                "name": step.name,
                "status": step.status,
                "conclusion": step.conclusion,
                "number": number,
                "started_at": began if step.status != "queued" else None,
                "completed_at": began if step.status == "completed" else None,
            }
            for number, step in enumerate(job.steps, 1)
        ],
        "check_run_url": f"{request.url}/check-runs/{job.id}",
        "labels": ["ubuntu-latest"],
        "runner_id": None,
        "runner_name": None,
        "runner_group_id": None,
        "runner_group_name": None,
    }
