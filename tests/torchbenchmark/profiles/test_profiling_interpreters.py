"""Profiling builds that are there: what a kill has left is gone on with, unless it is of another ground or machine."""

from types import SimpleNamespace

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.planning import OtherGround
from torchbenchmark.profiles import measuring
from torchbenchmark.profiles.measuring import profile_interpreters


class Header(SimpleNamespace):
    def model_copy(self, update):
        return Header(**{**vars(self), **update})


@pytest.fixture
def calls(monkeypatch):
    """What `measure_pairs` was called with: whether its file was there, and the header."""
    seen = []

    def measure(request, header, interpreters, out, reporter, *, resume, traces):
        seen.append((out.exists(), header.profiled, resume, str(request.base), str(request.head)))
        if out.exists() and out.read_text() == "of another driver":
            raise OtherGround(f"{out}: was begun on environment 1, this is 2")
        return "pairs"

    monkeypatch.setattr(measuring, "inspect_sides", lambda request, pythons, subject: pythons)
    monkeypatch.setattr(measuring, "plan_pairs", lambda *arguments: Header(machine_class="cpu-4t"))
    monkeypatch.setattr(measuring, "measure_pairs", measure)
    monkeypatch.setattr(measuring, "attribute_pairs", lambda pairs, level, touched: pairs)
    return seen


def profiled(out, **options):
    run = SimpleNamespace(subject="torch", model_folders=())
    notes = []
    reporter = SimpleNamespace(note=notes.append)
    addresses = {"base": "good", "head": "slow"}
    found = profile_interpreters(run, addresses, {"base": out, "head": out}, out, reporter, **options)
    assert found.attribution == "pairs"
    return notes


def test_what_was_begun_is_gone_on_with_as_a_profile(calls, tmp_path):
    out = tmp_path / "profiles.jsonl"
    out.write_text("of this ground")
    assert profiled(out) == [] and calls == [(True, True, True, "good", "slow")]


def test_what_was_begun_on_another_ground_is_told_and_measured_anew(calls, tmp_path):
    out = tmp_path / "profiles.jsonl"
    out.write_text("of another driver")
    (note,) = profiled(out)
    assert note.startswith("measured anew: ") and [there for there, *_ in calls] == [True, False]


def test_a_machine_of_another_class_profiles_nothing(calls, tmp_path):
    with pytest.raises(BenchmarkError, match="this machine is of class cpu-4t, and not cpu-8t"):
        profiled(tmp_path / "profiles.jsonl", machine_class="cpu-8t")
    assert calls == []
