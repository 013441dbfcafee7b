"""Whether anything of a night is to be measured: its rules are gone through with a bench that measures nothing."""

import dataclasses
from collections.abc import Sequence

from baselines.confirming.closing import AskedClosing, ask_closings
from baselines.confirming.rules import Rules
from bot.confirming.confirmation import Looked, confirm_looked


class Asked(Exception):
    """Something would be measured."""


class NoBench:
    """A bench that measures nothing, and says so at the first ask."""

    runners = 1

    def _ask(self, *args: object, **kwargs: object) -> None:
        raise Asked

    has = pairs = again = one_by_one = _ask  # type: ignore[assignment]


def asks_something(looked: Looked, rules: Rules) -> bool:
    """Whether the night has something to measure. What it leaves behind stays as it was."""
    try:
        confirm_looked(with_a_state_of_its_own(looked), NoBench(), rules)
    except Asked:
        return True
    return False


def ask_something(closings: Sequence[AskedClosing], head: str) -> bool:
    """Whether something is to be measured before these alerts are closed."""
    try:
        ask_closings(closings, head, NoBench(), Rules())
    except Asked:
        return True
    return False


def with_a_state_of_its_own(looked: Looked) -> Looked:
    return dataclasses.replace(looked, state=looked.state.model_copy(deep=True))
