"""Which function answers which request, what it needs, and by which models both are checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fake_github.access import ROLES, Need, Role, Token, check, role_in
from fake_github.refusals import Refusal
from fake_github.world import Account, Repository, World

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Request:
    """A request that has been let in: the token is known, the repository may be seen, the body has its shape."""

    world: World
    base_url: str
    token: Token | None
    in_repository: Repository | None
    places: dict[str, str]  # what stands in the path's {}
    query: dict[str, str]
    body: Any

    @property
    def repository(self) -> Repository:
        assert self.in_repository is not None, "a route without {owner}/{repo} has no repository"
        return self.in_repository

    @property
    def account(self) -> Account:
        """Who asks."""
        if self.token is None:
            raise Refusal(401, "Requires authentication")
        return self.world.account(self.token.login)

    @property
    def url(self) -> str:
        """Of the repository, by which the addresses in answers begin."""
        return f"{self.base_url}/repos/{self.repository.full_name}"

    def require(self, permission: str, level: str) -> None:
        """Refuses who has not got this permission in the repository."""
        check(self.repository, self.token, (permission, level))

    def has_role(self, role: Role) -> bool:
        mine = role_in(self.repository, self.token)
        return mine is not None and ROLES.index(mine) >= ROLES.index(role)


@dataclass(frozen=True)
class Reply:
    content: Any = None
    status: int = 200


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    answer: Callable[[Request], Reply]
    needs: tuple[Need, ...]  # one of them, in the repository; none where no repository is concerned
    body: Any  # the model of the request's body
    model: Any  # the model of the answer, of one element where it is paged
    query: frozenset[str]
    paged: bool | str
    pattern: re.Pattern[str] = field(repr=False)


class Routes:
    def __init__(self) -> None:
        self.all: list[Route] = []

    @classmethod
    def joined(cls, parts: Iterable[Routes]) -> Routes:
        joined = cls()
        joined.all = [route for part in parts for route in part.all]
        return joined

    def add(
        self,
        request: str,
        *,
        model: Any,
        needs: str | None = None,
        body: Any = None,
        query: tuple[str, ...] = (),
        paged: bool | str = False,
    ) -> Callable[[Callable[[Request], Reply]], Callable[[Request], Reply]]:
        """`request` is "POST /repos/{owner}/{repo}/issues", `needs` "issues: write", or several joined by " or ". Of a
        listing that is a part of its answer, `paged` is the name of that part."""
        method, path = request.split(" ")
        needed = tuple((one.split(": ")[0], one.split(": ")[1]) for one in needs.split(" or ")) if needs else ()
        names = frozenset(query) | (frozenset({"page", "per_page"}) if paged else frozenset())

        def register(answer: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
            self.all.append(Route(method, path, answer, needed, body, model, names, paged, _pattern(path)))
            return answer

        return register

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        for route in self.all:
            if route.method == method and (found := route.pattern.fullmatch(path)):
                return route, {name: unquote(value) for name, value in found.groupdict().items()}
        return None


def _pattern(path: str) -> re.Pattern[str]:
    """A place named `number` or `id` takes digits only, as GitHub's own routes do; a name of Git may have slashes."""
    takes = {"number": "[0-9]+", "id": "[0-9]+", "ref": ".+", "basehead": ".+"}
    return re.compile(_PLACE.sub(lambda place: rf"(?P<{place[1]}>{takes.get(place[1], '[^/]+')})", path))
