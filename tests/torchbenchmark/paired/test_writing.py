"""One process at a time measures into a file of pairs."""

import fcntl

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired import measurement


def test_a_file_that_another_measures_into_is_refused_and_is_free_afterwards(tmp_path):
    out = tmp_path / "pairs.jsonl"
    with measurement._writing(out) as scratch:
        assert scratch.is_dir()
        with (
            pytest.raises(BenchmarkError, match=r"pairs\.jsonl: another torchbench measures into it"),
            measurement._writing(out),
        ):
            pass
        assert scratch.is_dir()
    with measurement._writing(out):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_its_last_holder_has_removed_meanwhile_holds_nothing(tmp_path, monkeypatch):
    out, flock = tmp_path / "pairs.jsonl", fcntl.flock

    def after_the_other_has_ended(lock, how):
        (tmp_path / ".pairs.jsonl.lock").unlink()
        flock(lock, how)

    monkeypatch.setattr(measurement.fcntl, "flock", after_the_other_has_ended)
    with pytest.raises(BenchmarkError, match="another torchbench measures into it"), measurement._writing(out):
        pass
