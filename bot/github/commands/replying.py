"""The reply to a comment: one, whatever job is started again."""

from collections.abc import Callable, Sequence

from bot.github.actions import Key, Reply
from bot.github.commands.command import Conversation, WrongUse
from bot.github.issue import key_of
from torchbenchmark.foreign_text import inline_code


def reply(conversation: Conversation, body: str) -> Reply:
    """Below the comment's issue or pull request."""
    return Reply(number=conversation.event.issue.number, key=reply_key(conversation), body=body)


def reply_key(conversation: Conversation, what: str = "comment") -> Key:
    """Of the comment: all that is done because of it is done once."""
    event = conversation.event
    return key_of(what, event.repository.full_name, str(event.comment.id))


def no_words(command: str) -> Callable[[Sequence[str]], None]:
    """The parser of a command that takes none."""

    def parse(words: Sequence[str]) -> None:
        if words:
            raise WrongUse(
                f"`{command}` takes no words, and {inline_code(' '.join(words))} stands there", f"say `{command}`"
            )

    return parse
