"""The store's promises, on the folder implementation."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines.errors import BaselineError
from baselines.store import open_store, update
from baselines.store.folder import FolderStore
from baselines.store.interface import check_key, check_prefix


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def test_an_object_is_read_back_as_it_was_created(store):
    store.create("a/b.txt", b"content")
    assert store.read("a/b.txt") == b"content"
    assert store.read_if_present("a/c.txt") is None
    with pytest.raises(BaselineError, match=r"there is no a/c\.txt"):
        store.read("a/c.txt")


def test_creating_the_same_bytes_again_succeeds_and_other_bytes_are_refused(store):
    store.create("a", b"one")
    store.create("a", b"one")
    with pytest.raises(BaselineError, match="immutable"):
        store.create("a", b"two")
    assert store.read("a") == b"one"


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "../a", "a/../b", ".", ".lock", "a/.hidden", "a b", "a\\b", "ä", "a\n", "a/b\0", "C:/x"],
)
def test_a_key_that_could_leave_the_store_or_is_no_s3_key_is_refused(store, key):
    for access in (store.read, store.read_versioned, lambda key: store.create(key, b"")):
        with pytest.raises(BaselineError, match="cannot be part of a key"):
            access(key)
    with pytest.raises(BaselineError, match="cannot be part of a key"):
        store.write_if(key, b"", None)


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


def test_a_list_is_sorted_and_its_prefix_need_not_end_at_a_slash(store):
    for key in ("runs/b/2026-02-01/x", "runs/a/2026-01-02/x", "runs/a/2026-02-01/x", "runs-old/x", "pins/a.json"):
        store.create(key, b"")
    assert store.list("runs/") == ["runs/a/2026-01-02/x", "runs/a/2026-02-01/x", "runs/b/2026-02-01/x"]
    assert store.list("runs/a/2026-02") == ["runs/a/2026-02-01/x"]
    assert store.list("runs") == [*["runs-old/x"], *store.list("runs/")]
    assert len(store.list("")) == 5
    assert store.list("nothing/here") == []
    with pytest.raises(BaselineError):
        store.list("../")


@settings(max_examples=50, deadline=None)
@given(
    st.sets(st.lists(st.sampled_from(["a", "ab", "b-1", "x.y"]), min_size=3, max_size=3).map("/".join), max_size=8),
    st.text(alphabet="ab-1/x.y", max_size=6),
)
def test_a_list_is_what_filtering_all_keys_by_the_prefix_would_give(tmp_path_factory, keys, prefix):
    try:
        check_prefix(prefix)
    except BaselineError:
        return
    store = FolderStore(tmp_path_factory.mktemp("store"))
    for key in keys:
        path = store.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    assert store.list(prefix) == sorted(key for key in keys if key.startswith(prefix))


def test_what_a_killed_writer_leaves_is_not_listed(store):
    store.create("a/b", b"")
    (store.root / ".incoming").write_bytes(b"torn")
    (store.root / "a" / ".b.tmp").write_bytes(b"torn")
    assert store.list("") == ["a/b"]
    store.create("a/c", b"whole")
    assert store.list("") == ["a/b", "a/c"]


def test_a_conditional_write_is_lost_if_the_object_is_not_what_was_read(store):
    assert store.write_if("a", b"1", None)
    assert not store.write_if("a", b"2", None)
    first = store.read_versioned("a")
    assert store.write_if("a", b"2", first.version)
    assert not store.write_if("a", b"3", first.version)
    assert not store.write_if("b", b"3", first.version)
    assert store.read("a") == b"2"


def test_an_update_that_always_loses_gives_up_with_an_error(store, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(store, "write_if", lambda *arguments: False)
    with pytest.raises(BaselineError, match="changed by others"):
        update(store, "a", lambda content: b"1")


COUNTING = """
import sys
from baselines.store import open_store, update
store = open_store(sys.argv[1])
for _ in range(25):
    update(store, "counter", lambda content: str(int(content or b"0") + 1).encode())
"""


def test_four_processes_counting_in_one_object_lose_nothing(store):
    counters = [subprocess.Popen([sys.executable, "-c", COUNTING, str(store.root)]) for _ in range(4)]
    assert [counter.wait(60) for counter in counters] == [0] * 4
    assert store.read("counter") == b"100"


WRITING = """
import itertools, sys
from baselines.store import open_store, update
store = open_store(sys.argv[1])
print("started", flush=True)
for number in itertools.count():
    update(store, "page", lambda content: str((number % 10)).encode() * 200_000)
    store.create(f"pages/{int(sys.argv[2])}-{number}", b"x" * 50_000)
"""


def test_a_writer_killed_at_any_moment_leaves_old_or_new_content_and_no_lock(store):
    chance = random.Random(7)
    for attempt in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(store.root), str(attempt)], stdout=subprocess.PIPE
        )
        assert writer.stdout.readline() == b"started\n"
        time.sleep(chance.uniform(0.0, 0.15))
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        writer.stdout.close()
        page = store.read_if_present("page")
        assert page is None or (len(page) == 200_000 and len(set(page)) == 1)
        assert all(len(store.read(key)) == 50_000 for key in store.list("pages/"))
        assert store.write_if(f"after/{attempt}", b"", None)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("s3://bucket/prefix", "bot"),
        ("gs://bucket", "no store of the kind gs://"),
        ("", "empty location"),
        ("file://host/folder", "whole path"),
    ],
)
def test_a_location_that_is_no_folder_is_told_in_plain_words(location, message):
    with pytest.raises(BaselineError, match=message):
        open_store(location)


def test_a_folder_is_opened_by_path_and_by_address(tmp_path):
    open_store(str(tmp_path)).create("a", b"1")
    assert open_store(f"file://{tmp_path}").read("a") == b"1"
    with pytest.raises(BaselineError, match="no such store"):
        open_store(str(tmp_path / "typo"), must_exist=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineError, match="is a file"):
        open_store(str(tmp_path / "file"))


def test_an_object_in_the_way_of_a_folder_is_an_error_and_not_a_traceback(store):
    store.create("a", b"")
    with pytest.raises(BaselineError, match="a/b"):
        store.create("a/b", b"")
    with pytest.raises(BaselineError, match="too long"):
        store.create("x" * 300, b"")
