"""The answer to a comment, as actions: of the command that it says, of what is wrong with it, or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.github.actions import Action, React, Reply
from bot.github.commands.all_commands import find_command, names_at
from bot.github.commands.command import Conversation, Place, Refused, WrongUse
from bot.github.commands.grammar import Misread, Said, read_comment
from bot.github.commands.replying import reply, reply_key
from bot.github.events import CommentEvent
from bot.github.hidden_marks import marks_in
from bot.github.issue import key_in
from bot.github.refusals import is_one_too_many, refusal_mark


@dataclass(frozen=True)
class Answer:
    """`outcome` is for a log: it has nothing of the comment in it."""

    outcome: str
    actions: tuple[Action, ...] = ()


def place_of(event: CommentEvent) -> Place | None:
    """Where a comment may command, by what the payload says; whether an alert's issue is one of ours is asked later."""
    if event.is_on_pull_request:
        return "pull request"
    return "alert" if key_in(event.issue.body) is not None else None


def said_in(event: CommentEvent) -> Said | Misread | None:
    """The command in a comment; None for all that asks nothing of the bot. Nothing is looked up."""
    place = place_of(event)
    return None if place is None else read_comment(event.comment.body or "", names_at(place))


def answer(said: Said | Misread, conversation: Conversation) -> Answer:
    """Raises BotError where GitHub or the store does not answer."""
    place = place_of(conversation.event)
    assert place is not None, "where nothing can be said, nothing was"
    if place == "alert" and not _is_ours(conversation):
        return Answer("ignored: the issue has the key of an alert, and is none of the bot's")
    if place == "alert" and _is_answered(conversation):
        return Answer("ignored: it was answered before, and what it said is done")
    if isinstance(said, Misread):
        return _no(said.wrong, said.name, (), conversation)
    command, words = find_command(place, said.name, said.words)
    try:
        actions = tuple(command.answer(words, conversation))
    except (WrongUse, Refused) as refusal:
        return _no(refusal, command.name, command.usage, conversation)
    if command.is_for_all and not conversation.may_command:
        return _told_to_anybody(command.name, actions, conversation)
    return Answer(f"/{command.name}", actions)


def apology(conversation: Conversation) -> Answer:
    """For a command that came to an error, which a log may tell and a comment may not."""
    where = f"[the run]({conversation.run_url})" if conversation.run_url else "its log"
    told = _no(
        Refused("the bot came to an error", f"those who look after it find more in {where}"), "…", (), conversation
    )
    key = reply_key(conversation, "apology")  # a job that is started again may come to the true answer
    actions = [one.model_copy(update={"key": key}) if isinstance(one, Reply) else one for one in told.actions]
    return Answer(told.outcome, tuple(actions))


def _is_ours(conversation: Conversation) -> bool:
    """A key can be copied into any issue."""
    author = conversation.event.issue.user
    return author is not None and conversation.look.is_us(author.login)


def _is_answered(conversation: Conversation) -> bool:
    """What was said of an alert is of then: a job that is started again weeks later must not say it of a relapse."""
    comments = conversation.look.bot_comments(conversation.event.issue.number)
    return any(marks_in(one.body).get("reply") == reply_key(conversation) for one in comments)


def _no(refusal: WrongUse | Refused, name: str, usage: Sequence[str], conversation: Conversation) -> Answer:
    """What is wrong, and what is valid; after a few of them within an hour a reaction, which notifies nobody."""
    what = "wrong use" if isinstance(refusal, WrongUse) else "refused"
    if _is_one_too_many(conversation):
        return Answer(f"/{name}: {what}, one too many for a reply", (_reaction(conversation),))
    return Answer(
        f"/{name}: {what}", (reply(conversation, f"{refusal_mark(conversation.by)}\n{_told(refusal, usage)}"),)
    )


def _told_to_anybody(name: str, actions: tuple[Action, ...], conversation: Conversation) -> Answer:
    """Who may not command may not make the bot flood a pull request by asking for help either."""
    if not any(isinstance(action, Reply) for action in actions):
        return Answer(f"/{name}", actions)
    if _is_one_too_many(conversation):
        return Answer(f"/{name}: one too many for a reply", (_reaction(conversation),))
    return Answer(f"/{name}", tuple(_counted(action, conversation) for action in actions))


def _counted(action: Action, conversation: Conversation) -> Action:
    if not isinstance(action, Reply):
        return action
    return action.model_copy(update={"body": f"{refusal_mark(conversation.by)}\n{action.body}"})


def _is_one_too_many(conversation: Conversation) -> bool:
    comments = conversation.look.bot_comments(conversation.event.issue.number)
    return is_one_too_many(comments, conversation.by, conversation.now)


def _reaction(conversation: Conversation) -> React:
    return React(comment=conversation.event.comment.id, content="confused")


def _told(refusal: WrongUse | Refused, usage: Sequence[str]) -> str:
    if isinstance(refusal, Refused):
        more = f" {_sentence(refusal.what_to_do)}" if refusal.what_to_do else ""
        return f"**Not done:** {_ended(refusal.why)}{more}"
    lines = [f"**Not understood:** {_ended(refusal.problem)} {_sentence(refusal.valid)}"]
    return "\n\n".join([*lines, *usage])


def _sentence(text: str) -> str:
    return _ended(text[:1].upper() + text[1:])


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
