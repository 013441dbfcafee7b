"""The connection to GitHub: where it is, who we are, what is tried again, and errors in plain words.

What can be repeated is, as often as is of use: `repeat`. Creating cannot, as it may have happened although no answer
came: `create_once` looks first.
"""

import functools
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from github import Github, GithubException, GithubIntegration
from github.GithubException import BadAttributeException, RateLimitExceededException

from bot.errors import BotError
from bot.github.credentials import TOKEN, credentials_for, token_for_teams
from torchbenchmark.foreign_text import one_line

API = "https://api.github.com"
ACTIONS_LOGIN = "github-actions[bot]"  # whom a job's own token writes as
LONGEST_WAIT_S = 900.0  # for a rate limit to be lifted; longer is for the next start
_TIMEOUT_S = 30
_BETWEEN_WRITES_S = 1.0  # what GitHub asks for, lest its secondary limit strike
_ATTEMPTS = 5
_PAUSE_S = 2.0  # after the first failure, doubled after each further one
_SECONDARY_WAIT_S = 60.0  # GitHub asks for at least a minute where it names no time
_PER_PAGE = 100  # the most that GitHub gives
_MOVED = (301, 307, 308)

# So PyGithub stumbles over what it does not expect; RuntimeError over a redirection to another host.
_STUMBLES = (AssertionError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)

Result = TypeVar("Result")


class Client:
    """PyGithub with the rules of this bot. `repository` is OWNER/NAME."""

    def __init__(self, repository: str, login: str | None = None) -> None:
        """`login` is whom the token writes as, where GitHub does not tell. Raises BotError without a token or App."""
        self.repository = repository
        self._configured_login = login
        self._credentials = credentials_for(repository)
        self._how: dict[str, Any] = {
            "base_url": _address(),
            "timeout": _TIMEOUT_S,
            "per_page": _PER_PAGE,
            "seconds_between_requests": None,
            "seconds_between_writes": _BETWEEN_WRITES_S,
            "retry": None,  # PyGithub's own waits for a limit however long that is, and knows 403 only
        }

    def connect(self) -> None:
        """Find out what must be known before anything is written: whether the repository is there, and who we are."""
        _ = self.repo, self.login

    @property
    def login(self) -> str:
        """Whom the token writes as: as GitHub says, or else as was configured, or else as a job's own token does."""
        configured = self._configured_login
        if self._told_login is not None:
            if configured is not None and configured.casefold() != self._told_login.casefold():
                raise BotError(
                    f"GitHub, {self.repository}: the token writes as {self._told_login}, but `github_login` in the "
                    f"configuration is {configured}; correct it, or leave it out"
                )
            return self._told_login
        if configured is not None:
            return configured
        if os.environ.get("GITHUB_ACTIONS") == "true":
            return ACTIONS_LOGIN
        raise BotError(
            f"GitHub, {self.repository}: the token may not tell whose it is; name the account that it writes as in the "
            "configuration, `github_login:` (of an app NAME it is NAME[bot])"
        )

    @property
    def login_is_certain(self) -> bool:
        return self._told_login is not None

    @functools.cached_property
    def _told_login(self) -> str | None:
        """The token's account; None where the token may not ask, as that of a job or an app may not."""

        def ask() -> str | None:
            try:
                if self._integration is not None:
                    return f"{_expected(self._integration.get_app().slug)}[bot]"
                return _expected(self._github.get_user().login)
            except GithubException as error:
                if error.status == 403 and not is_limit(error):
                    return None
                raise

        with self.errors():
            return self.repeat(ask)

    @functools.cached_property
    def _integration(self) -> GithubIntegration | None:
        """The App itself, which may only ask who it is and where it is installed."""
        app = self._credentials.app
        return None if app is None else GithubIntegration(auth=app, **self._how)

    @functools.cached_property
    def _github(self) -> Github:
        if self._integration is None:
            return Github(auth=self._credentials.token, **self._how)
        integration = self._integration
        owner, name = self.repository.split("/")

        def installation() -> int:
            try:
                return int(_expected(integration.get_repo_installation(owner, name).id))
            except GithubException as error:
                if error.status == 404:
                    raise BotError(
                        f"GitHub, {self.repository}: the App is not installed there, or there is no such repository; "
                        "install it on its page, `Install App`"
                    ) from error
                raise

        assert self._credentials.app is not None
        return Github(auth=self._credentials.app.get_installation_auth(self.repeat(installation)), **self._how)

    @functools.cached_property
    def _for_teams(self) -> Github:
        """Who looks up teams: by a token of its own, if there is one."""
        token = token_for_teams(self.repository)
        return self._github if token is None else Github(auth=token, **self._how)

    def is_us(self, user: Any | None) -> bool:
        """Whether an account, as PyGithub gives it, is the one that the token writes as; None is a deleted one."""
        return user is not None and user.login.casefold() == self.login.casefold()

    @functools.cached_property
    def repo(self) -> Any:
        """PyGithub's Repository."""

        def get() -> Any:
            repo = self._github.get_repo(self.repository)
            _expected(repo.full_name)
            return repo

        return self.repeat(get)

    def request(self, verb: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """The status, and what GitHub answers to a request for what is at `path` in the repository, or with a slash
        first, anywhere. Where PyGithub would ask more, or tell less. A repository that has been renamed since it was
        looked up is followed, which PyGithub does for reading only."""
        requester = (self._for_teams if path.startswith("/orgs/") else self._github).requester
        for _ in range(2):
            url = path if path.startswith("/") else f"{self.repo.url}/{path}"
            status, headers, text = requester.requestJson(verb, url, input=body)
            if status not in _MOVED:
                break
            self.__dict__.pop("repo", None)
        if status >= 300:
            raise requester.createException(status, headers, _read(text))
        return status, json.loads(text) if text else {}

    def comments(self, number: int) -> list[dict[str, Any]]:
        """The comments below an issue or a pull request that we have written, as GitHub tells them, oldest first."""
        ours: list[dict[str, Any]] = []
        for page in itertools.count(1):
            listed = self.repeat(lambda page=page: self._page_of_comments(number, page))
            ours += [one for one, author in listed if author.casefold() == self.login.casefold()]
            if len(listed) < _PER_PAGE:
                break
        return ours

    def _page_of_comments(self, number: int, page: int) -> list[tuple[dict[str, Any], str]]:
        """With who has written each."""
        path = f"issues/{number}/comments?per_page={_PER_PAGE}&page={page}"
        _, listed = self.request("GET", path)
        if listed and not listed[0]["url"].casefold().startswith(self.repo.url.casefold()):
            # The repository was renamed meanwhile. PyGithub has followed it, but without saying which page.
            self.__dict__.pop("repo", None)
            _, listed = self.request("GET", path)
        if not isinstance(listed, list):
            raise NotGitHub  # and not a conversation in which nobody has said anything
        return [(one, (one["user"] or {}).get("login", "")) for one in listed]

    def repeat(self, action: Callable[[], Result]) -> Result:
        """What `action` gives, which may be done several times."""
        return self.create_once(action, lambda: None)

    def create_once(self, create: Callable[[], Result], find: Callable[[], Result | None]) -> Result:
        """What `create` gives. Where that is not known to have failed, `find` is asked before it is tried again."""
        for attempt in range(_ATTEMPTS):
            try:
                return create()
            except (GithubException, requests.RequestException) as error:
                pause = _pause_after(error, attempt)
                if pause is None or attempt == _ATTEMPTS - 1:
                    raise
            except _STUMBLES as error:
                raise NotGitHub from error
            time.sleep(pause)
            if (found := find()) is not None:
                return found
        raise AssertionError

    def told(self, error: GithubException) -> str:
        """What a refusal means, and what to do, on one line."""
        return _what_to_do(error, self._credentials.name)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Failures as BotError: what GitHub said, and what to do."""
        try:
            yield
        except (BadAttributeException, NotGitHub) as error:
            raise BotError(
                f"GitHub, {self.repository}: what came is not the answer of GitHub's API; is there a proxy before it, "
                "and is GITHUB_API_URL right?"
            ) from error
        except GithubException as error:
            raise BotError(f"GitHub, {self.repository}: {self.told(error)}") from error
        except requests.RequestException as error:
            raise BotError(f"GitHub, {self.repository}: no answer ({type(error).__name__}); try again later") from error


def _address() -> str:
    """Where GitHub's API is: GITHUB_API_URL, which a job of GitHub Actions has, or the public one."""
    address = os.environ.get("GITHUB_API_URL", "").strip() or API
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in address:
        raise BotError(
            "GITHUB_API_URL is not the address of an API, such as https://github.example.com/api/v3; correct it"
        )
    return address.rstrip("/")


class NotGitHub(Exception):
    """An answer of success that holds not what GitHub answers."""


def _expected(value: Result | None) -> Result:
    """The value, if the answer had one."""
    if value is None:
        raise NotGitHub
    return value


def _headers(error: GithubException) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in (error.headers or {}).items()}


def _read(text: str) -> dict[str, Any]:
    """What a refusal says, which is a page for people where something before GitHub refuses."""
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def is_limit(error: GithubException) -> bool:
    """Whether a refusal is one of GitHub's rate limits, which may come as 403 and as 429."""
    limited = isinstance(error, RateLimitExceededException) or "retry-after" in _headers(error)
    return error.status == 429 or (error.status == 403 and limited)


def is_locked(error: GithubException) -> bool:
    """Whether people have locked the conversation against who may not write the repository, which is their decision."""
    return error.status == 403 and "locked" in said_in(error)


def _wait_of(error: GithubException) -> float:
    """Seconds until the limit is lifted."""
    headers = _headers(error)
    if headers.get("retry-after", "").isdigit():
        return float(headers["retry-after"])
    if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        return max(int(headers["x-ratelimit-reset"]) - time.time() + 1, 0.0)
    return _SECONDARY_WAIT_S


def _pause_after(error: GithubException | requests.RequestException, attempt: int) -> float | None:
    """Seconds until it may be tried again; None if that is of no use."""
    if isinstance(error, requests.RequestException) or error.status >= 500:
        return _PAUSE_S * 2**attempt
    if not is_limit(error) or (wait := _wait_of(error)) > LONGEST_WAIT_S:
        return None
    return wait


def _what_to_do(error: GithubException, credentials: str) -> str:
    """What a refusal means, and what to do: on one line, with GitHub's own words."""
    if is_limit(error):
        until = datetime.fromtimestamp(time.time() + _wait_of(error), UTC)
        return f"the rate limit is used up until {until:%H:%M} UTC; start again then: what is filed is not filed twice"
    said = said_in(error)
    told = {
        401: f"the token in {credentials} is not accepted"
        if credentials == TOKEN
        else f"{credentials} are not accepted",
        403: f"the token may not do this; it needs the permission {_permission(error)}",
        404: "no such repository, or the token may not see it",
        410: "issues are turned off there",
        422: "GitHub refuses what was sent",
    }.get(error.status, "GitHub does not work at present; try again later" if error.status >= 500 else "refused")
    if error.status == 403 and "archived" in said:
        told = "the repository is archived, so nothing can be written there"
    if is_locked(error):
        told = "the conversation is locked, and the bot may not write there"
    if error.status == 403 and "GitHub App" in said:
        told = "only a GitHub App, or a job's own token, may do this"
    return f"{told} ({error.status}{f': {said}' if said else ''})"


def _permission(error: GithubException) -> str:
    """The permissions that GitHub would take, as a workflow names them."""
    accepted = _headers(error).get("x-accepted-github-permissions", "")
    wanted = [one.strip().replace("_", "-").replace("=", ": ") for one in accepted.split(";") if one.strip()]
    return one_line(" or ".join(wanted)) if wanted else "issues: write"


def said_in(error: GithubException) -> str:
    """GitHub's own words, with the fields that it names; in one line, and no longer than that."""
    if not isinstance(error.data, dict):
        return ""
    parts = [str(error.data.get("message") or "")]
    for one in error.data.get("errors") or ():
        named = [one.get(key) for key in ("resource", "field", "code", "message")] if isinstance(one, dict) else [one]
        parts.append(" ".join(str(word) for word in named if word))
    return one_line("; ".join(filter(None, parts)))[:200]
