"""Who may command: looked up at the moment of the command, as what a payload says of its author may be old."""

from collections.abc import Sequence

from bot.github.looking import MAY_COMMAND, Looking


def may_command(look: Looking, login: str, teams: Sequence[str]) -> bool:
    """Whether somebody may write in the repository, or is in one of the teams."""
    return look.role(login) in MAY_COMMAND or any(look.is_member(team, login) for team in teams)
