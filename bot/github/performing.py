"""Does on GitHub what a command says is to be done, so that it may be done again: a job that is started a second time,
or a write whose answer was lost, says nothing twice.

What the bot has written is found by the mark at its beginning, among what it has written itself.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from github import GithubException

from bot.errors import BotError
from bot.github.actions import Action, CancelRun, Check, Dispatch, Measure, React, Reply, Status
from bot.github.client import Client, is_limit, is_locked
from bot.github.hidden_marks import mark, marks_in

CHECK_NAME = "torchbench"
_LISTED_WITHIN_S = 10.0  # a run of a workflow, after it was asked for
_GONE = (404, 410)
_REFUSED = (301, 307, 308, 403, 404, 409, 410, 422)

_NAMES = {"react": "reaction", "status": "status comment"}

Effect = Literal["made", "there already", "changed", "unchanged", "done", "over already", "refused", "left"]


@dataclass(frozen=True)
class Done:
    """What came of an action. `left` is for another job."""

    action: Action
    effect: Effect
    where: str = ""
    why: str = ""  # it was refused


def perform(client: Client, actions: Iterable[Action]) -> list[Done]:
    """All of them in their order. What is only an extra (a reaction, a check run), and what people have locked or
    deleted, may be refused. Raises BotError where GitHub does not answer, and, after the others, for what else it
    refuses."""
    doer, done, failed = _Doer(client), [], []
    for action in actions:
        try:
            with client.errors():
                done.append(doer.do(action))
        except _Failed as failure:
            failed.append(str(failure))
    if failed:
        raise BotError("; ".join(dict.fromkeys(failed)))
    return done


def refusals(done: Sequence[Done]) -> list[str]:
    """What was refused, and why; each reason once."""
    told = {
        one.why: f"no {_NAMES.get(one.action.kind, one.action.kind)}: {one.why}"
        for one in reversed(done)
        if one.effect == "refused"
    }
    return list(reversed(told.values()))


class _Failed(Exception):
    """What had to be done was refused; the actions after it are still done."""


@dataclass(frozen=True)
class _Written:
    """A comment, or a check run."""

    id: int
    url: str
    content: Any


class _Doer:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._comments: dict[int, list[_Written]] = {}  # of ours, by the number of where they are
        self._do: dict[type, Callable[[Any], Done]] = {
            Reply: self._reply,
            Status: self._status,
            React: self._react,
            Check: self._check,
            CancelRun: self._cancel,
            Dispatch: self._dispatch,
            Measure: lambda action: Done(action, "left"),
        }

    def do(self, action: Action) -> Done:
        self.client.connect()
        try:
            return self._do[type(action)](action)
        except GithubException as error:
            if error.status not in _REFUSED or is_limit(error):
                raise
            why = _not_there(action) if error.status in _GONE else self.client.told(error)
            if _may_be_refused(action, error):
                return Done(action, "refused", why=why)
            raise _Failed(f"GitHub, {self.client.repository}: {why}") from error

    def _reply(self, action: Reply) -> Done:
        found = self._find(action)
        if found is not None:
            return Done(action, "there already", found.url)
        return Done(action, "made", self._post(action).url)

    def _status(self, action: Status) -> Done:
        found = self._find(action)
        if found is None:
            return Done(action, "made", self._post(action).url)
        if _as_stored(found.content) == _as_stored(_marked(action)):
            return Done(action, "unchanged", found.url)
        try:
            self.client.repeat(lambda: self._change(found, action))
        except GithubException as error:
            if error.status not in _GONE:
                raise
            self._comments.pop(action.number)  # somebody has just deleted it
            return Done(action, "made", self._post(action).url)
        return Done(action, "changed", found.url)

    def _find(self, action: Reply | Status) -> _Written | None:
        """Of two, which only a lost race can make, the older."""
        number = action.number
        if number not in self._comments:
            try:
                listed = self.client.comments(number)
            except GithubException as error:
                if error.status in _GONE:
                    raise _NotThere(error) from error
                raise
            self._comments[number] = [_Written(one["id"], one["html_url"], one["body"]) for one in listed]
        return next(
            (one for one in self._comments[number] if marks_in(one.content).get(action.kind) == action.key), None
        )

    def _post(self, action: Reply | Status) -> _Written:
        def create() -> tuple[_Written, str]:
            _, made = self.client.request("POST", f"issues/{action.number}/comments", {"body": _marked(action)})
            return _Written(made["id"], made["html_url"], made["body"]), made["user"]["login"]

        def find_again() -> tuple[_Written, str] | None:
            self._comments.pop(action.number, None)
            found = self._find(action)
            return None if found is None else (found, self.client.login)

        written, author = self.client.create_once(create, find_again)
        if author.casefold() != self.client.login.casefold():
            # The next start would not find it, and say it again.
            raise BotError(
                f"GitHub, {self.client.repository}: {written.url} was written by {author}, not by {self.client.login}; "
                f"set `github_login: {author}` in the configuration"
            )
        self._comments.setdefault(action.number, []).append(written)
        return written

    def _change(self, found: _Written, action: Status) -> None:
        body = {"body": _marked(action)}
        _, changed = self.client.request("PATCH", f"issues/comments/{found.id}", body)
        ours = self._comments[action.number]
        ours[ours.index(found)] = _Written(found.id, found.url, changed["body"])

    def _react(self, action: React) -> Done:
        """GitHub itself makes a reaction once."""
        path = f"issues/comments/{action.comment}/reactions"
        status, _ = self.client.repeat(lambda: self.client.request("POST", path, {"content": action.content}))
        return Done(action, "there already" if status == 200 else "made")

    def _check(self, action: Check) -> Done:
        shown: dict[str, Any] = {
            "status": action.state,
            "output": {"title": action.title, "summary": action.summary},
        }
        if action.conclusion is not None:
            shown["conclusion"] = action.conclusion
        found = self.client.repeat(lambda: self._find_check(action))
        if found is None:
            new = {"name": CHECK_NAME, "head_sha": action.commit, "external_id": action.key, **shown}
            made = self.client.create_once(
                lambda: _written_check(self.client.request("POST", "check-runs", new)[1]),
                lambda: self.client.repeat(lambda: self._find_check(action)),
            )
            return Done(action, "made", made.url)
        if found.content == _content_of_check(action):
            return Done(action, "unchanged", found.url)
        self.client.repeat(lambda: self.client.request("PATCH", f"check-runs/{found.id}", shown))
        return Done(action, "changed", found.url)

    def _find_check(self, action: Check) -> _Written | None:
        """The oldest of ours that has the key; another App may have given its own the same."""
        path = f"commits/{action.commit}/check-runs?check_name={CHECK_NAME}&filter=all&per_page=100"
        found = [
            one
            for one in self.client.request("GET", path)[1]["check_runs"]
            if one["external_id"] == action.key
            and f"{(one['app'] or {}).get('slug')}[bot]".casefold() == self.client.login.casefold()
        ]
        return _written_check(min(found, key=lambda one: one["id"])) if found else None

    def _cancel(self, action: CancelRun) -> Done:
        try:
            self.client.repeat(lambda: self.client.request("POST", f"actions/runs/{action.run}/cancel"))
        except GithubException as error:
            if error.status != 409:
                raise
            return Done(action, "over already")
        return Done(action, "done")

    def _dispatch(self, action: Dispatch) -> Done:
        path, before = f"actions/workflows/{action.workflow}", self.client.repeat(lambda: self._runs(action))
        if action.key is not None and (there := next((one for one in before if action.key in one.content), None)):
            return Done(action, "there already", there.url)
        body = {"ref": self.client.repo.default_branch, "inputs": action.inputs}

        def find_again() -> Any | None:
            for pause in (0.0, _LISTED_WITHIN_S):
                time.sleep(pause)
                known = {one.id for one in before}
                if new := [one for one in self.client.repeat(lambda: self._runs(action)) if one.id not in known]:
                    return new[0]
            return None

        made = self.client.create_once(lambda: self.client.request("POST", f"{path}/dispatches", body), find_again)
        return Done(action, "done", made.url if isinstance(made, _Written) else "")

    def _runs(self, action: Dispatch) -> list[_Written]:
        """The newest runs of the workflow that we have asked for."""
        path = f"actions/workflows/{action.workflow}/runs?event=workflow_dispatch&per_page=100"
        return [
            _Written(run["id"], run["html_url"], run["display_title"])
            for run in self.client.request("GET", path)[1]["workflow_runs"]
            if (run["actor"] or {}).get("login", "").casefold() == self.client.login.casefold()
        ]


class _NotThere(GithubException):
    """The issue or pull request itself."""

    def __init__(self, error: GithubException) -> None:
        super().__init__(error.status, error.data, error.headers)


def _may_be_refused(action: Action, error: GithubException) -> bool:
    if isinstance(action, React | Check) or isinstance(error, _NotThere):
        return True
    return isinstance(action, Reply | Status) and (is_locked(error) or error.status in (301, 307, 308, 410))


def _not_there(action: Action) -> str:
    """What GitHub does not find, in words; it says the same of what is not there and of what the token may not see."""
    if isinstance(action, React):
        what = "the comment is not there any more"
    elif isinstance(action, Check):
        what = f"there is no commit {action.commit[:12]}"
    elif isinstance(action, CancelRun):
        what = f"there is no run {action.run} of a workflow"
    elif isinstance(action, Dispatch):
        what = f"there is no workflow {action.workflow} on the default branch"
    else:
        what = f"there is no issue or pull request #{getattr(action, 'number', '')} any more"
    return f"{what}, or the token may not see it"


def _marked(action: Reply | Status) -> str:
    return f"{mark(action.kind, action.key)}\n{action.body}"


def _written_check(told: Any) -> _Written:
    output = told["output"]
    content = (told["status"], told["conclusion"], output["title"], _as_stored(output["summary"]))
    return _Written(told["id"], told["html_url"] or "", content)


def _content_of_check(action: Check) -> Any:
    return (action.state, action.conclusion, action.title, _as_stored(action.summary))


def _as_stored(body: str | None) -> str:
    """GitHub may give a text back with other line ends and without the last."""
    return (body or "").replace("\r\n", "\n").rstrip()
