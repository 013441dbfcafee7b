"""How often an alert was right, by what people have said of it: the bot's own account of its precision."""

from collections.abc import Iterable
from dataclasses import dataclass

from bot.github.alert import Alert
from torchbenchmark.quantity import counted


@dataclass(frozen=True)
class Judged:
    """Alerts that a person has judged."""

    right: int  # accepted as a change that is there, or acknowledged and not called noise since
    wrong: int  # called noise

    @property
    def sentence(self) -> str:
        judged = self.right + self.wrong
        if not judged:
            return "no alert was judged by a person yet"
        return (
            f"{counted(judged, 'alert')} judged by people: {self.wrong} called noise, so a precision of "
            f"{self.right / judged:.0%}"
        )


def judged_by_people(alerts: Iterable[Alert]) -> Judged:
    """One that is merged into another is counted there."""
    each = [one for one in alerts if not one.merged_into]
    wrong = sum(one.noise is not None for one in each)
    right = sum(one.noise is None and (one.accepted is not None or one.acknowledged is not None) for one in each)
    return Judged(right, wrong)
