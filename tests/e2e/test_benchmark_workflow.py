"""`/benchmark` by act, from the comment to the verdict; and a pull request that means harm."""

import os
import re

import pytest
from acting import Acting
from conversation import Conversation
from github_servers import own_github
from pull_requests import LOOPS, PACKAGE, RESTS, SLOWED, acting_on, open_pull_request, project

TOKEN = "token-of-a-job"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="to isolate a command needs root")


@pytest.fixture
def talk(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        talk = Conversation(hub)
        talk.as_job(monkeypatch, contents="read", pull_requests="write", checks="write", actions="write")
        yield talk


@pytest.fixture
def served(tmp_path):
    with project(tmp_path / "subject") as running:
        yield running


@pytest.fixture
def acting(tmp_path, talk, served) -> Acting:
    return acting_on(tmp_path, talk, served, TOKEN)


@needs_root
@pytest.mark.timeout(900)
def test_the_test_that_a_pull_request_slows_is_said_to_be_slower_and_no_other(acting, talk, served):
    head = served.commit({"worksteps.py": PACKAGE.format(loops=4 * LOOPS)}, "slower")
    number = open_pull_request(talk, served, head)

    exit_code, log = acting.run("benchmark", talk.say("maintainer", "/benchmark", on=number))

    assert exit_code == 0, log
    status, verdict = talk.answers(number)
    assert f"**Benchmark of `{head[:12]}`: done.** Slower: 1 of 2 tests: `{SLOWED}`" in status
    lines = verdict.splitlines()
    assert any(
        re.match(rf"\*\*Slower: 1 of 2 tests: `{re.escape(SLOWED)}` \+\d+\.\d % \(cpu_time\)", one) for one in lines
    )
    rows = [one for one in lines if one.startswith("| `test_")]
    assert {one.split("`")[1] for one in rows if one.endswith("| slower |")} == {SLOWED}
    assert not [one for one in rows if RESTS in one and one.endswith(("| slower |", "| faster |"))]
    assert "Newly failing" not in verdict


# What a pull request may hold. Built and measured it looks around, writes wherever it can and talks to the runner; then
# it leaves forged results in the place of the real ones, with all that it has seen, and kills whoever measures.
LOOK_AROUND = """
import os, pathlib, subprocess

WANTED = {wanted!r}
SHOWS = "cat /proc/*/environ /proc/*/cmdline; ls -R / 2>/dev/null | head -c 100000"
home = pathlib.Path(os.environ["HOME"])
seen = [dict(os.environ), subprocess.run(SHOWS, shell=True, capture_output=True, text=True, errors="replace").stdout]
for path in [*WANTED, home.parent / "base" / "built.json", home.parent / "request.json", home.parent / "pwned"]:
    for mode in ("r", "a"):
        try:
            with open(path, mode) as file:
                seen.append(file.read() if mode == "r" else file.write("pwned") and "WROTE " + str(path))
        except OSError:
            pass
for path in ["/dev/stdout", "/dev/stderr", *map(str, pathlib.Path("/proc").glob("[0-9]*/fd/[12]"))]:
    try:
        with open(path, "w") as file:
            file.write("::error title=pwned::pwned\\n::set-env name=PYTHON::/pwned\\n##[set-env name=PYTHON]/pwned\\n")
    except OSError:
        pass
"""
KEEP = """
(home / "seen").write_text(repr(seen))
"""
FORGE = """
if home.name == "measured":
    import json
    forged = {"kind": "measuring of a request", "schema": 1, "key": "f" * 16, "pull": 1, "state": "measured"}
    forged |= {"reason": "@team <img src=x> [click](http://evil.example)", "seconds": float("nan")}
    forged |= {"../x": "y" * 50_000_000}
    (home / "measured.json").write_text(json.dumps(forged))
    (home / "@team.md").write_text("pwned")
    (home / "pairs.jsonl").unlink(missing_ok=True)
    (home / "pairs.jsonl").symlink_to(WANTED[0])
    (home / "profiles.jsonl").write_text((home.parent / "head" / "seen").read_text() + repr(seen))
    os.kill(-1, 9)
"""


@needs_root
@pytest.mark.timeout(900)
def test_a_pull_request_that_means_harm_learns_and_changes_nothing_and_its_failure_is_said(acting, talk, served):
    other = talk.open_pull_request(by="reader")
    (acting.folder / "secret").write_text("a-secret-of-the-machine")
    targets = (acting.folder / "secret", acting.checkout / "bot" / "cli.py", acting.artifacts / "pwned")
    for target in targets[:2]:
        target.chmod(0o666)
    before = {target: target.read_text() for target in targets[:2]}
    looks = LOOK_AROUND.format(wanted=[str(target) for target in targets])
    builds = looks + KEEP + (served.folder / "make_wheel.py").read_text()
    head = served.commit(
        {"make_wheel.py": builds, "worksteps.py": PACKAGE.format(loops=LOOPS) + looks + FORGE}, "harmless"
    )
    number = open_pull_request(talk, served, head)

    _, log = acting.run("benchmark", talk.say("maintainer", "/benchmark profile", on=number))

    left = {path.name: path for path in (acting.artifacts / "benchmark").iterdir()}
    assert sorted(left) == ["base.json", "head.json", "profiles.jsonl"], "no link, no forged name, no 50 MB"
    seen = left["profiles.jsonl"].read_text()
    assert seen.count("'HOME': ") == 2, "it has looked while it was built, and while it was measured"
    for hidden in (TOKEN, "a-secret-of-the-machine", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_ENV", "WROTE"):
        assert hidden not in seen, hidden
    tokens = re.findall(r"::stop-commands::([0-9a-f]{32})", log)
    assert tokens and not [token for token in tokens if token in seen]
    assert not re.search(r"(❗|⚙|❓|🚧)[^\n]*pwned", log), "the runner obeys nothing of it"
    assert {target: target.read_text() for target in before} == before and not targets[2].exists()
    status, verdict = talk.answers(number)
    assert f"**Benchmark of `{head[:12]}`: failed.**" in status
    assert verdict.splitlines()[1].startswith("**Nothing measured"), verdict
    assert "What went wrong: `the measuring job failed, or ran out of time and left no results" in verdict
    assert "team" not in verdict and "evil" not in verdict and "pwned" not in verdict
    assert talk.bot_comments(other) == []
