"""What a difference of profiles comes to: the values that tables, pictures and issues are made of."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

AccountName = Literal["gpu", "host"]
Kind = Literal["kernel", "copy", "operator", "dispatch", "compiled", "python", "waiting", "others", "remainder"]
Verdict = Literal[
    "appeared",
    "vanished",
    "slower",
    "faster",
    "launched more often",
    "launched less often",
    "called more often",
    "called less often",
]
NO_CAUSE: tuple[Kind, ...] = ("waiting", "others", "remainder")  # they tell where time went, not why
CPU_SIDE: tuple[Kind, ...] = ("operator", "dispatch", "compiled", "python")


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Row(_Schema):
    """One part of an account. Seconds of one iteration, means over the pairs."""

    name: str  # of the operator, or of the kernel
    kind: Kind
    base: float
    head: float
    change: float
    low: float | None = None  # of the change, together with all other intervals
    high: float | None = None
    share: float | None = None  # of the account's change; None where that is within noise
    base_count: float | None = None  # launches or calls in an iteration
    head_count: float | None = None
    verdicts: tuple[Verdict, ...] = ()  # empty: within noise
    kernels: tuple["Row", ...] = ()  # of an operator on the GPU
    touched: tuple[str, ...] = ()  # paths that a change touched and that belong to the operator

    @property
    def found(self) -> bool:
        """Whether it is a cause that is told."""
        return bool(self.verdicts) and self.kind not in NO_CAUSE


class Account(_Schema):
    """Where the time of one clock went: the GPU's (kernels, copies) or the host's (an iteration's latency). The changes
    of the rows add up to that of the whole."""

    name: AccountName
    base: float
    head: float
    change: float
    low: float | None
    high: float | None
    decided: bool  # the interval excludes no change
    rows: tuple[Row, ...]

    def found(self) -> list[Row]:
        return [row for row in self.rows if row.found]

    def weight(self) -> float:
        """How much of the change is told by causes."""
        return abs(sum(row.change for row in self.found()))


class CountChange(_Schema):
    """An exact count of the whole test that is another on either side."""

    channel: str
    base: float
    head: float


class TestAttribution(_Schema):
    """One test; the account in which more is told stands first."""

    __test__ = False

    test: str
    head_test: str
    device: str
    pairs: int
    accounts: tuple[Account, ...] = ()
    counts: tuple[CountChange, ...] = ()
    reason: str = ""  # why there is none, or what is to be known of it

    def found(self) -> list[tuple[AccountName, Row]]:
        """The causes, the largest first: of the first account, then of the other."""
        return [(account.name, row) for account in self.accounts for row in account.found()]


class Attribution(_Schema):
    """All tests of one comparison; its intervals hold together with `level`."""

    level: float
    family: int
    tests: tuple[TestAttribution, ...]
