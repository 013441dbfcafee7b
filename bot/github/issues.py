"""Issues on GitHub. An issue is found again by the key hidden in it, only among those that the bot itself wrote, and by
listing its label: search lags behind by minutes, and anybody may write a key into an issue of their own. Before one is
created, the bot's issues without the label are looked through as well: a person may have taken it off."""

import dataclasses
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from github import GithubException

from bot.errors import BotError
from bot.github.client import Client, NotGitHub, is_locked
from bot.github.issue import (
    BOT_LABEL,
    LABEL_COLOURS,
    STATE_LABELS,
    Effect,
    Filed,
    Issue,
    Recorded,
    as_comment,
    as_filed,
    comments_in,
    culprit_key,
    key_in,
    occasion_in,
    recorded_in,
    revision_in,
    told_in,
    without_revision,
)

REMEMBERED = timedelta(days=90)  # closed issues that were not touched for so long are not looked through
LONGEST_BODY = 65_000  # characters; GitHub takes 65,536
LONGEST_TITLE = 250
_CUT = "\n\n*The rest is too long for an issue; it is in the run's `nightly.json`.*\n"


class GitHubIssues:
    """The issues of one repository, as a Tracker."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, Any] | None = None  # key -> PyGithub's Issue
        self._keyless: dict[str, Any] = {}  # title -> one of the bot's whose key a person has taken out
        self._others: dict[str, Any] = {}  # key -> an issue that has it and is not the bot's
        self._labels: set[str] = set()

    def put(self, issue: Issue) -> Filed | None:
        """See Tracker. One that a person has closed stays closed while its occasion is the same: they have decided, and
        the alert goes on without."""
        with self.client.errors():
            self.client.connect()
            found = self._find(issue)
            if found is None:
                return self._create(issue) if issue.is_open else None
            return self._update(found, issue)

    def recorded(self) -> tuple[Recorded, ...]:
        """See Tracker."""
        with self.client.errors():
            self.client.connect()
            known = self._listed()
            found = [recorded_in(one.body, one.html_url) for one in known.values()]
            return tuple(one for one in found if one is not None)

    def _create(self, issue: Issue) -> Filed:
        issue = dataclasses.replace(issue, culprit=None)  # it is told with the address of this one, which is not known
        self._make_labels(issue.labels)
        if (bare := self._find_without_label(issue.key)) is not None:
            self._change(bare, {"labels": [*(label.name for label in bare.labels), BOT_LABEL]})
            self._require_label(bare)
            return self._update(bare, issue)
        repo = self.client.repo

        def find_again() -> Any | None:
            self._known = None
            return self._find(issue) or self._find_without_label(issue.key)

        created = self.client.create_once(
            lambda: repo.create_issue(title=_title(issue), body=_body(issue), labels=list(issue.labels)), find_again
        )
        _check(created, {"title": _title(issue)})
        if not self.client.is_us(created.user):
            # The next start would not find it, and every night would file one more.
            raise self._error(
                f"{created.html_url} was written by {_login(created.user)}, not by {self.client.login}; "
                f"set `github_login: {_login(created.user)}` in the configuration"
            )
        self._require_label(created)
        if self._known is not None:
            self._known[issue.key] = created
        return Filed(issue.key, issue.title, created.html_url, "created")

    def _require_label(self, found: Any) -> None:
        """GitHub drops labels, without a word, where the account may not set any."""
        if BOT_LABEL not in {label.name.casefold() for label in found.labels}:
            raise self._error(
                f"{found.html_url} has not got the label {BOT_LABEL}, by which it is found again: {self.client.login} "
                "may not set labels there; give it the role triage, or a token with issues: write"
            )

    def _change(self, found: Any, changes: dict[str, Any]) -> None:
        self.client.repeat(lambda: found.edit(**changes))
        _check(found, {name: changes[name] for name in ("title", "state", "body") if name in changes})

    def _error(self, text: str) -> BotError:
        return BotError(f"GitHub, {self.client.repository}: {text}")

    def _update(self, found: Any, issue: Issue) -> Filed:
        if revision_in(found.body) > issue.revision:
            return Filed(issue.key, issue.title, found.html_url, "left: it is newer")
        changes: dict[str, Any] = {}
        if found.title != _title(issue):
            changes["title"] = _title(issue)
        if without_revision(_as_stored(found.body)) != without_revision(_as_stored(_body(issue))):
            changes["body"] = _body(issue)
        effect: Effect = "updated"
        if issue.is_open and found.state == "closed":
            if occasion_in(found.body) not in (None, issue.occasion) or self._closed_by_us(found):
                changes["state"] = "open"
            else:
                effect = "left closed"
        elif not issue.is_open and found.state == "open":
            if changes:
                changes |= {"state": "closed", "state_reason": "not_planned" if issue.not_planned else "completed"}
            else:
                effect = "left open"  # we have closed it with these very words, and a person has opened it again
        if "open" in (found.state, changes.get("state")):  # else a person has closed it, who need not be told
            self._comment(found, issue)
            self._tell_culprit(found, issue)
        if (labels := _labels(found, issue)) is not None:
            self._make_labels(issue.labels)
            changes["labels"] = labels
        if changes:
            self._change(found, changes)
        elif effect == "updated":
            effect = "unchanged"
        return Filed(issue.key, issue.title, found.html_url, effect)

    def _comment(self, found: Any, issue: Issue) -> None:
        """Post what was not told yet. That it was is in the body, which is written last; where it is not there, the
        comments are looked through."""
        told = told_in(found.body)
        for key, body in [(key, body) for key, body in issue.comments if key not in told]:
            self._post_once(key, body, found.create_comment, found.get_comments)

    def _tell_culprit(self, found: Any, issue: Issue) -> None:
        """Post on the pull request of the culprit, if it is one of this repository, what it has done."""
        if issue.culprit is None or culprit_key(issue) in told_in(found.body):
            return
        commit, body = issue.culprit
        pull = self._merged_pull(commit)
        if pull is not None:
            told = f"{body}\n\nIts issue: {found.html_url}"
            self._post_once(culprit_key(issue), told, pull.create_issue_comment, pull.get_issue_comments)

    def _merged_pull(self, commit: str) -> Any | None:
        """The pull request that brought a commit; None of one that came otherwise, or into another repository."""

        def look() -> Any | None:
            try:
                pulls = self.client.repo.get_commit(commit).get_pulls()
                return next((one for one in pulls if one.merged_at is not None), None)
            except GithubException as error:
                if error.status in (404, 422):
                    return None
                raise

        return self.client.repeat(look)

    def _post_once(
        self, key: str, body: str, create: Callable[[str], Any], listed: Callable[[], Iterable[Any]]
    ) -> None:
        def posted() -> bool | None:
            ours = (one for one in listed() if self.client.is_us(one.user))
            return True if any(key in comments_in(one.body)[:1] for one in ours) else None

        if self.client.repeat(posted) is None:
            try:
                self.client.create_once(lambda: create(as_comment(key, body)), lambda: self.client.repeat(posted))
            except GithubException as error:
                if not is_locked(error):
                    raise  # what is locked is left unsaid: the issue itself tells it

    def _closed_by_us(self, found: Any) -> bool:
        """A listing does not say who closed an issue, the issue itself does."""
        return self.client.is_us(self.client.repeat(lambda: self.client.repo.get_issue(found.number).closed_by))

    def _find(self, issue: Issue) -> Any | None:
        known = self._listed()
        found = known.get(issue.key) or self._keyless.pop(_title(issue), None)
        if found is not None:
            known[issue.key] = found
        if found is None and issue.key in self._others and not self.client.login_is_certain:
            url, author = self._others[issue.key].html_url, _login(self._others[issue.key].user)
            raise self._error(
                f"{url} has the key of this issue and is by {author}, and the token may not tell whose it is; "
                f"if it writes as {author}, set `github_login: {author}` in the configuration, "
                "otherwise take the label off that issue"
            )
        return found

    def _listed(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self.client.repeat(self._list)
        return self._known

    def _find_without_label(self, key: str) -> Any | None:
        def look() -> Any | None:
            since = datetime.now(UTC) - REMEMBERED
            listed = self.client.repo.get_issues(state="all", creator=self.client.login, since=since)
            return next((one for one in listed if key_in(one.body) == key and self._is_ours(one)), None)

        return self.client.repeat(look)

    def _is_ours(self, one: Any) -> bool:
        return self.client.is_us(one.user) and "/pull/" not in one.html_url  # a listing has pull requests in it

    def _list(self) -> dict[str, Any]:
        """The bot's issues by key. Of two with one key, which only a lost race can make, the older counts."""
        repo = self.client.repo
        closed_since = datetime.now(UTC) - REMEMBERED
        listed = [
            *repo.get_issues(state="open", labels=[BOT_LABEL]),
            *repo.get_issues(state="closed", labels=[BOT_LABEL], since=closed_since),
        ]
        found: dict[str, Any] = {}
        for one in sorted(listed, key=lambda one: one.number):
            key = key_in(one.body)
            if key is None and self._is_ours(one):
                self._keyless.setdefault(one.title, one)
            elif key is not None:
                (found if self._is_ours(one) else self._others).setdefault(key, one)
        return found

    def _make_labels(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name not in self._labels and self._label(name) is None:
                self._make_label(name)
            self._labels.add(name)

    def _make_label(self, name: str) -> None:
        repo = self.client.repo
        try:
            self.client.create_once(
                lambda: repo.create_label(name, LABEL_COLOURS.get(name, "ededed")), lambda: self._label(name)
            )
        except GithubException as error:
            if error.status == 404:
                raise self._error(
                    f"there is no label {name!r}, and {self.client.login} may not make it ({error.status}); make it by "
                    "hand, or give the token issues: write"
                ) from error
            if error.status != 422 or self._label(name) is None:  # 422 also says that somebody else was faster
                raise

    def _label(self, name: str) -> Any | None:
        def get() -> Any | None:
            try:
                return self.client.repo.get_label(name)
            except GithubException as error:
                if error.status == 404:
                    return None
                raise

        return self.client.repeat(get)


def _labels(found: Any, issue: Issue) -> list[str] | None:
    """The labels of an issue with the state of its alert in place of another; None if they are so already. What people
    add stays, and what they take off stays off."""
    there = [label.name for label in found.labels]
    state = [name for name in issue.labels if name in STATE_LABELS]
    wanted = [name for name in there if name.casefold() not in STATE_LABELS or name in state]
    wanted += [name for name in state if name not in wanted]
    return wanted if state and set(wanted) != set(there) else None


def _check(found: Any, expected: dict[str, str]) -> None:
    """Raises NotGitHub unless the answer of a write shows what was written."""
    shown = {name: _as_stored(getattr(found, name)) for name in expected}
    if not isinstance(found.html_url, str) or shown != {name: _as_stored(value) for name, value in expected.items()}:
        raise NotGitHub


def _login(user: Any | None) -> str:
    return "a deleted account" if user is None else user.login


def _title(issue: Issue) -> str:
    return issue.title if len(issue.title) <= LONGEST_TITLE else f"{issue.title[: LONGEST_TITLE - 1]}…"


def _body(issue: Issue) -> str:
    if len(whole := as_filed(issue)) <= LONGEST_BODY:
        return whole
    room = LONGEST_BODY - (len(whole) - len(issue.body.rstrip())) - len(_CUT)
    return as_filed(dataclasses.replace(issue, body=issue.body.rstrip()[:room] + _CUT))


def _as_stored(body: str | None) -> str:
    """GitHub may give a body back with other line ends and without the last."""
    return (body or "").replace("\r\n", "\n").rstrip()
