"""The status comment of a `/benchmark`: how far it is, and which run of the workflow is at it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bot.benchmark_request import BenchmarkRequest
from bot.github.hidden_marks import mark, marks_in
from bot.github.looking import BotComment
from bot.pages.request_status import queued
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.quantity import counted

Stage = Literal["queued", "building", "measuring", "done", "failed", "cancelled"]
OVER: tuple[Stage, ...] = ("done", "failed", "cancelled")
MOST_SHOWN = 60  # tests in one folded list
_MARK = "request"
_VALUE = re.compile(r"([0-9a-f]{16}) ([0-9]{1,19}) (\S{1,80}) ([0-9a-f]{40}) ([a-z]{1,20})")


@dataclass(frozen=True)
class RequestStatus:
    """What the status comment of a request hides: who asked for which commit, and the run of the workflow (0: none)."""

    key: str
    run: int
    asked_by: str
    head: str
    stage: Stage

    @property
    def is_over(self) -> bool:
        return self.stage in OVER

    @property
    def hidden(self) -> str:
        return mark(_MARK, f"{self.key} {self.run} {self.asked_by} {self.head} {self.stage}")

    def now(self, stage: Stage) -> "RequestStatus":
        return replace(self, stage=stage)


def status_of(request: BenchmarkRequest, run: int | None, stage: Stage) -> RequestStatus:
    return RequestStatus(request.key, run or 0, request.asked_by, request.head, stage)


def status_in(body: str | None) -> RequestStatus | None:
    """What the comment hides, if it is the status of a request."""
    found = _VALUE.fullmatch(marks_in(body).get(_MARK, ""))
    if found is None or found[5] not in get_args(Stage):
        return None
    stage: Stage = found[5]  # type: ignore[assignment]
    return RequestStatus(found[1], int(found[2]), found[3], found[4], stage)


def statuses_in(comments: Iterable[BotComment]) -> list[RequestStatus]:
    """Of all requests below a pull request, the newest first."""
    newest_first = sorted(comments, key=lambda one: (one.created_at, one.id), reverse=True)
    return [status for one in newest_first if (status := status_in(one.body)) is not None]


def queued_body(request: BenchmarkRequest, run: int | None, run_url: str, left_out: Sequence[tuple[str, str]]) -> str:
    """The status comment as it is made. `left_out`: tests that were asked for and cannot be measured, and why."""
    lines = [
        status_of(request, run, "queued").hidden,
        queued(request, run_url),
        f"After {request.budget_minutes:g} minutes no further pair is begun. {_PROFILED if request.profile else ''}"
        "`/benchmark status` says how far it is, `/benchmark cancel` ends it.",
        "",
        *folded("The tests", [inline_code(test) for test in request.tests]),
    ]
    if left_out:
        told = [f"{inline_code(test)}: {inline_code(why)}" for test, why in left_out]
        lines += folded(f"{counted(len(told), 'test')} cannot be measured", told)
    return "\n".join(lines).rstrip() + "\n"


_PROFILED = "Both builds are profiled too. "


def folded(title: str, lines: Sequence[str]) -> list[str]:
    shown = [f"- {line}" for line in lines[:MOST_SHOWN]]
    if len(lines) > MOST_SHOWN:
        shown.append(f"- and {len(lines) - MOST_SHOWN} more")
    return ["<details>", f"<summary>{title}</summary>", "", *shown, "", "</details>", ""]
