"""The cache keeps its size, removes nothing that is in use, and says so when the disk is full."""

import errno
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from package_index import tiny_torch, wheel

from torchbenchmark.builds import cache as cache_module
from torchbenchmark.builds.build_errors import NoSpace
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.cache_records import SourceRecord
from torchbenchmark.builds.eviction import items, shrink
from torchbenchmark.builds.provide import provide
from torchbenchmark.builds.settings import BuildSettings, GitSettings
from torchbenchmark.errors import BenchmarkError

ROOT = Path(__file__).resolve().parents[3]
KIB = 1024


@pytest.fixture
def filled(cache, tmp_path):
    """A cache with three wheels of 100 KiB, of which the first was used longest ago."""
    wheels = []
    for number in range(3):
        path = tmp_path / f"torch-2.{number}-py3-none-any.whl"
        path.write_bytes(bytes([number]) * 100 * KIB)
        wheels.append(cache.keep_wheel(path))
        os.utime(cache.wheel_path(wheels[-1]).parent, (number, number))
    return wheels


def test_what_was_used_longest_ago_is_removed_until_the_cache_is_under_its_limit(cache, filled):
    assert shrink(cache, 1000 * KIB) == []
    (removed,) = shrink(cache, 250 * KIB)
    assert removed.key == filled[0].sha256
    assert [cache.wheel_path(one).exists() for one in filled] == [False, True, True]
    cache.touch_wheels(filled[1:2])
    (removed,) = shrink(cache, 150 * KIB)
    assert removed.key == filled[2].sha256


def test_what_is_in_use_or_being_made_stays_though_the_limit_is_passed(cache, filled):
    with cache.use(f"wheel-{filled[0].sha256}"), cache.making(f"wheel-{filled[1].sha256}"):
        assert [item.key for item in shrink(cache, 0)] == [filled[2].sha256]
    assert [item.key for item in shrink(cache, 0)] == [filled[0].sha256, filled[1].sha256]


def test_the_use_of_a_process_that_is_killed_ends_with_it(cache, filled):
    name = f"wheel-{filled[0].sha256}"
    script = "import sys, time; from pathlib import Path; from torchbenchmark.builds.cache import BuildCache; "
    script += "lease = BuildCache.open(Path(sys.argv[1])).use(sys.argv[2]); print('held', flush=True); time.sleep(600)"
    user = subprocess.Popen(
        [sys.executable, "-c", script, str(cache.folder), name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert user.stdout is not None and user.stdout.readline() == b"held\n"
    assert filled[0].sha256 not in [item.key for item in shrink(cache, 0)]
    user.kill()
    user.wait()
    assert [item.key for item in shrink(cache, 0)] == [filled[0].sha256]


def test_a_new_build_makes_room_by_what_is_older_and_not_by_itself(index, cache, settings):
    index.add("torch", "2.12.0")
    index.add("torch", "2.13.0")
    tiny = BuildCache.open(cache.folder, max_gib=0)
    with provide("2.12.0", tiny, settings) as old:
        with provide("2.13.0", tiny, settings) as new:
            assert old.interpreter.exists() and new.interpreter.exists()
        assert old.interpreter.exists()
    with provide("2.13.0", tiny, settings) as new:
        assert new.interpreter.exists() and not old.interpreter.exists()
    assert {item.kind for item in items(tiny)} == {"environment", "wheel"}
    # Of an environment and its wheel that were used together, the environment goes first.
    assert [item.kind for item in items(tiny)][-2:] == ["environment", "wheel"]


def test_what_a_killed_installation_left_is_removed(cache, tmp_path):
    half = cache.environment_folder("0" * 64)
    half.mkdir()
    (half / "python").touch()
    (cache.folder / "work" / "abandoned").mkdir()
    shrink(cache)
    assert not half.exists() and list((cache.folder / "work").iterdir()) == []


def test_a_folder_of_others_is_no_cache_and_left_alone(tmp_path):
    (tmp_path / "thesis").write_text("1")
    with pytest.raises(BenchmarkError, match="is not empty and no cache of builds"):
        BuildCache.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_folder_and_limit_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "here"))
    monkeypatch.setenv("TORCHBENCH_BUILDS_MAX_GIB", "2.5")
    opened = BuildCache.open()
    assert (opened.folder, opened.max_bytes) == (tmp_path / "here", int(2.5 * 2**30))
    assert opened.folder.stat().st_mode & 0o777 == 0o700
    for text in ("much", "-1", "nan", "inf"):
        monkeypatch.setenv("TORCHBENCH_BUILDS_MAX_GIB", text)
        with pytest.raises(BenchmarkError, match="GiB"):
            BuildCache.open()


def test_wheels_that_are_not_those_of_their_record_are_not_taken_over(cache, filled, tmp_path):
    record = SourceRecord(key="a" * 64, address="release:torch==2.0", ended=datetime.now(UTC), wheels=(filled[0],))
    other = BuildCache.open(tmp_path / "other", max_gib=1)
    (tmp_path / "forged").mkdir()
    forged = tmp_path / "forged" / filled[0].file
    forged.write_bytes(b"x" * filled[0].bytes)
    with pytest.raises(BenchmarkError, match="has the SHA-256"):
        other.import_source(record, [forged])
    with pytest.raises(BenchmarkError, match=r"the wheel torch-2\.0-py3-none-any\.whl is missing"):
        other.import_source(record, [])
    assert other.sources() == [] and items(other) == []


def assert_nothing_half(cache: BuildCache) -> None:
    for name in ("work", "environments", "sources", "failures"):
        assert list((cache.folder / name).iterdir()) == [], name
    assert [path for path in (cache.folder / "wheels").rglob("*") if path.is_file() and path.name.startswith(".")] == []


def test_a_build_command_that_finds_the_disk_full_is_no_failure_of_the_commit(index, cache, settings, tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    subprocess.run([*run, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run([*run, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
    for line in ("cat /dev/zero > /dev/full", "ulimit -f 8; cat /dev/zero > large"):
        full = settings.model_copy(update={"git": GitSettings(command=line)})
        with pytest.raises(NoSpace, match="no space for the build"):
            provide(f"git:{repository}@main", cache, full)
        assert_nothing_half(cache)


LIMITED = """
import resource, signal, sys
from pathlib import Path
from torchbenchmark.builds.build_errors import NoSpace
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import provide
from torchbenchmark.builds.settings import BuildSettings
limit = int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    provide(sys.argv[3], BuildCache.open(Path(sys.argv[1])), BuildSettings.model_validate_json(sys.argv[2]))
except NoSpace as error:
    print("NoSpace:", error)
"""


@pytest.mark.parametrize("address", ["release", "url"])
def test_a_limit_on_the_size_of_files_is_told_as_no_space_and_nothing_half_stays(
    index, cache, settings, tmp_path, address
):
    """The real limit of the system, in a process of its own: pip, and then our own download, cannot write the wheel."""
    files = {**tiny_torch("2.12.0"), "torch/large.txt": "0123456789abcdef" * 40_000}
    offered = index.add("torch", "2.12.0", files=files)
    assert len(offered.content) > 500_000
    text = "release:torch==2.12.0" if address == "release" else f"url:{index.address}/files/{offered.name}"
    limited = subprocess.run(
        [sys.executable, "-c", LIMITED, str(cache.folder), settings.model_dump_json(), text, str(300_000)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert limited.stdout.splitlines()[-1].startswith("NoSpace:"), limited.stdout + limited.stderr
    assert_nothing_half(cache)
    provide(text, cache, settings).close()


def test_a_disk_that_is_full_when_wheels_are_taken_over_is_told_and_leaves_nothing(
    cache, filled, tmp_path, monkeypatch
):
    record = SourceRecord(key="a" * 64, address="release:torch==2.0", ended=datetime.now(UTC), wheels=(filled[0],))
    other = BuildCache.open(tmp_path / "other", max_gib=1)
    copyfile = shutil.copyfile

    def full(source, target):
        copyfile(source, target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    with monkeypatch.context() as patch:
        patch.setattr(cache_module.shutil, "copyfile", full)
        with pytest.raises(NoSpace, match=r"GiB are free\); make room, or shrink the cache with `torchbench builds gc"):
            other.import_source(record, [cache.wheel_path(filled[0])])
    assert_nothing_half(other)
    assert items(other) == []
    other.import_source(record, [cache.wheel_path(filled[0])])
    assert other.has_wheels(record)


def test_a_wheel_is_kept_once_under_its_sha256(cache, tmp_path):
    content = wheel("torch", "2.12.0", "py3-none-any", tiny_torch("2.12.0"), ())
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "torch-2.12.0-py3-none-any.whl").write_bytes(content)
    first, second = (cache.keep_wheel(tmp_path / name / "torch-2.12.0-py3-none-any.whl") for name in ("a", "b"))
    assert first == second
    assert [path.read_bytes() for path in (cache.folder / "wheels").rglob("*.whl")] == [content]


def test_settings_have_the_numpy_of_the_driver_unless_they_say_otherwise():
    (requirement,) = BuildSettings().requirements
    assert requirement.startswith("numpy==")
