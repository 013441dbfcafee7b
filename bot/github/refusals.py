"""How often the bot says no, or tells anything to who may not command: a few times an hour to one person on one pull
request, so that nobody makes it flood one.

Counted in what it has written itself, which no store needs to remember.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.github.hidden_marks import mark, marks_in
from bot.github.looking import BotComment

MOST_AN_HOUR = 3
_HOUR = timedelta(hours=1)
_MARK = "refused"


def refusal_mark(login: str) -> str:
    """What a refusal begins with."""
    return mark(_MARK, login.casefold())


def is_one_too_many(comments: Iterable[BotComment], login: str, now: datetime) -> bool:
    """Whether somebody was told no often enough within the last hour, by the bot's comments in one place."""
    told = [one for one in comments if marks_in(one.body).get(_MARK) == login.casefold()]
    return sum(one.created_at > now - _HOUR for one in told) >= MOST_AN_HOUR
