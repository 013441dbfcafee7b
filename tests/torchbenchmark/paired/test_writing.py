"""One process at a time measures into a file of pairs."""

import fcntl
import os
import resource
import signal
from pathlib import Path

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.paired import measurement
from torchbenchmark.records import append_line, replace_lines
from torchbenchmark.run_file import RunFile


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


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BenchmarkError, match=r"p\.jsonl: cannot be written: .*; name another"),
        measurement._writing(tmp_path / "file" / "p.jsonl"),
    ):
        pass


def test_a_pipe_a_device_or_a_folder_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/null")):
        for resume in (False, True):
            with pytest.raises(BenchmarkError, match="is no plain file"):
                measurement.require_free(path, resume=resume)
        with pytest.raises(BenchmarkError, match="is no plain file"):
            RunFile(path)


def test_a_disk_that_is_full_is_told_in_one_line_and_the_file_stays(tmp_path, make_process):
    path = tmp_path / "p.jsonl"
    replace_lines(path, [make_process()])
    before, limit = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), limit[1]))
    try:
        with pytest.raises(BenchmarkError, match=r"p\.jsonl: cannot be written: File too large"):
            append_line(path, make_process())
        with pytest.raises(BenchmarkError, match=r"p\.jsonl: cannot be written: File too large"):
            replace_lines(path, [make_process(), make_process()])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
