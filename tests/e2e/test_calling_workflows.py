"""A repository that only calls the workflows of the bot, by act: a comment there is answered by the bot's code at its
commit, with the configuration of that repository."""

import subprocess
import sys

import pytest
import yaml
from acting import Acting
from calling import CLONED, commit_without_what_act_does_not_know, their_repository
from conversation import Conversation
from github_servers import REPOSITORY, own_github

TOKEN = "token-of-a-job"


@pytest.mark.timeout(300)
def test_a_comment_in_a_repository_that_calls_the_bot_is_answered_by_its_configuration(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        talk = Conversation(hub)
        talk.as_job(monkeypatch, contents="read", pull_requests="write", checks="write", actions="write")
        acting = Acting(
            folder=tmp_path / "acting",
            github=hub.url,
            token=TOKEN,
            roles={},
            variables={},
            repository=REPOSITORY,
            files={},
            bot=CLONED,
        )
        their_repository(acting.checkout)
        # A module of their own that has the name of one of the bot's is never imported.
        (acting.checkout / "bot").mkdir()
        (acting.checkout / "bot" / "__init__.py").write_text("raise SystemExit('theirs')\n")
        init = ("init", acting.checkout, "--suite", "smoke", "--device", "cpu", "--bot", f"{CLONED}@{acting.commit}")
        subprocess.run([sys.executable, "-m", "bot", *init], check=True)
        config = acting.checkout / ".github" / "torchbench.yml"
        config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "pull_requests": {"most_tests": 7}}))
        commit_without_what_act_does_not_know(acting.checkout)
        number = talk.open_pull_request()

        exit_code, log = acting.run("benchmark", talk.say("maintainer", "/benchmark help", on=number))

        assert exit_code == 0, log
        (answer,) = talk.answers(number)
    assert "/benchmark cancel" in answer and " 7 tests" in answer
