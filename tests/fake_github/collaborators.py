"""What an account may in a repository."""

from githubkit_schemas.latest import models

from fake_github.access import ROLES, Role, Token, role_in
from fake_github.refusals import Refusal
from fake_github.repository import RIGHTS
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown

ROUTES = Routes()
_IN_FOUR: dict[Role, str] = {"triage": "read", "maintain": "write"}  # `permission` is older than these two roles


@ROUTES.add(
    "GET /repos/{owner}/{repo}/collaborators/{login}/permission",
    needs="metadata: read",
    model=models.RepositoryCollaboratorPermission,
)
def get_permission(request: Request) -> Reply:
    """Only who may push is told. A role by a team, too, counts; everybody may read what is public."""
    if not request.has_role("write"):
        raise Refusal(403, "Must have push access to view collaborator permission.")
    login = request.places["login"]
    account = request.world.accounts.get(login.casefold())
    if account is None or account.is_deleted or account.type != "User":
        raise Refusal(404, f"{login} is not a user")
    role = role_in(request.repository, Token("", account.login))
    user = shown(request, account)
    assert user is not None
    rights = {right: role is not None and ROLES.index(role) >= ROLES.index(at) for right, at in RIGHTS.items()}
    return Reply(
        {
            "permission": _IN_FOUR.get(role, role) if role else "none",
            "role_name": role or "none",
            "user": {**user, "role_name": role or "none", "permissions": rights},
        }
    )
