"""Issues on GitHub. An issue is found again by the key hidden in it, only among those that the bot itself wrote, and by
listing its label: search lags behind by minutes, and anybody may write a key into an issue of their own."""

from datetime import UTC, datetime, timedelta
from typing import Any

from github import GithubException

from bot.errors import BotError
from bot.github.client import Client
from bot.github.issue import BOT_LABEL, Effect, Filed, Issue, hidden_key, hidden_occasion, key_in, occasion_in

REMEMBERED = timedelta(days=90)  # closed issues that were not touched for so long are not looked through
LONGEST_BODY = 65_000  # characters; GitHub takes 65,536
LONGEST_TITLE = 250
_COLOURS = {
    BOT_LABEL: "5319e7",
    "performance regression": "d93f0b",
    "newly failing": "b60205",
    "nightly missing": "fbca04",
}
_CUT = "\n\n*The rest is too long for an issue; it is in the run's `nightly.json`.*\n"


class GitHubIssues:
    """The issues of one repository, as a Tracker."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, Any] | None = None  # key -> PyGithub's Issue
        self._others: dict[str, Any] = {}  # key -> an issue that has it and is not the bot's
        self._labels: set[str] = set()

    def put(self, issue: Issue) -> Filed | None:
        """See Tracker. One that a person has closed stays closed while its occasion is the same: they have decided, and
        the alert goes on without."""
        with self.client.errors():
            found = self._find(issue)
            if found is None:
                return self._create(issue) if issue.is_open else None
            return self._update(found, issue)

    def _create(self, issue: Issue) -> Filed:
        self._make_labels(issue.labels)
        repo = self.client.repo

        def find_again() -> Any | None:
            self._known = None
            return self._find(issue)

        created = self.client.create_once(
            lambda: repo.create_issue(title=_title(issue), body=_body(issue), labels=list(issue.labels)), find_again
        )
        if not self.client.is_us(created.user):
            # The next start would not find it, and every night would file one more.
            raise BotError(
                f"GitHub, {self.client.repository}: {created.html_url} was written by {_login(created.user)}, not by "
                f"{self.client.login}; set `github_login: {_login(created.user)}` in the configuration"
            )
        assert self._known is not None
        self._known[issue.key] = created
        return Filed(issue.key, issue.title, created.html_url, "created")

    def _update(self, found: Any, issue: Issue) -> Filed:
        changes: dict[str, Any] = {}
        if found.title != _title(issue):
            changes["title"] = _title(issue)
        if _as_stored(found.body) != _as_stored(_body(issue)):
            changes["body"] = _body(issue)
        effect: Effect = "updated"
        if issue.is_open and found.state == "closed":
            if occasion_in(found.body) != issue.occasion or self._closed_by_us(found):
                changes["state"] = "open"
            else:
                effect = "left closed"
        elif not issue.is_open and found.state == "open":
            changes |= {"state": "closed", "state_reason": "completed"}
        if changes:
            found.edit(**changes)
        elif effect == "updated":
            effect = "unchanged"
        return Filed(issue.key, issue.title, found.html_url, effect)

    def _closed_by_us(self, found: Any) -> bool:
        """A listing does not say who closed an issue, the issue itself does."""
        closer = self.client.repo.get_issue(found.number).closed_by
        return closer is None or self.client.is_us(closer)

    def _find(self, issue: Issue) -> Any | None:
        if self._known is None:
            self._known = self._list(issue.labels[0])
        found = self._known.get(issue.key)
        if found is None and issue.key in self._others and not self.client.login_is_certain:
            url, author = self._others[issue.key].html_url, _login(self._others[issue.key].user)
            raise BotError(
                f"GitHub, {self.client.repository}: {url} has the key of this issue and is by {author}, and the token "
                f"may not tell whose it is; if it writes as {author}, set `github_login: {author}` in the "
                "configuration, otherwise take the label off that issue"
            )
        return found

    def _list(self, label: str) -> dict[str, Any]:
        """The bot's issues by key. Of two with one key, which only a lost race can make, the older counts."""
        repo, _ = self.client.repo, self.client.login  # whose issues these are must be known before anything is written
        closed_since = datetime.now(UTC) - REMEMBERED
        listed = [
            *repo.get_issues(state="open", labels=[label]),
            *repo.get_issues(state="closed", labels=[label], since=closed_since),
        ]
        found: dict[str, Any] = {}
        for one in sorted(listed, key=lambda one: one.number):
            key = key_in(one.body)
            if key is not None and one.pull_request is None:
                (found if self.client.is_us(one.user) else self._others).setdefault(key, one)
        return found

    def _make_labels(self, names: tuple[str, ...]) -> None:
        repo = self.client.repo
        for name in names:
            if name in self._labels:
                continue
            if self._label(name) is None:
                self.client.create_once(
                    lambda name=name: _create_label(repo, name), lambda name=name: self._label(name)
                )
            self._labels.add(name)

    def _label(self, name: str) -> Any | None:
        try:
            return self.client.repo.get_label(name)
        except GithubException as error:
            if error.status == 404:
                return None
            raise


def _create_label(repo: Any, name: str) -> Any:
    try:
        return repo.create_label(name, _COLOURS.get(name, "ededed"))
    except GithubException as error:
        if error.status == 422:  # somebody else was faster
            return repo.get_label(name)
        raise


def _login(user: Any | None) -> str:
    return "a deleted account" if user is None else user.login


def _title(issue: Issue) -> str:
    return issue.title if len(issue.title) <= LONGEST_TITLE else f"{issue.title[: LONGEST_TITLE - 1]}…"


def _body(issue: Issue) -> str:
    occasion = f"{hidden_occasion(issue.occasion)}\n" if issue.occasion else ""
    body = f"{hidden_key(issue.key)}\n{occasion}{issue.body.rstrip()}\n"
    return body if len(body) <= LONGEST_BODY else body[: LONGEST_BODY - len(_CUT)] + _CUT


def _as_stored(body: str | None) -> str:
    """GitHub may give a body back with other line ends and without the last."""
    return (body or "").replace("\r\n", "\n").rstrip()
