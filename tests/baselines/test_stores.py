"""What every store promises, in a folder and in a bucket alike."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines.errors import BaselineError
from baselines.store import update
from baselines.store.interface import check_key


def test_an_object_is_read_back_as_it_was_created(any_store):
    any_store.create("a/b.txt", b"content")
    assert any_store.read("a/b.txt") == b"content"
    assert any_store.read_if_present("a/c.txt") is None
    with pytest.raises(BaselineError, match=r"there is no a/c\.txt"):
        any_store.read("a/c.txt")


def test_creating_the_same_bytes_again_succeeds_and_other_bytes_are_refused(any_store):
    any_store.create("a", b"one")
    any_store.create("a", b"one")
    with pytest.raises(BaselineError, match="immutable"):
        any_store.create("a", b"two")
    assert any_store.read("a") == b"one"


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "../a", "a/../b", ".", ".lock", "a/.hidden", "a b", "a\\b", "ä", "a\n", "a/b\0", "C:/x"],
)
def test_a_key_that_could_leave_the_store_or_is_no_s3_key_is_refused(any_store, key):
    for access in (any_store.read, any_store.read_versioned, lambda key: any_store.create(key, b"")):
        with pytest.raises(BaselineError, match="cannot be part of a key"):
            access(key)
    with pytest.raises(BaselineError, match="cannot be part of a key"):
        any_store.write_if(key, b"", None)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30))
def test_every_accepted_key_stays_inside_the_store(key):
    try:
        check_key(key)
    except BaselineError:
        return
    root = Path("/store")
    assert Path(os.path.normpath(root / key)).is_relative_to(root)
    assert Path(os.path.normpath(root / key)) == root / key != root


def test_a_list_is_sorted_and_its_prefix_need_not_end_at_a_slash(any_store):
    for key in ("runs/b/2026-02-01/x", "runs/a/2026-01-02/x", "runs/a/2026-02-01/x", "runs-old/x", "pins/a.json"):
        any_store.create(key, b"")
    assert any_store.list("runs/") == ["runs/a/2026-01-02/x", "runs/a/2026-02-01/x", "runs/b/2026-02-01/x"]
    assert any_store.list("runs/a/2026-02") == ["runs/a/2026-02-01/x"]
    assert any_store.list("runs") == [*["runs-old/x"], *any_store.list("runs/")]
    assert len(any_store.list("")) == 5
    assert any_store.list("nothing/here") == []
    with pytest.raises(BaselineError):
        any_store.list("../")


def test_a_conditional_write_is_lost_if_the_object_is_not_what_was_read(any_store):
    assert any_store.write_if("a", b"1", None)
    assert not any_store.write_if("a", b"2", None)
    first = any_store.read_versioned("a")
    assert any_store.write_if("a", b"2", first.version)
    assert not any_store.write_if("a", b"3", first.version)
    assert not any_store.write_if("b", b"3", first.version)
    assert any_store.read("a") == b"2"


def test_an_update_that_always_loses_gives_up_with_an_error(any_store, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(any_store, "write_if", lambda *arguments: False)
    with pytest.raises(BaselineError, match="changed by others"):
        update(any_store, "a", lambda content: b"1")


COUNTING = """
import sys
from baselines.store import open_store, update
store = open_store(sys.argv[1])
for _ in range(25):
    update(store, "counter", lambda content: str(int(content or b"0") + 1).encode())
"""


def test_four_processes_counting_in_one_object_lose_nothing(any_store):
    counters = [subprocess.Popen([sys.executable, "-c", COUNTING, any_store.location]) for _ in range(4)]
    assert [counter.wait(60) for counter in counters] == [0] * 4
    assert any_store.read("counter") == b"100"


def test_a_file_is_stored_once_and_comes_back_whole(any_store, tmp_path):
    path, back = tmp_path / "torch.whl", tmp_path / "back" / "torch.whl"
    path.write_bytes(os.urandom(3 * 2**20 + 7))
    back.parent.mkdir()
    assert any_store.size("wheels/1/torch.whl") is None
    assert not any_store.read_to_file("wheels/1/torch.whl", back)
    assert list(back.parent.iterdir()) == []
    assert any_store.create_from_file("wheels/1/torch.whl", path)
    assert any_store.size("wheels/1/torch.whl") == path.stat().st_size
    assert any_store.read_to_file("wheels/1/torch.whl", back)
    assert back.read_bytes() == path.read_bytes() == any_store.read("wheels/1/torch.whl")
    path.write_bytes(b"other")
    assert not any_store.create_from_file("wheels/1/torch.whl", path)
    assert any_store.read("wheels/1/torch.whl") == back.read_bytes()
    assert [path.name for path in back.parent.iterdir()] == ["torch.whl"]
    assert any_store.list("") == ["wheels/1/torch.whl"]


def test_a_file_that_cannot_be_read_or_written_is_an_error_that_names_it(any_store, tmp_path):
    with pytest.raises(BaselineError, match=r"wheels/1: .*No such file"):
        any_store.create_from_file("wheels/1", tmp_path / "none.whl")
    any_store.create("wheels/1", b"content")
    with pytest.raises(BaselineError, match=r"wheels/1: .*No such file"):
        any_store.read_to_file("wheels/1", tmp_path / "no folder" / "file.whl")
    with pytest.raises(BaselineError, match="cannot be part of a key"):
        any_store.create_from_file("../wheels", tmp_path / "none.whl")
