"""GitHub's rate limits: the primary one, a budget of requests an hour, and secondary ones, which strike when told."""

from dataclasses import dataclass, field

from fake_github.access import Token
from fake_github.refusals import Refusal
from fake_github.world import World

_HOUR_S = 3_600
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to "
    "GitHub Support for help, please include the request ID."
)


@dataclass
class Budget:
    limit: int
    resets_at: int
    used: int = 0

    @property
    def headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(self.limit - self.used, 0)),
            "X-RateLimit-Used": str(self.used),
            "X-RateLimit-Reset": str(self.resets_at),
            "X-RateLimit-Resource": "core",
        }


@dataclass
class Limits:
    world: World
    _budgets: dict[str, Budget] = field(default_factory=dict)  # by token
    _secondary: list[dict[str, str]] = field(default_factory=list)  # the headers of those to come

    def use_up(self, token: str, for_s: int = _HOUR_S) -> None:
        """Nothing is left to the token for so long."""
        budget = self.budget(self.world.tokens[token])
        budget.used, budget.resets_at = budget.limit, int(self.world.clock.time()) + for_s

    def strike_writes(self, retry_after: int | None, times: int = 1) -> None:
        """The next writes meet a secondary limit."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._secondary += [headers] * times

    def budget(self, token: Token | None) -> Budget:
        key, limit = ("", 60) if token is None else (token.value, 1_000 if token.kind == "installation" else 5_000)
        now = int(self.world.clock.time())
        budget = self._budgets.get(key)
        if budget is None or now >= budget.resets_at:
            budget = self._budgets[key] = Budget(limit, now + _HOUR_S)
        return budget

    def count(self, token: Token | None, method: str) -> None:
        """Refuses what is over a limit."""
        budget = self.budget(token)
        if budget.used >= budget.limit:
            raise Refusal(403, f"API rate limit exceeded for {_of_whom(token, self.world)}.")
        budget.used += 1
        if method != "GET" and self._secondary:
            raise Refusal(403, _SECONDARY, headers=self._secondary.pop(0))


def _of_whom(token: Token | None, world: World) -> str:
    if token is None:
        return "127.0.0.1"
    if token.kind == "installation":
        return "installation"
    return f"user ID {world.account(token.login).id}"
