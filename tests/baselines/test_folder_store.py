"""What only a store in a folder can get wrong; test_stores.py has what every store promises."""

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
from baselines.store import open_store
from baselines.store.folder import FolderStore
from baselines.store.interface import check_prefix


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


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
        ("s3://UPPER/prefix", "not a name of a bucket"),
        ("s3://key:secret@bucket/prefix", "credentials do not belong"),
        ("gs://bucket", "no store of the kind gs://"),
        ("s3:///nightly", "s3:///nightly: names no bucket"),
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
