"""The connection to GitHub: where it is, who we are, what is tried again, and errors in plain words.

The token is read from the environment and never shown. Reading and replacing are tried again as often as is useful;
creating is not, as it may have happened although no answer came: `create_once` looks first.
"""

import functools
import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

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
        """`login` is whom the token writes as; without it GitHub is asked. Raises BotError without a token."""
        token = os.environ.get("GITHUB_TOKEN", "")
        if not token:
            raise BotError(f"{repository}: no token; set GITHUB_TOKEN (it needs: issues: write)")
        self.repository = repository
        self._login = login
        self._github = Github(
            auth=Auth.Token(token),
            base_url=os.environ.get("GITHUB_API_URL", API),
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
        """Whom the token writes as. A job's own token may not ask; it is GitHub Actions'."""
        if self._login is None:
            try:
                self._login = self._github.get_user().login
            except GithubException as error:
                if error.status != 403:
                    with self.errors():
                        raise
                self._login = ACTIONS_LOGIN
        return self._login

    @functools.cached_property
    def repo(self) -> Any:
        """PyGithub's Repository."""
        return self._github.get_repo(self.repository)

    def create_once(self, create: Callable[[], Created], find: Callable[[], Created | None]) -> Created:
        """What `create` gives. Where that is not known to have failed, `find` is asked before it is tried again."""
        for attempt in range(_ATTEMPTS):
            try:
                return create()
            except GithubException as error:
                pause = _pause_after(error, attempt)
                if pause is None or attempt == _ATTEMPTS - 1:
                    with self.errors():
                        raise
            except requests.RequestException:
                pause = _PAUSE_S * 2**attempt
                if attempt == _ATTEMPTS - 1:
                    with self.errors():
                        raise
            time.sleep(pause)
            with self.errors():
                found = find()
            if found is not None:
                return found
        raise AssertionError

    @contextmanager
    def errors(self):
        """Failures as BotError: what GitHub said, and what to do."""
        try:
            yield
        except GithubException as error:
            raise BotError(f"GitHub, {self.repository}: {_what_to_do(error)}") from error
        except requests.RequestException as error:
            raise BotError(f"GitHub, {self.repository}: no answer ({type(error).__name__}); try again later") from error


def _pause_after(error: GithubException, attempt: int) -> float | None:
    """Seconds until a write may be tried again; None if that is of no use."""
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status >= 500:
        return _PAUSE_S * 2**attempt
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
