"""Lines of a history with merges: a search goes along first parents and then, if it ends at a merge, along its branch.

A history is the parents of each commit, the first of which is the line that was merged into (`git rev-list --parents`).
"""

from collections.abc import Mapping, Sequence

from bot.errors import BotError

History = Mapping[str, Sequence[str]]


def first_parent_line(history: History, good: str, bad: str) -> list[str]:
    """The commits from `good` to `bad` along first parents, both included, the oldest first.

    Raises BotError if `good` is not on that line: another good end, or one of a branch, has to be named.
    """
    line = [bad]
    while line[-1] != good:
        parents = _parents(history, line[-1])
        if not parents:
            raise BotError(f"bisection: {good} is not among the first parents of {bad}; name a good end that is")
        line.append(parents[0])
    return line[::-1]


def branches_of(history: History, merge: str) -> list[list[str]]:
    """For each branch that a merge brought in, its line: from where it left the main line to its last commit.

    The first commit of a line is its good end. Where the ends of every branch are equal, it is the merge itself that
    made the change: it is none of its parts, but their coming together. A commit that is no merge has no branches.
    """
    parents = _parents(history, merge)
    if len(parents) < 2:
        return []
    before = _ancestors(history, parents[0])
    lines = []
    for tip in parents[1:]:
        line = [tip]
        while line[-1] not in before:
            older = _parents(history, line[-1])
            if not older:
                break  # a history of its own, which has nothing in common: its first commit is the good end
            line.append(older[0])
        if len(line) > 1:
            lines.append(line[::-1])
    return lines


def _ancestors(history: History, commit: str) -> set[str]:
    """The commit and all that are in it, as far as the history goes."""
    found: set[str] = set()
    left = [commit]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left.extend(history.get(one, ()))
    return found


def _parents(history: History, commit: str) -> Sequence[str]:
    if commit not in history:
        raise BotError(f"bisection: the history ends before {commit}; fetch more of it")
    return history[commit]
