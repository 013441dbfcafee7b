"""What the commands on alerts have in common: which alert it is, why somebody says so, and how it is answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from baselines.store import Store
from bot.errors import BotError
from bot.github.actions import Action, React
from bot.github.alert import Alert
from bot.github.alert_store import find_alert
from bot.github.commands.command import Conversation, Refused, WrongUse
from bot.github.commands.replying import reply
from bot.github.issue import key_in
from torchbenchmark.foreign_text import inline_code

LONGEST_REASON = 200  # characters
Change = Callable[[Store, Alert], Alert]


@dataclass(frozen=True)
class Because:
    """A command that takes nothing but a reason."""

    why: str = ""


def reason_of(words: Sequence[str]) -> str:
    """The words after a command, as the reason. They are foreign text. Raises WrongUse for a novel."""
    why = " ".join(words)
    if len(why) > LONGEST_REASON:
        told = f"the reason has {len(why)} characters, and the issue keeps {LONGEST_REASON}"
        raise WrongUse(told, "shorten it, and say the rest in a comment of its own")
    return why


def alert_of(conversation: Conversation, store: Store) -> Alert:
    """The alert of the issue below which the comment stands, as it is stored now."""
    key = key_in(conversation.event.issue.body)
    found = find_alert(store, key) if key is not None else None
    if found is None:
        raise Refused(
            "the store has no alert of this issue: it tells of something else than a change of tests, or the store was "
            "begun anew, and the next night takes the alert over from here",
            "say it again after that night",
        )
    return found


def change(conversation: Conversation, allowed: Callable[[Alert], None], do: Change) -> Alert:
    """Change the alert of the conversation as `do` does, if it is `allowed`, which raises Refused.

    Another writer may come between: what is refused then is told by the alert as it is after that.
    """
    store = conversation.open_store()
    alert = alert_of(conversation, store)
    allowed(alert)
    try:
        return do(store, alert)
    except BotError:
        allowed(alert_of(conversation, store))
        raise


def require_open(alert: Alert) -> None:
    if not alert.is_open:
        raise Refused(f"this alert is closed already ({alert.closed_because})", "nothing is to be done about it")


def done(conversation: Conversation, told: str) -> Sequence[Action]:
    """The answer to a command that was right."""
    return React(comment=conversation.event.comment.id, content="+1"), reply(conversation, told)


def by_whom(by: str, why: str = "") -> str:
    """Who has decided, and why, in one clause of Markdown that mentions nobody."""
    return f"by {inline_code(by)}" + (f": {inline_code(why)}" if why else "")
