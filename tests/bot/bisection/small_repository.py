"""A repository whose program counts the steps of its loop and prints them, a little noisy: its "time" is no time, so a
test that measures it owes nothing to the machine. Some commits do not compile."""

import os
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada <b>@everyone</b>",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
# The driver is killed by the run whose number is in $KILL_AT: what it would have printed is lost, and nothing else.
PROGRAM = """import os, sys

def work():
    steps = 0
    for _ in range({loops}):
        steps += 1
    return steps

if __name__ == "__main__":
    with open(os.environ["JOURNAL"], "a+") as journal:
        journal.write("run " + os.environ["TORCHBENCH_BUILD_COMMIT"] + "\\n")
        journal.seek(0)
        runs = sum(line.startswith("run ") for line in journal)
    if str(runs) in os.environ.get("KILL_AT", "").split(","):
        os.kill(int(open(os.environ["DRIVER"]).read()), 9)
        sys.exit(1)
    print(work() * (1 + (os.urandom(1)[0] - 127.5) / 255 * {jitter}))
"""
COMPILE = """python3 -c "compile(open('work.py').read(), 'work.py', 'exec')\""""
BUILD = f'{COMPILE} && echo "build $TORCHBENCH_BUILD_COMMIT" >> "$JOURNAL"'
MEASURE = "python3 -S work.py"


class SmallRepository:
    """Commits 0 ... n of a main line, tagged `c0` ... `cn`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **IDENTITY},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def commit(self, name: str, loops: int, *, broken: bool = False, jitter: float = 0.02) -> str:
        text = PROGRAM.format(loops=loops, jitter=jitter) + f"# {name}\n" + ("def broken(:\n" if broken else "")
        (self.folder / "work.py").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", f"{name} @everyone `<script>`")
        self.git("tag", name)
        return self.git("rev-parse", "HEAD")

    def line(
        self, length: int, slower: Mapping[int, float] = {}, broken: Collection[int] = (), *, first: int = 0
    ) -> None:
        """Commits c`first` ... c`length`; `slower` names by which factor, and from which on."""
        for place in range(first, length + 1):
            loops = 10_000.0
            for at, factor in slower.items():
                loops *= factor if place >= at else 1
            self.commit(f"c{place}", round(loops), broken=place in broken)

    def merge(self, name: str, loops: Mapping[str, int], onto: str | None = None) -> str:
        """A branch of commits, by name and loops, merged into the main line without a conflict. `onto` names a commit
        that the main line gets meanwhile, which touches another file."""
        self.git("checkout", "--quiet", "-b", f"branch-of-{name}")
        for one, steps in loops.items():
            self.commit(one, steps)
        self.git("checkout", "--quiet", "main")
        if onto is not None:
            (self.folder / "other").write_text(onto)
            self.git("add", "--all")
            self.git("commit", "--quiet", "-m", onto)
            self.git("tag", onto)
        self.git("merge", "--quiet", "--no-ff", "-m", f"{name}: a merge", f"branch-of-{name}")
        self.git("tag", name)
        return self.git("rev-parse", "HEAD")

    def fingerprint(self) -> dict[str, bytes]:
        """All files, those of git too."""
        return {str(path): path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}
