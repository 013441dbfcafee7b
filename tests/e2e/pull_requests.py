"""A repository of a small package with a pull request that changes it: real commits on a server of their own, and the
same commits on the fake of GitHub, where people comment."""

import functools
import shutil
import site
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from acting import Acting
from conversation import Conversation
from github_servers import REPOSITORY

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests" / "bot" / "bisection" / "model_of_package" / "works"
SLOWED, RESTS = "test_eval[works-cpu-eager-tiny]", "test_eval[rests-cpu-eager-tiny]"
LOOPS = 20_000
PACKAGE = """def work():
    steps = 0
    for _ in range({loops}):
        steps += 1
    return steps
"""
# It makes the wheel itself, as no index may be asked, and lets the build see the torch of this interpreter.
MAKE_WHEEL = """import os, pathlib, zipfile
source = pathlib.Path("worksteps.py").read_text()
info = "worksteps-1.0.dist-info"
members = {{
    "worksteps.py": source,
    "torch_of_the_tests.pth": {site!r} + "\\n",
    f"{{info}}/METADATA": "Metadata-Version: 2.1\\nName: worksteps\\nVersion: 1.0\\n",
    f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}}
record = "".join(f"{{name}},,\\n" for name in [*members, f"{{info}}/RECORD"])
with zipfile.ZipFile(pathlib.Path(os.environ["TORCHBENCH_BUILD_OUT"]) / "worksteps-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in {{**members, f"{{info}}/RECORD": record}}.items():
        wheel.writestr(name, text)
"""
SUITE = {
    "name": "works",
    "description": "Two models, of which one uses the package.",
    "models": ["works", "rests"],
    "tests": ["eval"],
    "preset": "tiny",
    "threads": 1,
}
CONFIG = {
    "suite": "works.yaml",
    "models": ["models"],
    "subject": "worksteps",
    "store": "$TORCHBENCH_STORE",
    "github": "$GITHUB_REPOSITORY",
    "threads": 1,
    "budget_s": 0.1,
    "builds": {"requirements": [], "git": {"command": ["{python}", "make_wheel.py"]}},
    "pull_requests": {"pairs": 6, "beyond": 0.5},
}


@dataclass(frozen=True)
class Project:
    """The repository as git has it, and where it is served."""

    folder: Path
    served: Path
    server: str
    base: str

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self, files: dict[str, str], branch: str) -> str:
        """A commit on base, on a branch of its own, served. Returns it."""
        self.git("checkout", "--quiet", "-B", branch, self.base)
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", branch)
        self.git("push", "--quiet", "--force", str(self.served), branch)
        subprocess.run(["git", "update-server-info"], cwd=self.served, check=True)
        return self.git("rev-parse", "HEAD")


@contextmanager
def project(folder: Path) -> Iterator[Project]:
    """One commit on `main`, served over http as GitHub serves repositories."""
    repository, web = folder / "project", folder / "web"
    served = web / f"{REPOSITORY}.git"
    repository.mkdir(parents=True)
    served.parent.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(served)], check=True)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(repository)], check=True)
    site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
    (repository / "make_wheel.py").write_text(MAKE_WHEEL.format(site=site_packages))
    (repository / "worksteps.py").write_text(PACKAGE.format(loops=LOOPS))
    begun = Project(repository, served, "", "")
    begun.git("add", "--all")
    begun.git("commit", "--quiet", "--message", "begin")
    begun.git("push", "--quiet", str(served), "main")
    subprocess.run(["git", "update-server-info"], cwd=served, check=True)
    handler = functools.partial(_Quiet, directory=str(web))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        yield Project(repository, served, address, begun.git("rev-parse", "HEAD"))
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


def open_pull_request(talk: Conversation, project: Project, head: str) -> int:
    """A pull request on the fake that has these commits. Returns its number."""
    repository = talk.repository
    number = talk.open_pull_request()
    pull = talk.pull_request(number)
    repository.commits |= {project.base: (), head: (project.base,)}
    repository.branches["main"] = project.base
    pull.head_repository.branches[pull.head] = head
    return number


def acting_on(folder: Path, talk: Conversation, project: Project, token: str) -> Acting:
    """The workflows, with the configuration and the two models of the package."""
    checkout = folder / "acting" / "checkout"
    for name, changes in (("works", {}), ("rests", {"import worksteps\n": "", "        worksteps.work()\n": ""})):
        shutil.copytree(MODEL, checkout / "models" / name, ignore=shutil.ignore_patterns("__pycache__"))
        module = checkout / "models" / name / "__init__.py"
        text = module.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        module.write_text(text)
    (checkout / "works.yaml").write_text(yaml.safe_dump(SUITE))
    return Acting(
        folder=folder / "acting",
        github=talk.hub.url,
        token=token,
        roles={},
        variables={"TORCHBENCH_CONFIG": "pulls.yaml", "TORCHBENCH_IMAGE": "none"},
        repository=REPOSITORY,
        files={"pulls.yaml": CONFIG},
        environment={"GITHUB_SERVER_URL": project.server, "GITHUB_REPOSITORY": REPOSITORY},
    )
