"""The connection to GitHub: where it is, who we are, what is tried again, and errors in plain words.

The token is read from the environment and stands in no message. Reading and replacing are tried again as often as is
useful; creating is not, as it may have happened although no answer came: `create_once` looks first.
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
from github.GithubException import RateLimitExceededException
from github.GithubRetry import GithubRetry

from bot.errors import BotError

API = "https://api.github.com"
ACTIONS_LOGIN = "github-actions[bot]"  # whom a job's own token writes as
LONGEST_WAIT_S = 900.0  # for a rate limit to be lifted; longer is for the next start
_TIMEOUT_S = 30
_BETWEEN_WRITES_S = 1.0  # what GitHub asks for, lest its secondary limit strike
_ATTEMPTS = 5
_PAUSE_S = 2.0  # after the first failure, doubled after each further one
_SECONDARY_WAIT_S = 60.0  # GitHub asks for at least a minute where it names no time

Created = TypeVar("Created")


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
            retry=GithubRetry(
                total=_ATTEMPTS,
                backoff_factor=_PAUSE_S / 2,
                secondary_rate_wait=_SECONDARY_WAIT_S,
                max_rate_limit_wait=LONGEST_WAIT_S,
                allowed_methods={"GET", "HEAD", "PATCH", "PUT", "DELETE"},
            ),
        )

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
        with self.errors():
            try:
                return self._github.get_user().login
            except GithubException as error:
                if error.status != 403 or isinstance(error, RateLimitExceededException):
                    raise
                return None

    def is_us(self, user: Any | None) -> bool:
        """Whether an account, as PyGithub gives it, is the one that the token writes as; None is a deleted one."""
        return user is not None and user.login.casefold() == self.login.casefold()

    @functools.cached_property
    def repo(self) -> Any:
        """PyGithub's Repository."""
        return self._github.get_repo(self.repository)

    def create_once(self, create: Callable[[], Created], find: Callable[[], Created | None]) -> Created:
        """What `create` gives. Where that is not known to have failed, `find` is asked before it is tried again."""
        for attempt in range(_ATTEMPTS):
            try:
                return create()
            except (GithubException, requests.RequestException) as error:
                pause = _pause_after(error, attempt)
                if pause is None or attempt == _ATTEMPTS - 1:
                    raise
            time.sleep(pause)
            if (found := find()) is not None:
                return found
        raise AssertionError

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Failures as BotError: what GitHub said, and what to do."""
        try:
            yield
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


def _pause_after(error: GithubException | requests.RequestException, attempt: int) -> float | None:
    """Seconds until a write may be tried again; None if that is of no use."""
    if isinstance(error, requests.RequestException) or error.status >= 500:
        return _PAUSE_S * 2**attempt
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    limited = isinstance(error, RateLimitExceededException) or "retry-after" in headers
    if error.status not in (403, 429) or not limited:
        return None
    if headers.get("retry-after", "").isdigit():
        wait = float(headers["retry-after"])
    elif headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        wait = int(headers["x-ratelimit-reset"]) - time.time() + 1
    else:
        wait = _SECONDARY_WAIT_S
    return max(wait, 0.0) if wait <= LONGEST_WAIT_S else None


def _what_to_do(error: GithubException) -> str:
    if isinstance(error, RateLimitExceededException):
        reset = (error.headers or {}).get("x-ratelimit-reset", "")
        until = f" until {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC" if str(reset).isdigit() else ""
        return f"the rate limit is used up{until}; start again then: what is filed is not filed twice"
    said = error.data.get("message", "") if isinstance(error.data, dict) else ""
    told = {
        401: "the token in GITHUB_TOKEN is not accepted",
        403: "the token may not do this; it needs the permission issues: write",
        404: "no such repository, or the token may not see it",
        410: "issues are turned off there",
        422: "GitHub refuses what was sent",
    }.get(error.status, "GitHub does not work at present; try again later" if error.status >= 500 else "refused")
    return f"{told} ({error.status}{': ' + ' '.join(str(said).split())[:200] if said else ''})"
