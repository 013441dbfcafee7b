"""A commit becomes a wheel by a command of the configuration, in a checkout of its own, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from package_index import tiny_torch, wheel

from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound, BuildUnavailable
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import exact_address, provide
from torchbenchmark.builds.settings import BuildSettings, GitSettings
from torchbenchmark.environment import inspect_interpreter

ROOT = Path(__file__).resolve().parents[3]
COPY = ("/bin/cp", "-r", "built/.", "{out}")  # the wheel of each commit lies in it
IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


class Repository:
    """A repository whose commits bring wheels of torch."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        ended = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder,
            env={**os.environ, **IDENTITY},
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout.strip()

    def commit(self, version: str, files: dict[str, str] | None = None) -> str:
        self.write({"version": version, **(files or {})})
        built = self.folder / "built"
        built.mkdir(exist_ok=True)
        for old in built.iterdir():
            old.unlink()
        content = wheel("torch", version, "py3-none-any", tiny_torch(version), ("numpy",))
        (built / f"torch-{version}-py3-none-any.whl").write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", version)
        return self.git("rev-parse", "HEAD")

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "pytorch")


def building(settings: BuildSettings, command: object, **keys: object) -> BuildSettings:
    return settings.model_copy(update={"git": GitSettings(command=command, **keys)})


def version_in(interpreter: Path) -> str:
    return inspect_interpreter(interpreter).build.version


def test_a_commit_is_built_once_and_a_branch_means_the_commit_that_it_is_at(index, cache, settings, repository):
    settings = building(settings, COPY)
    first = repository.commit("2.14.0a0+first")
    with provide(f"git:{repository.folder}@main", cache, settings) as build:
        assert build.address == f"git:{repository.folder}@{first}"
        assert version_in(build.interpreter) == "2.14.0a0+first"
    second = repository.commit("2.14.0a0+second")
    with provide(f"git:{repository.folder}@main", cache, settings) as build:
        assert build.address.endswith(second)
        assert version_in(build.interpreter) == "2.14.0a0+second"
    repository.git("tag", "v2.14.0", first)
    for name in ("v2.14.0", first[:8], "pull/1/head"):
        if name.startswith("pull"):
            repository.git("update-ref", "refs/pull/1/head", first)
        assert exact_address(f"git:{repository.folder}@{name}", cache, settings) == f"git:{repository.folder}@{first}"

    # A full commit that was built needs no repository any more.
    repository.folder.rename(repository.folder.with_name("gone"))
    with provide(f"git:{repository.folder}@{first}", cache, settings) as build:
        assert version_in(build.interpreter) == "2.14.0a0+first"
    with pytest.raises(BuildUnavailable, match="could not be fetched"):
        provide(f"git:{repository.folder}@main", cache, settings)


def test_a_commit_that_no_branch_has_is_asked_for_by_itself_and_one_that_is_nowhere_is_not_found(
    index, cache, settings, repository
):
    settings = building(settings, COPY)
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    lost = repository.commit("2.14.0a0+lost")
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit("2.14.0a0+other")
    repository.git("branch", "-D", "main")
    with provide(f"git:{repository.folder}@{lost}", cache, settings) as build:
        assert version_in(build.interpreter) == "2.14.0a0+lost"
    for revision in ("0" * 40, "nowhere"):
        with pytest.raises(BuildNotFound, match=f"has no commit(, branch or tag)? {revision}"):
            provide(f"git:{repository.folder}@{revision}", cache, settings)
    assert cache.failures() == []


def test_the_command_knows_where_it_is_and_what_to_leave_where(index, cache, settings, repository, monkeypatch):
    commit = repository.commit("2.14.0")
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    line = (
        'set -e; test "$(git rev-parse HEAD)" = "$TORCHBENCH_BUILD_COMMIT"; test "$PWD" = "$TORCHBENCH_BUILD_SOURCE"; '
        'test -z "$GITHUB_TOKEN"; test "$MAX_JOBS" = 2; test -d "$TMPDIR"; "$TORCHBENCH_BUILD_PYTHON" --version; '
        'git remote get-url origin; cp built/* "$TORCHBENCH_BUILD_OUT"'
    )
    settings = building(settings, line, variables={"MAX_JOBS": "2"})
    with provide(f"git:{repository.folder}@{commit}", cache, settings) as build:
        assert version_in(build.interpreter) == "2.14.0"
    (record,) = cache.sources()
    log = (cache.folder / "sources" / f"{record.key}.log").read_text()
    assert f"\n{repository.folder}\n" in log and "hunter2" not in log


def test_wheels_may_be_left_in_the_dist_folder_of_the_checkout(index, cache, settings, repository):
    repository.commit("2.14.0")
    with provide(
        f"git:{repository.folder}@main", cache, building(settings, ("/bin/cp", "-r", "built", "dist"))
    ) as build:
        assert version_in(build.interpreter) == "2.14.0"


def test_another_command_makes_another_build(index, cache, settings, repository):
    repository.commit("2.14.0")
    address = f"git:{repository.folder}@main"
    provide(address, cache, building(settings, COPY)).close()
    with pytest.raises(BuildFailed, match="could not be built"):
        provide(address, cache, building(settings, ("/bin/false",)))
    provide(address, cache, building(settings, COPY)).close()


def test_tools_of_the_command_are_installed_apart_from_the_build(index, cache, settings, repository):
    index.add("ninja", "1.13.0")
    repository.commit("2.14.0")
    line = 'python -c "import ninja" && cp built/* "$TORCHBENCH_BUILD_OUT"'
    with provide(f"git:{repository.folder}@main", cache, building(settings, line, tools=("ninja==1.13.0",))) as build:
        assert "ninja" not in inspect_interpreter(build.interpreter).distributions


def test_submodules_are_checked_out_from_addresses_relative_to_the_repository(
    index, cache, settings, repository, tmp_path
):
    third_party = Repository(tmp_path / "third_party")
    third_party.write({"kernel.txt": "fast"})
    third_party.git("add", "--all")
    third_party.git("commit", "--quiet", "-m", "kernel")
    repository.commit("2.14.0")
    repository.git("submodule", "--quiet", "add", "../third_party", "third_party")
    repository.git("commit", "--quiet", "-m", "submodule")
    line = 'grep fast third_party/kernel.txt && cp built/* "$TORCHBENCH_BUILD_OUT"'
    address = f"git:{repository.folder}@main"
    provide(address, cache, building(settings, line)).close()
    with pytest.raises(BuildFailed, match="could not be built"):
        provide(address, cache, building(settings, line, submodules=False))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("/bin/sh", "-c", "echo 'error: expected ;' >&2; exit 3"),
            r"could not be built \(exit 3\): error: expected ;",
        ),
        (("/bin/true",), r"left no wheel; it must write one into \$TORCHBENCH_BUILD_OUT or dist/"),
        ("echo no > $TORCHBENCH_BUILD_OUT/torch.whl", "'torch.whl': is not the name of a wheel"),
        ("ln -s /etc/passwd $TORCHBENCH_BUILD_OUT/torch-1-py3-none-any.whl", "left no wheel"),
        (("/no/such/compiler",), r"could not be built \(exit 127\)"),
    ],
)
def test_a_commit_that_does_not_build_fails_and_the_next_time_at_once(
    index, cache, settings, repository, command, said
):
    commit = repository.commit("2.14.0")
    settings = building(settings, command)
    with pytest.raises(BuildFailed, match=said) as first:
        provide(f"git:{repository.folder}@{commit}", cache, settings)
    assert first.value.log is not None and first.value.log.is_file()
    assert list((cache.folder / "work").iterdir()) == []
    with pytest.raises(BuildFailed, match="remembered from") as second:
        provide(f"git:{repository.folder}@main", cache, settings)
    assert second.value.remembered and second.value.lines == first.value.lines


def test_a_login_that_a_command_writes_into_its_log_is_not_kept(index, cache, settings, repository):
    repository.commit("2.14.0")
    line = "echo 'fatal: https://someone:hunter2@example.org/submodule is gone' >&2; exit 1"
    with pytest.raises(BuildFailed, match=r"https://\*\*\*@example\.org/submodule is gone") as error:
        provide(f"git:{repository.folder}@main", cache, building(settings, line))
    assert error.value.log is not None and "example.org/submodule" in error.value.log.read_text()
    kept = [path for path in cache.folder.rglob("*") if path.is_file()]
    assert not [path for path in kept if b":hunter2@" in path.read_bytes()]


def test_a_build_that_takes_too_long_is_ended_with_all_that_it_started(index, cache, settings, repository, tmp_path):
    repository.commit("2.14.0")
    pids = tmp_path / "pids"
    line = f"setsid sh -c 'echo $$ >> {pids}; sleep 600' & echo $$ >> {pids}; sleep 600"
    with pytest.raises(BuildFailed, match=r"could not be built \(not done within 2 s\)"):
        provide(f"git:{repository.folder}@main", cache, building(settings, line, timeout_s=2))
    written = pids.read_text().split()
    assert len(written) == 2
    assert not [pid for pid in written if Path(f"/proc/{pid}").exists()]


def test_what_a_build_leaves_running_is_ended_with_it(index, cache, settings, repository, tmp_path):
    repository.commit("2.14.0")
    pid = tmp_path / "pid"
    line = f"setsid sh -c 'echo $$ > {pid}; sleep 600' & while [ ! -s {pid} ]; do sleep 0.1; done; "
    line += "cp built/* $TORCHBENCH_BUILD_OUT"
    provide(f"git:{repository.folder}@main", cache, building(settings, line)).close()
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


SCRIPT = """
import sys
from pathlib import Path
from torchbenchmark.builds.cache import BuildCache
from torchbenchmark.builds.provide import provide
from torchbenchmark.builds.settings import BuildSettings
settings = BuildSettings.model_validate_json(Path(sys.argv[2]).read_bytes())
with provide(sys.argv[3], BuildCache.open(Path(sys.argv[1])), settings) as build:
    print(build.interpreter)
"""


def start(tmp_path: Path, cache: BuildCache, settings: BuildSettings, address: str) -> subprocess.Popen[str]:
    (tmp_path / "settings.json").write_text(settings.model_dump_json())
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(cache.folder), str(tmp_path / "settings.json"), address],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> str:
    deadline = time.monotonic() + 120
    while not (path.is_file() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline and process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.05)
    return path.read_text()


def test_two_processes_that_ask_for_the_same_build_at_once_build_it_once(index, cache, settings, repository, tmp_path):
    repository.commit("2.14.0")
    count = tmp_path / "count"
    line = f"echo built >> {count}; sleep 2; cp built/* $TORCHBENCH_BUILD_OUT"
    address = f"git:{repository.folder}@main"
    both = [start(tmp_path, cache, building(settings, line), address) for _ in range(2)]
    said = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]
    assert count.read_text() == "built\n"
    assert any("waiting for another process" in text for text in said)


def test_a_driver_that_is_killed_leaves_no_process_and_the_next_one_builds_anew(
    index, cache, settings, repository, tmp_path
):
    repository.commit("2.14.0")
    pids = tmp_path / "pids"
    line = f"if [ -e {pids} ]; then cp built/* $TORCHBENCH_BUILD_OUT; exit; fi; "
    line += f"setsid sleep 600 & echo $$ $! > {pids}; wait"
    settings = building(settings, line)
    address = f"git:{repository.folder}@main"
    driver = start(tmp_path, cache, settings, address)
    started = wait_for(pids, driver).split()
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert list((cache.folder / "work").iterdir())
    with provide(address, cache, settings) as build:
        assert version_in(build.interpreter) == "2.14.0"
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert list((cache.folder / "work").iterdir()) == []
    assert cache.failures() == []


def test_a_wheel_that_was_removed_is_built_again_when_another_environment_wants_it(
    index, cache, settings, repository, tmp_path
):
    index.add("tqdm", "4.0")
    repository.commit("2.14.0")
    count = tmp_path / "count"
    settings = building(settings, f"echo built >> {count}; cp built/* $TORCHBENCH_BUILD_OUT")
    address = f"git:{repository.folder}@main"
    with provide(address, cache, settings) as build:
        (own,) = build.wheels
    cache.wheel_path(own).unlink()
    provide(address, cache, settings).close()
    assert count.read_text() == "built\n"
    richer = settings.model_copy(update={"requirements": (*settings.requirements, "tqdm==4.0")})
    provide(address, cache, richer).close()
    assert count.read_text() == "built\nbuilt\n"


def test_a_build_of_another_machine_is_taken_over_by_its_wheels(index, cache, settings, repository, tmp_path):
    commit = repository.commit("2.14.0")
    settings = building(settings, COPY)
    with provide(f"git:{repository.folder}@{commit}", cache, settings) as build:
        assert build.source is not None
        files = [cache.wheel_path(one) for one in build.wheels]
        record = type(build.source).model_validate_json(build.source.model_dump_json(by_alias=True))
    repository.folder.rename(tmp_path / "gone")
    other = BuildCache.open(tmp_path / "other", max_gib=1)
    other.import_source(record, files)
    with provide(f"git:{repository.folder}@{commit}", other, settings) as build:
        assert version_in(build.interpreter) == "2.14.0"
        assert build.interpreter.is_relative_to(tmp_path / "other")
