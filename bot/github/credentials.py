"""Whose name the bot speaks in to GitHub: a token, or a GitHub App by its id and its private key, from the environment.

No message and no log holds a secret: errors are raised without what caused them, which could quote a key.
"""

import os
from dataclasses import dataclass

from github import Auth

from bot.errors import BotError

TOKEN, APP_ID, APP_KEY = "GITHUB_TOKEN", "TORCHBENCH_APP_ID", "TORCHBENCH_APP_PRIVATE_KEY"
TEAMS_TOKEN = "TORCHBENCH_TEAMS_TOKEN"


@dataclass(frozen=True)
class Credentials:
    """`name` is what they are called in messages."""

    name: str
    token: Auth.Token | None = None
    app: Auth.AppAuth | None = None


def credentials_for(repository: str) -> Credentials:
    """An App's if the environment has them, else the token. Raises BotError for none, and for what can be none."""
    app_id, key = (os.environ.get(name, "").strip() for name in (APP_ID, APP_KEY))
    if app_id or key:
        return Credentials(f"{APP_ID} and {APP_KEY}", app=_app(repository, app_id, key))
    token = _token(repository, TOKEN)
    if token is None:
        raise BotError(f"{repository}: no token; set {TOKEN} (it needs: issues: write)")
    return Credentials(TOKEN, token=token)


def token_for_teams(repository: str) -> Auth.Token | None:
    """A token that looks up the members of teams and nothing else, as that of a job may not; None if there is none."""
    return _token(repository, TEAMS_TOKEN)


def _token(repository: str, name: str) -> Auth.Token | None:
    token = os.environ.get(name, "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise BotError(f"{repository}: {name} holds characters that no token has; set it to the token alone")
    return Auth.Token(token) if token else None


def _app(repository: str, app_id: str, key: str) -> Auth.AppAuth:
    for name, value in ((APP_ID, app_id), (APP_KEY, key)):
        if not value:
            raise BotError(f"{repository}: {name} is not set; an App needs {APP_ID} and {APP_KEY}")
    if not (app_id.isascii() and app_id.isalnum()):
        raise BotError(f"{repository}: {APP_ID} is not the id of an App, which is a number, or its client id")
    # Where a variable has to be one line, its line ends are often written as \n.
    app = Auth.AppAuth(app_id, key.replace("\\n", "\n"))
    try:
        app.create_jwt()
    except Exception:  # each library below has exceptions of its own for what is no key
        raise BotError(
            f"{repository}: {APP_KEY} is not a private key; set it to the whole file that GitHub gave for the App, "
            "from its first line to its last"
        ) from None
    return app
