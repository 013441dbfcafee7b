"""A culprit that is taken back on the bad end, in a clone of our own."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from small_repository import SmallRepository

from bot.bisection.reverting import DoesNotApply, Reverts
from bot.bisection.worktrees import Worktrees
from bot.errors import BotError


@pytest.fixture
def repository(tmp_path, monkeypatch) -> SmallRepository:
    """`b` is changed by c1 and by the branch of the merge m, `a` by c1 and by c3."""
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    made = SmallRepository(tmp_path / "project")

    def commit(tag: str, **files: str) -> None:
        for name, text in files.items():
            (made.folder / name).write_text(text)
        made.git("add", "--all")
        made.git("commit", "--quiet", "-m", tag)
        made.git("tag", tag)

    commit("c0", a="0\n", b="0\n", d="0\n")
    commit("c1", a="1\n", b="1\n")
    made.git("checkout", "--quiet", "-b", "side")
    commit("b1", b="side\n")
    commit("b2", d="side\n")
    made.git("checkout", "--quiet", "main")
    commit("c2", e="2\n")
    made.git("merge", "--quiet", "--no-ff", "-m", "m", "side")
    made.git("tag", "m")
    commit("c3", a="3\n")
    return made


@pytest.fixture
def reverts(repository, tmp_path):
    with ExitStack() as leases:
        yield Reverts(repository.folder, tmp_path / "reverts", leases)


def contents(repository: SmallRepository, commit: str, folder: Path) -> dict[str, str]:
    """Of a checkout of a commit, which is made as a build is."""
    with ExitStack() as leases:
        trees = Worktrees(repository.folder, folder, "true", 60, leases)
        assert trees.build(commit).ok
        return {path.name: path.read_text() for path in trees.source(commit).glob("?")}


def test_a_commit_that_reverts_cleanly_can_be_built_and_is_the_same_each_time(repository, reverts, tmp_path):
    before = repository.fingerprint()
    bad, culprit = (repository.git("rev-parse", name) for name in ("c3", "c2"))

    commit = reverts(bad, culprit, merge=False)

    assert reverts(bad, culprit, merge=False) == commit
    assert contents(repository, commit, tmp_path / "trees") == {"a": "3\n", "b": "side\n", "d": "side\n"}
    assert repository.fingerprint() == before


def test_of_a_merge_all_that_it_brought_in_is_taken_back(repository, reverts, tmp_path):
    bad, culprit = (repository.git("rev-parse", name) for name in ("c3", "m"))
    commit = reverts(bad, culprit, merge=True)
    found = contents(repository, commit, tmp_path / "trees")
    assert found == {"a": "3\n", "b": "1\n", "d": "0\n", "e": "2\n"}


def test_what_later_commits_have_changed_does_not_revert_and_is_named(repository, reverts):
    bad, culprit = (repository.git("rev-parse", name) for name in ("c3", "c1"))
    with pytest.raises(DoesNotApply, match=r"does not revert cleanly: CONFLICT \(content\): Merge conflict in a"):
        reverts(bad, culprit, merge=False)


def test_what_was_taken_back_already_does_not_revert(repository, reverts):
    repository.git("revert", "--no-edit", "c3")
    with pytest.raises(DoesNotApply):
        reverts(repository.git("rev-parse", "main"), repository.git("rev-parse", "c3"), merge=False)


def test_a_full_disk_is_not_held_against_the_commit(repository, reverts, monkeypatch):
    bad, culprit = (repository.git("rev-parse", name) for name in ("c3", "c1"))
    monkeypatch.setattr("bot.bisection.reverting.says_full", lambda lines: bool(lines))
    with pytest.raises(BotError, match="the disk is full") as told:
        reverts(bad, culprit, merge=False)
    assert not isinstance(told.value, DoesNotApply)
