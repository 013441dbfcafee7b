"""What fresh processes of both builds said of a status or a count that changed, as it is stored and told."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from baselines.series import UtcTime

ExactKind = Literal["newly failing", "fixed", "count change"]
ExactVerdict = Literal["confirmed", "flaky", "not the build", "without base", "not asked"]
_STANDS = ("confirmed", "without base", "not asked")  # what the night itself found is not refuted


class ExactMeasured(BaseModel):
    """One change, with how each process ended or what it counted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    test: str
    channel: str = ""  # of a count
    kind: ExactKind
    verdict: ExactVerdict
    base: UtcTime | None = None  # the night of the build that it was held against
    before: tuple[str, ...] = ()
    tonight: tuple[str, ...] = ()
    settled: bool = False  # found on as many nights as the rules want: it may be filed

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against it."""
        return self.verdict in _STANDS

    @property
    def sentence(self) -> str:
        """What came of it."""
        name = f"{self.test} {self.channel}".rstrip()
        now, before = _told(self.tonight), _told(self.before)
        then = f"the build of {self.base:%Y-%m-%d %H:%M}" if self.base else "the build from before"
        said = {
            "confirmed": f"confirmed: tonight's build gives {now}, {then} {before}",
            "flaky": f"flaky, and not filed: tonight's build gives {now}" + (f", {then} {before}" if before else ""),
            "not the build": f"not the build's doing: tonight's build gives {now}, "
            + (f"{then} {before} tonight too" if before else f"and {then} is the same one"),
            "without base": f"tonight's build gives {now}; no build from before can be had to hold it against",
            "not asked": "not asked again: too many others changed tonight, or it was flaky lately",
        }
        return f"{self.kind}: {name}: {said[self.verdict]}"


def _told(ends: tuple[str, ...]) -> str:
    """`3 x crash`, or each where they differ."""
    if ends and len(set(ends)) == 1:
        return f"{len(ends)} x {ends[0]}"
    return ", ".join(ends)
