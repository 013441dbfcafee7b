"""What runs of tests come to that is compared exactly, of records that are made up."""

from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from bot.bisection import exact_instruments
from bot.bisection.document import Asked, Visit
from bot.bisection.exact_instruments import ExactTests
from bot.bisection.script import CannotMeasure
from torchbenchmark.records import Channel, Process, Record, Status, Workload

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Request:
    rounds: int = 0
    processes: int = 0
    python: str = ""


def record(test: str, *ends: int | str) -> Record:
    """An end is a count of operators, or a status."""
    processes = [
        Process(
            round=number,
            index=0,
            zygote="z",
            start_method="fork",
            status=Status.OK if isinstance(end, int) else Status(end),
            reason="" if isinstance(end, int) else f"why {number}",
            started=NOW,
            seconds=1,
            channels={"operators": Channel(unit="1", samples=(end,) * 3, median=end, mean=end, p20=end)}
            if isinstance(end, int)
            else {},
        )
        for number, end in enumerate(ends, 1)
    ]
    failed = next((one for one in processes if one.status is not Status.OK), None)
    status, reason = (failed.status, failed.reason) if failed else (Status.OK, "")
    workload = Workload(version="1", hash="0")
    return Record(
        run="r", test=test, workload=workload, status=status, reason=reason, ended=NOW, processes=tuple(processes)
    )


def measured(tmp_path, monkeypatch, compared: str, *runs: list[Record]) -> tuple[Visit, list[int]]:
    """A visit of three runs, of which each call of the engine gives the next records; and how many it was asked for."""
    left, rounds, kept = list(runs), [], []

    def start(request, out, reporter):
        assert not out.exists()
        rounds.append(request.rounds)
        return SimpleNamespace(records=tuple(left.pop(0)))

    monkeypatch.setattr(exact_instruments, "start_run", start)
    tests = SimpleNamespace(
        folder=tmp_path, request=Request(), provided=lambda commit: SimpleNamespace(interpreter="python")
    )
    asked = Asked(good="a", bad="b", compared=compared, channel="operators")
    instrument = ExactTests(tests, asked, lambda: nullcontext(None))
    visit = instrument.measure("a", Visit(number=4, commit="b", n=3), kept.append)
    assert kept[-1] == visit
    assert not left
    return visit, rounds


def outcomes(visit: Visit) -> list[str]:
    return [end.outcome for end in visit.ends]


def test_a_test_that_ends_ok_takes_one_run_of_three_rounds(tmp_path, monkeypatch):
    visit, rounds = measured(tmp_path, monkeypatch, "status", [record("t", 1, 1, 1)])
    assert (outcomes(visit), rounds) == (["ok"] * 3, [3])


def test_a_test_that_fails_has_a_run_for_each_of_its_failures(tmp_path, monkeypatch):
    runs = [[record("t", 1, "crash")], [record("t", "oom")]]
    visit, rounds = measured(tmp_path, monkeypatch, "status", *runs)
    assert (outcomes(visit), rounds) == (["ok", "crash", "oom"], [3, 1])
    assert [end.why for end in visit.ends] == ["", "why 2", "why 1"]


def test_of_several_tests_those_that_are_not_ok_are_told(tmp_path, monkeypatch):
    runs = [[record("t", 1, 1, 1), record("u", "error"), record("v", "crash")]] * 3
    visit, rounds = measured(tmp_path, monkeypatch, "status", *runs)
    assert (outcomes(visit), rounds) == (["u error, v crash"] * 3, [3, 2, 1])


def test_a_count_is_a_number_and_several_have_their_tests(tmp_path, monkeypatch):
    one, _ = measured(tmp_path, monkeypatch, "counts", [record("t", 7, 7, 8)])
    assert outcomes(one) == ["7", "7", "8"]
    several, _ = measured(tmp_path, monkeypatch, "counts", [record("t", 7, 7, 7), record("u", 0, 0, 0)])
    assert outcomes(several) == ["t 7, u 0"] * 3


def test_a_test_that_fails_counts_nothing_and_it_is_said_what_does(tmp_path, monkeypatch):
    with pytest.raises(CannotMeasure, match=r"t: crash: why 1; .* --status bisects that"):
        measured(tmp_path, monkeypatch, "counts", [record("t", "crash")])
