"""The connection to GitHub: where it is, who we are, what is tried again, and errors in plain words.

The token is read from the environment and stands in no message. What can be repeated is, as often as is of use:
`repeat`. Creating cannot, as it may have happened although no answer came: `create_once` looks first.
"""

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from github import Auth, Github, GithubException
from github.GithubException import BadAttributeException, RateLimitExceededException

from bot.errors import BotError
from torchbenchmark.foreign_text import one_line

API = "https://api.github.com"
ACTIONS_LOGIN = "github-actions[bot]"  # whom a job's own token writes as
LONGEST_WAIT_S = 900.0  # for a rate limit to be lifted; longer is for the next start
_TIMEOUT_S = 30
_BETWEEN_WRITES_S = 1.0  # what GitHub asks for, lest its secondary limit strike
_ATTEMPTS = 5
_PAUSE_S = 2.0  # after the first failure, doubled after each further one
_SECONDARY_WAIT_S = 60.0  # GitHub asks for at least a minute where it names no time

Result = TypeVar("Result")


class Client:
    """PyGithub with the rules of this bot. `repository` is OWNER/NAME."""

    def __init__(self, repository: str, login: str | None = None) -> None:
        """`login` is whom the token writes as, where GitHub does not tell. Raises BotError without a token."""
        self.repository = repository
        self._configured_login = login
        self._github = Github(
            auth=Auth.Token(_token(repository)),
            base_url=_address(),
            timeout=_TIMEOUT_S,
            per_page=100,
            seconds_between_requests=None,
            seconds_between_writes=_BETWEEN_WRITES_S,
            retry=None,  # PyGithub's own waits for a limit however long that is, and knows 403 only
        )

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
                return _expected(self._github.get_user().login)
            except GithubException as error:
                if error.status == 403 and not _is_limit(error):
                    return None
                raise

        with self.errors():
            return self.repeat(ask)

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
            except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise NotGitHub from error  # so PyGithub stumbles over what it does not expect
            time.sleep(pause)
            if (found := find()) is not None:
                return found
        raise AssertionError

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
            raise BotError(f"GitHub, {self.repository}: {_what_to_do(error)}") from error
        except requests.RequestException as error:
            raise BotError(f"GitHub, {self.repository}: no answer ({type(error).__name__}); try again later") from error


def _token(repository: str) -> str:
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        raise BotError(f"{repository}: no token; set GITHUB_TOKEN (it needs: issues: write)")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise BotError(f"{repository}: GITHUB_TOKEN holds characters that no token has; set it to the token alone")
    return token


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


def _is_limit(error: GithubException) -> bool:
    """Whether a refusal is one of GitHub's rate limits, which may come as 403 and as 429."""
    limited = isinstance(error, RateLimitExceededException) or "retry-after" in _headers(error)
    return error.status == 429 or (error.status == 403 and limited)


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
    if not _is_limit(error) or (wait := _wait_of(error)) > LONGEST_WAIT_S:
        return None
    return wait


def _what_to_do(error: GithubException) -> str:
    if _is_limit(error):
        until = datetime.fromtimestamp(time.time() + _wait_of(error), UTC)
        return f"the rate limit is used up until {until:%H:%M} UTC; start again then: what is filed is not filed twice"
    said = _said(error)
    told = {
        401: "the token in GITHUB_TOKEN is not accepted",
        403: "the token may not do this; it needs the permission issues: write",
        404: "no such repository, or the token may not see it",
        410: "issues are turned off there",
        422: "GitHub refuses what was sent",
    }.get(error.status, "GitHub does not work at present; try again later" if error.status >= 500 else "refused")
    if error.status == 403 and "archived" in said:
        told = "the repository is archived, so nothing can be written there"
    return f"{told} ({error.status}{f': {said}' if said else ''})"


def _said(error: GithubException) -> str:
    """GitHub's own words, with the fields that it names; in one line, and no longer than that."""
    if not isinstance(error.data, dict):
        return ""
    parts = [str(error.data.get("message") or "")]
    for one in error.data.get("errors") or ():
        named = [one.get(key) for key in ("resource", "field", "code", "message")] if isinstance(one, dict) else [one]
        parts.append(" ".join(str(word) for word in named if word))
    return one_line("; ".join(filter(None, parts)))[:200]
