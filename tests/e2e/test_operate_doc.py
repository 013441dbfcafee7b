"""docs/operate.md, followed to the letter: every block that is not left out with a reason is called as it stands."""

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from github_servers import BOT, REPOSITORY, TOKENS, github, needs_emulator
from s3_servers import BUCKET

DOC = Path(__file__).parents[2] / "docs" / "operate.md"
_BLOCK = re.compile(r"(?:<!-- not called by the test: ([^\n]*) -->\n)?```(\w*)\n(.*?)```", re.DOTALL)


def blocks() -> list[str]:
    """The commands in the document that are to be called, in order."""
    found = _BLOCK.findall(DOC.read_text())
    assert all(reason or language == "sh" for reason, language, _ in found)
    return [commands for reason, _, commands in found if not reason]


@pytest.mark.long
@pytest.mark.timeout(1200)
@needs_emulator
def test_an_operator_gets_from_nothing_to_a_nightly_on_s3_and_github(tmp_path, seaweedfs_endpoint):
    with github(tmp_path) as hub:
        variables = {
            **os.environ,
            **seaweedfs_endpoint.variables(),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TORCHBENCH_STORE": f"s3://{BUCKET}/{secrets.token_hex(4)}/nightly",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": hub.url,
            "GITHUB_TOKEN": TOKENS[BOT],
        }
        script = "set -euo pipefail\n" + "".join(f"echo '== block {n}'\n{text}" for n, text in enumerate(blocks()))
        ended = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said
        assert said.count("verdict: ") == 3
        assert "issue created: No nightly of smoke on any class" in said
        assert "verdict: baseline made" in said
        assert "issue updated: No nightly of smoke on any class" in said
        assert "no run that may go began before" in said
        assert not any(token in said for token in (TOKENS[BOT], variables["AWS_SECRET_ACCESS_KEY"]))
        first, *others = hub.issues()
    assert (first["title"], first["state"]) == ("No nightly of smoke on any class", "closed")
    assert all("slower" in issue["title"] for issue in others), "on a shared CPU a night may be slow"
