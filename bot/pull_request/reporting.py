"""What is done on GitHub when a request has been measured, or could not be: its status, its check run, its verdict."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.benchmark_request import BenchmarkRequest
from bot.github.actions import Action, Check, Reply, Status
from bot.github.request_status import Stage, status_of
from bot.pages import request_status
from bot.pages.verdict import SideFacts, VerdictFacts, conclusion_of, render_verdict, verdict_line
from bot.pull_request.answer import Answer

JobResult = Literal["success", "failure", "cancelled", "skipped"]


@dataclass(frozen=True)
class Around:
    """What is known of the request beside its results, all from the trusted side."""

    job: JobResult  # how the measuring job ended
    run: int  # of the workflow; 0 if it is not known
    server: str
    config: str  # path of the configuration
    run_url: str = ""
    head_now: str = ""  # of the pull request; empty if it is not known
    check_run: bool = True
    most_pairs: int | None = None  # that may be asked for; None: not known


def report_actions(request: BenchmarkRequest, answer: Answer, around: Around) -> Sequence[Action]:
    """Status, check run, and the verdict as a new comment: an edit notifies nobody. What was cancelled has none."""
    nothing = answer.comparison is None and not answer.refused
    if around.job in ("cancelled", "skipped") and nothing:
        status = request_status.cancelled(request, around.run_url)
        return [
            status_action(request, around.run, "cancelled", status),
            *_check(request, around, "cancelled", "cancelled", status),
        ]
    facts = facts_of(request, answer, around)
    verdict, text = verdict_line(facts), render_verdict(facts)
    if facts.comparison is None:
        stage: Stage = "failed"
        body = request_status.failed(
            request, facts.why_not or _plain(verdict).removeprefix("Nothing measured: ").rstrip("."), around.run_url
        )
    else:
        stage, body = "done", request_status.done(request, verdict, around.run_url)
    return [
        status_action(request, around.run, stage, body),
        *_check(request, around, conclusion_of(facts), verdict, text),
        Reply(number=request.pull, key=_key_of_verdict(request, stage, around.job), body=text),
    ]


def facts_of(request: BenchmarkRequest, answer: Answer, around: Around) -> VerdictFacts:
    """What the comment tells."""
    sides = tuple(
        SideFacts(one.side, one.commit, one.state, one.reason, one.lines, one.seconds)
        for one in (answer.base, answer.head)
        if one is not None
    )
    return VerdictFacts(
        request=request,
        server=around.server,
        config=around.config,
        sides=sides,
        comparison=answer.comparison,
        header=answer.header,
        attribution=answer.attribution,
        why_not=_why_not(answer, around, sides),
        is_refused=bool(answer.refused),
        notes=answer.notes,
        head_now=around.head_now if around.head_now not in ("", request.head) else "",
        run_url=around.run_url,
        most_pairs=around.most_pairs,
    )


def _why_not(answer: Answer, around: Around, sides: Sequence[SideFacts]) -> str:
    if answer.refused:
        return answer.refused
    if answer.measured is not None and answer.measured.state == "not measured":
        if any(one.state != "built" for one in sides):
            return ""  # told with the build
        return answer.measured.reason
    ended = {"failure": "failed, or ran out of time", "cancelled": "was cancelled"}.get(around.job)
    if ended and answer.comparison is not None:
        part = "" if answer.measured is None else f" after part {answer.measured.part} of {answer.measured.parts}"
        return f"the measuring job {ended}{part}: what is told is of the pairs until then"
    if answer.comparison is None and not any(one.state not in ("", "built") for one in sides):
        return f"the measuring job {ended or 'ended'} and left no results; see its log"
    return ""


def status_action(request: BenchmarkRequest, run: int, stage: Stage, body: str) -> Status:
    """The status comment, with what `/benchmark status` and `/benchmark cancel` find it by."""
    return Status(number=request.pull, key=request.key, body=f"{status_of(request, run, stage).hidden}\n{body}")


def _check(request: BenchmarkRequest, around: Around, conclusion: str, title: str, summary: str) -> Sequence[Check]:
    if not around.check_run:
        return []
    plain = _plain(title)
    return [
        Check(
            commit=request.head,
            key=request.key,
            state="completed",
            conclusion=conclusion,
            title=plain if len(plain) <= 200 else f"{plain[:199]}…",
            summary=summary,
        )
    ]


def _plain(markdown: str) -> str:
    """A title is no Markdown, and what stands in a code span holds no other."""
    return markdown.replace("`", "")


def _key_of_verdict(request: BenchmarkRequest, stage: Stage, job: JobResult) -> str:
    """The verdict is posted once, however often the reporting job runs. What is told of a measuring job that failed
    does not stand in the way of the verdict that comes when it is run again."""
    return hashlib.sha256(f"verdict of {request.key}: {stage}, {job}".encode()).hexdigest()[:16]
