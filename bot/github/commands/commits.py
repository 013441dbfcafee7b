"""Which two commits a `/benchmark` compares: the head as it is when the comment is read, and its base.

That it is the head which the author of the comment saw is known by when anything was last pushed to its repository:
dates of commits can be forged. A fork's owner pushes at any moment, so there the comment must name the commit too.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.github.commands.asked import MERGE_BASE, SHORTEST_SHA, Asked
from bot.github.commands.command import Refused, WrongUse
from bot.github.looking import Looking, PullRequest
from torchbenchmark.foreign_text import inline_code

WHOLE_SHA = 40  # characters
_WHOLE = f"; with the whole of it, `sha=` and {WHOLE_SHA} characters, what is pushed meanwhile is no matter"


@dataclass(frozen=True)
class Commits:
    base: str
    base_is: Literal["merge-base", "named"]
    head: str
    head_repository: str


def commits_to_compare(asked: Asked, number: int, repository: str, commented: datetime, look: Looking) -> Commits:
    """Raises Refused where the head is not surely the one that was meant, or cannot be measured."""
    pull = look.pull_request(number)
    head_repository = _require_open(pull)
    is_fork = head_repository.casefold() != repository.casefold()
    _require_named(pull.head, asked.sha, is_fork)
    # Of a branch of this repository the whole commit is enough, as only those push to it who may write here: where many
    # push to many branches every minute, nothing else would ever be measured.
    if is_fork or len(asked.sha or "") < WHOLE_SHA:
        _require_unchanged(pull, commented, or_else="" if is_fork else _WHOLE)
    base, base_is = _base(asked.base, pull, look)
    if base == pull.head:
        raise Refused(f"base and head are both `{base}`", "there is nothing to compare")
    return Commits(base, base_is, pull.head, head_repository)


def _require_open(pull: PullRequest) -> str:
    """The head's repository."""
    if pull.is_merged:
        raise Refused("the pull request is merged", "what is merged, the nightly measures")
    if not pull.is_open:
        raise Refused("the pull request is closed", "open it again, and say the command once more")
    if pull.head_repository is None:
        raise Refused("the repository of the head is deleted", "push the branch to another, and open a pull request")
    return pull.head_repository


def _require_named(head: str, sha: str | None, is_fork: bool) -> None:
    if sha is None and is_fork:
        raise Refused(
            "the head is in a fork, so the command must name the commit that you have looked at",
            f"if that is the head of now, add `sha={head[:12]}` (at least {SHORTEST_SHA} characters)",
        )
    if sha is not None and not head.startswith(sha):
        raise Refused(
            f"the head is `{head[:12]}`, and not {inline_code(sha)}",
            "look at what was pushed, and say the command once more with that commit",
        )


def _require_unchanged(pull: PullRequest, commented: datetime, or_else: str) -> None:
    """`or_else`: what would be enough too."""
    if pull.head_pushed_at is not None and pull.head_pushed_at < commented:
        return
    when = "" if pull.head_pushed_at is None else f" at {pull.head_pushed_at:%H:%M:%S} UTC"
    raise Refused(
        f"something was pushed to the head's repository{when}, after the comment was written, so it is not sure which "
        "commit you have looked at",
        f"look at the head of now, `{pull.head[:12]}`, and say the command once more{or_else}",
    )


def _base(asked: str, pull: PullRequest, look: Looking) -> tuple[str, Literal["merge-base", "named"]]:
    if asked == MERGE_BASE:
        common = look.merge_base(pull.base, pull.head)
        if common is None:
            raise Refused(
                f"base `{pull.base[:12]}` and head `{pull.head[:12]}` have no commit in common",
                "name one to compare with, by `base=`",
            )
        return common, "merge-base"
    found = look.commit(asked)
    if found is None:
        raise WrongUse(
            f"`base=` {inline_code(asked)} is no commit and no branch here", f"say {MERGE_BASE}, a commit, or a branch"
        )
    return found, "named"
