"""A repository that only calls the workflows of the bot."""

import re
import subprocess
from pathlib import Path

from github_servers import REPOSITORY

CLONED = "acme/torchbench-sentinel"


def their_repository(folder: Path) -> None:
    """A repository with one commit, which takes a push as GitHub does."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Ours\n")
    git = ("git", "-C", folder, "-c", "user.name=they", "-c", "user.email=they@example.org")
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("config", "receive.denyCurrentBranch", "updateInstead"),
        ("remote", "add", "origin", f"https://github.com/{REPOSITORY}"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "first"),
    ):
        subprocess.run([*git, *command], check=True)


def commit_without_what_act_does_not_know(checkout: Path) -> None:
    """Commit all that is there, without the key that no program but GitHub's own knows yet."""
    for path in (checkout / ".github" / "workflows").glob("*.yml"):
        path.write_text(re.sub(r"^cache-mode: .*\n", "", path.read_text(), flags=re.MULTILINE))
    git = ("git", "-C", checkout, "-c", "user.name=they", "-c", "user.email=they@example.org")
    for command in (("add", "--all"), ("commit", "--quiet", "--message", "for act")):
        subprocess.run([*git, *command], check=True)
