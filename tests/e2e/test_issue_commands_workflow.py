"""`issue-commands.yml` by act: comments on an alert, from the event to the reply, with the store out of reach of the
second job."""

import re
import secrets

import pytest
from acting import Acting
from alert_talk import KEY, AlertTalk
from github_servers import REPOSITORY, own_github
from s3_servers import BUCKET

SECRET = "because-of-the-allocator"


@pytest.fixture
def talk(tmp_path, monkeypatch, seaweedfs_endpoint):
    seaweedfs_endpoint.use(monkeypatch)
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        yield AlertTalk(hub, tmp_path, monkeypatch, store=f"s3://{BUCKET}/{secrets.token_hex(8)}/nightly")


@pytest.fixture
def acting(tmp_path, talk, seaweedfs_endpoint, monkeypatch):
    alert = talk.open_alert()
    talk.talk.as_job(monkeypatch, contents="read", issues="write", actions="write")
    return alert, Acting(
        folder=tmp_path / "acting",
        github=talk.hub.url,
        token="token-of-a-job",
        roles={"writer": seaweedfs_endpoint.variables()},
        variables={
            "TORCHBENCH_CONFIG": "nightly.yaml",
            "TORCHBENCH_STORE": talk.config.store,
            "TORCHBENCH_REGION": "us-east-1",
            "TORCHBENCH_WRITER_ROLE": "writer",
            "TORCHBENCH_BISECT_REPO": "https://github.com/pytorch/pytorch",
        },
        repository=REPOSITORY,
        files={"nightly.yaml": {"store": "$TORCHBENCH_STORE", "github": "$GITHUB_REPOSITORY"}},
    )


def jobs_in(log: str) -> list[str]:
    """The jobs that ran, and how they ended."""
    return re.findall(r"\[issue-commands/(\w+) *\] 🏁  Job (\w+)", log)


@pytest.mark.timeout(300)
def test_a_comment_is_decided_in_one_job_and_answered_in_another_and_other_comments_start_none(talk, acting):
    alert, acting = acting

    exit_code, log = acting.run("issue-commands", talk.say("writer", "hello\nto /ack it is too early", on=alert))
    assert exit_code == 0 and jobs_in(log) == [], log

    said = talk.say("writer", f"I looked.\n\n/expected {SECRET}", on=alert)
    exit_code, log = acting.run_with_its_own_artifacts("issue-commands", said)
    assert exit_code == 0 and jobs_in(log) == [("decide", "succeeded"), ("answer", "succeeded")], log
    (reply,) = talk.talk.answers(alert)
    assert f"**Expected** by `writer`: `{SECRET}`" in reply and talk.talk.reactions(said) == ["+1"]
    assert talk.alert.accepted.by == "writer"
    assert talk.issue(alert).state == "closed" and "alert: expected" in talk.labels(alert)
    assert SECRET not in log


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_comment_starts_a_bisection_and_a_workflow_that_is_run_again_starts_no_other(talk, acting):
    alert, acting = acting
    said = talk.say("writer", "/bisect v1..main", on=alert)
    exit_code, log = acting.run_with_its_own_artifacts("issue-commands", said)
    assert exit_code == 0 and jobs_in(log) == [("decide", "succeeded"), ("answer", "succeeded")], log
    exit_code, log = acting.run_with_its_own_artifacts("issue-commands", said)
    assert exit_code == 0 and jobs_in(log) == [("decide", "succeeded")], "it was answered before\n" + log
    assert talk.bisections == [{"signal": KEY, "good": "v1", "bad": "main"}]
    assert len(talk.talk.answers(alert)) == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_store_that_cannot_be_reached_fails_the_first_job_and_the_second_says_so(talk, acting):
    alert, acting = acting
    said = talk.say("writer", "/ack", on=alert)
    exit_code, log = acting.run("issue-commands", said, TORCHBENCH_STORE="s3://no-such-bucket/x")
    assert exit_code == 1 and jobs_in(log) == [("decide", "failed"), ("answer", "succeeded")], log
    (reply,) = talk.talk.answers(alert)
    assert "the bot came to an error" in reply and "no-such-bucket" not in reply
