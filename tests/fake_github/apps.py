"""GitHub Apps: each proves itself by a token that it has signed with its private key, and is given another for an hour
where it is installed."""

from datetime import timedelta
from typing import Any

import jwt
from githubkit_schemas.latest import models

from fake_github.access import Token
from fake_github.refusals import Refusal, invalid, not_found
from fake_github.routing import Reply, Request, Routes
from fake_github.users import shown
from fake_github.world import App, World, as_time, node_id

ROUTES = Routes()
_LONGEST_S = 600
_LIVES = timedelta(hours=1)


def add_app(world: World, slug: str, public_key: str, permissions: dict[str, str], *repositories: str) -> App:
    """One that is installed in these repositories."""
    app = App(
        world.new_id(), world.add_account(f"{slug}[bot]", "Bot"), public_key, world.new_id(), permissions, repositories
    )
    world.apps.append(app)
    return app


def token_of_app(world: World, value: str) -> Token | None:
    """Who has signed a JSON web token. Refuses one that is not valid."""
    if value.count(".") != 2:
        return None
    issuer = str(jwt.decode(value, options={"verify_signature": False}).get("iss"))
    app = next((one for one in world.apps if str(one.id) == issuer), None)
    if app is None:
        raise Refusal(401, "Integration not found")
    try:
        claims = jwt.decode(value, app.public_key, algorithms=["RS256"], options={"verify_iss": False})
    except jwt.InvalidTokenError as error:
        raise Refusal(401, "A JSON web token could not be decoded") from error
    if claims["exp"] - claims["iat"] > _LONGEST_S:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")
    return Token(value, app.account.login, "app")


@ROUTES.add("GET /app", model=models.Integration)
def get_app(request: Request) -> Reply:
    app = _app(request)
    slug, created = app.account.login.removesuffix("[bot]"), as_time(request.world.clock.now())
    return Reply(
        {
            "id": app.id,
            "slug": slug,
            "client_id": f"Iv1.{app.id}",
            "node_id": node_id("App", app.id),
            "owner": shown(request, app.account),
            "name": slug,
            "description": None,
            "external_url": f"https://{slug}.example.com",
            "html_url": f"https://github.com/apps/{slug}",
            "created_at": created,
            "updated_at": created,
            "permissions": app.permissions,
            "events": [],
            "installations_count": 1,
        }
    )


@ROUTES.add("GET /repos/{owner}/{repo}/installation", model=models.Installation)
def get_installation(request: Request) -> Reply:
    app = _app(request)
    if request.repository.full_name not in app.repositories:
        raise not_found()
    return Reply(_installation(request, app))


@ROUTES.add(
    "POST /app/installations/{id}/access_tokens",
    body=models.AppInstallationsInstallationIdAccessTokensPostBody,
    model=models.InstallationToken,
)
def create_token(request: Request) -> Reply:
    app = _app(request)
    if int(request.places["id"]) != app.installation:
        raise not_found()
    wanted = request.body.get("permissions") or app.permissions
    if any(app.permissions.get(name) not in (level, "write") for name, level in wanted.items()):
        raise invalid("Integration", "permissions", "custom", "The permissions requested are not granted.")
    value = f"ghs_{request.world.new_id()}"
    request.world.add_token(Token(value, app.account.login, "installation", tuple(wanted.items()), app.repositories))
    expires_at = as_time(request.world.clock.now() + _LIVES)
    token = {"token": value, "expires_at": expires_at, "permissions": wanted, "repository_selection": "selected"}
    return Reply(token, 201)


def _app(request: Request) -> App:
    if request.token is None or request.token.kind != "app":
        raise Refusal(401, "A JSON web token could not be decoded")
    return next(app for app in request.world.apps if app.account.login == request.token.login)


def _installation(request: Request, app: App) -> dict[str, Any]:
    url, owner = f"{request.base_url}/app/installations/{app.installation}", request.repository.owner
    since = as_time(request.world.clock.now())
    return {
        "id": app.installation,
        "account": shown(request, owner),
        "repository_selection": "selected",
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{request.base_url}/installation/repositories",
        "html_url": f"https://github.com/settings/installations/{app.installation}",
        "app_id": app.id,
        "app_slug": app.account.login.removesuffix("[bot]"),
        "target_id": owner.id,
        "target_type": owner.type,
        "permissions": app.permissions,
        "events": [],
        "created_at": since,
        "updated_at": since,
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }
