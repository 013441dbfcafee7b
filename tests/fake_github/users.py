"""Accounts: whose the token is, and how an author is shown."""

from typing import Any
from urllib.parse import quote

from githubkit_schemas.latest import models

from fake_github.refusals import Refusal
from fake_github.routing import Reply, Request, Routes
from fake_github.world import Account, as_time, node_id

ROUTES = Routes()
_LISTS = {
    "followers_url": "followers",
    "following_url": "following{/other_user}",
    "gists_url": "gists{/gist_id}",
    "starred_url": "starred{/owner}{/repo}",
    "subscriptions_url": "subscriptions",
    "organizations_url": "orgs",
    "repos_url": "repos",
    "events_url": "events{/privacy}",
    "received_events_url": "received_events",
}


@ROUTES.add("GET /user", model=models.PublicUser)
def get_authenticated(request: Request) -> Reply:
    """A job's and an app's token belongs to no user and may not ask."""
    if request.token is not None and request.token.kind == "installation":
        raise Refusal(403, "Resource not accessible by integration")
    return Reply(_profile(request, request.account))


@ROUTES.add("GET /users/{login}", model=models.PublicUser)
def get_user(request: Request) -> Reply:
    return Reply(_profile(request, request.world.account(request.places["login"])))


def shown(request: Request, account: Account | None) -> dict[str, Any] | None:
    """An account as the author or closer of something; of a deleted one, nobody or the ghost."""
    if account is not None and account.is_deleted:
        account = request.world.ghost
    if account is None:
        return None
    url = f"{request.base_url}/users/{quote(account.login)}"
    page = f"apps/{account.login.removesuffix('[bot]')}" if account.type == "Bot" else account.login
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id(account.type, account.id),
        "avatar_url": f"https://avatars.githubusercontent.com/u/{account.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": f"https://github.com/{page}",
        **{name: f"{url}/{rest}" for name, rest in _LISTS.items()},
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def _profile(request: Request, account: Account) -> dict[str, Any]:
    author = shown(request, account)
    assert author is not None
    told_of_people = ("name", "company", "blog", "location", "email", "hireable", "bio", "twitter_username")
    since = as_time(request.world.clock.now())
    return {
        **author,
        **dict.fromkeys(told_of_people),
        **dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0),
        "created_at": since,
        "updated_at": since,
    }
