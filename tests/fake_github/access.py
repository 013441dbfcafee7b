"""Who may do what: the role of an account in a repository, and what its token is restricted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fake_github.refusals import Refusal, not_found

if TYPE_CHECKING:
    from fake_github.world import Repository

Role = Literal["read", "triage", "write", "maintain", "admin"]
ROLES: tuple[Role, ...] = ("read", "triage", "write", "maintain", "admin")
Kind = Literal["classic", "fine-grained", "installation", "app"]
_WHOSE: dict[Kind, str] = {"fine-grained": "personal access token", "installation": "integration"}
LEVELS = ("read", "write")
Need = tuple[str, str]  # a permission and a level


@dataclass(frozen=True)
class Token:
    """`installation` is an app's or a job's own (GITHUB_TOKEN), `app` the one by which an app asks for that. A classic
    one may all that its account may; the others only what `permissions` says ({"issues": "write"}), in `repositories`
    and, reading, in public ones."""

    value: str
    login: str
    kind: Kind = "classic"
    permissions: tuple[tuple[str, str], ...] = ()
    repositories: tuple[str, ...] = ()

    def allows(self, permission: str, level: str) -> bool:
        if self.kind == "classic" or (permission, level) == ("metadata", "read"):
            return True
        granted = dict(self.permissions).get(permission)
        return granted is not None and LEVELS.index(granted) >= LEVELS.index(level)

    def covers(self, repository: Repository) -> bool:
        return self.kind == "classic" or repository.full_name in self.repositories

    def not_accessible(self, *needs: Need) -> Refusal:
        return Refusal(
            403,
            f"Resource not accessible by {_WHOSE[self.kind]}",
            headers={"X-Accepted-GitHub-Permissions": "; ".join(f"{name}={level}" for name, level in needs)},
        )


def role_in(repository: Repository, token: Token | None) -> Role | None:
    """None for who may not see it."""
    anybody: Role | None = None if repository.private else "read"
    if token is None:
        return anybody
    if token.kind == "installation":
        return "write" if token.covers(repository) else anybody
    if token.login.casefold() == repository.owner.login.casefold():
        role: Role | None = "admin"
    else:
        roles = {login.casefold(): role for login, role in repository.roles.items()}
        role = roles.get(token.login.casefold(), anybody)
    return role if token.covers(repository) else anybody


def check(repository: Repository, token: Token | None, *needs: Need) -> None:
    """Refuses a request in a repository that needs one of several permissions, all at one level."""
    level = needs[0][1]
    if role_in(repository, token) is None:
        raise not_found()
    if token is None:
        if level == "write":
            raise Refusal(401, "Requires authentication")
        return
    is_open_to_all = level == "read" and not repository.private
    if not is_open_to_all and not (token.covers(repository) and any(token.allows(*need) for need in needs)):
        raise token.not_accessible(*needs)
    if level == "write" and repository.is_archived:
        raise Refusal(403, "Repository was archived so is read-only.")
