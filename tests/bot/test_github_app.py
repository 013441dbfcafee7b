"""The bot as a GitHub App, and on GitHub Enterprise: who it is, where it is installed, and that no secret is told."""

import functools
import logging
import traceback

import pytest
from conversation import Conversation
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fake_github import Token, fake_github
from fake_github.apps import add_app
from fake_github.checks import CheckRun
from faulty_proxy import LOSE_ANSWER, Answer
from github_servers import OWNER, REPOSITORY, OwnGitHub

from bot.errors import BotError
from bot.github import client as client_module
from bot.github.actions import Check, React, Reply
from bot.github.client import Client
from bot.github.github_looking import GitHubLooking
from bot.github.issue import Issue
from bot.github.issues import GitHubIssues
from bot.github.performing import perform

pytestmark = pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
KEY = "0123456789abcdef"
ALL = {"issues": "write", "pull_requests": "write", "checks": "write", "actions": "write", "contents": "read"}


@functools.cache
def keys(_which: int = 0) -> tuple[str, str]:
    """A private key and its public one; a short one, as each use of a long one takes a fifth of a second."""
    private = rsa.generate_private_key(65537, 1024)
    return (
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ).decode(),
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
    )


on_enterprise_too = pytest.mark.parametrize("hub", ["", "/api/v3"], ids=["github.com", "enterprise"], indirect=True)


@pytest.fixture
def hub(request, monkeypatch):
    """GitHub, with an App `torch-perf` that is installed in the repository; the process is that App."""
    with fake_github(getattr(request, "param", "")) as fake:
        fake.world.add_account(OWNER)
        fake.world.add_repository(REPOSITORY)
        app = add_app(fake.world, "torch-perf", keys()[1], ALL, REPOSITORY)
        monkeypatch.setattr("bot.github.client._BETWEEN_WRITES_S", 0.0)
        monkeypatch.setattr(client_module.time, "sleep", lambda _: None)
        monkeypatch.setenv("GITHUB_API_URL", fake.url)
        monkeypatch.delenv("GITHUB_TOKEN", raising=False)
        monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
        monkeypatch.setenv("TORCHBENCH_APP_ID", str(app.id))
        monkeypatch.setenv("TORCHBENCH_APP_PRIVATE_KEY", keys()[0])
        yield OwnGitHub(fake.url, fake.proxy, fake)


@pytest.fixture
def talk(hub) -> Conversation:
    return Conversation(hub, bot="torch-perf[bot]")


def test_an_app_knows_who_it_is_without_being_told(hub):
    client = Client(REPOSITORY)
    assert (client.login, client.login_is_certain) == ("torch-perf[bot]", True)
    with pytest.raises(
        BotError, match=r"writes as torch-perf\[bot\], but `github_login` in the configuration is other"
    ):
        Client(REPOSITORY, "other[bot]").connect()


@on_enterprise_too
def test_an_app_answers_reacts_checks_and_files_once(talk):
    number = talk.open_pull_request()
    said = talk.say("writer", "/benchmark", on=number)
    actions = [
        React(comment=said["comment"]["id"], content="eyes"),
        Reply(number=number, key=KEY, body="x"),
        Check(commit=talk.head(number), key=KEY, state="queued", title="t", summary="s"),
    ]
    assert [done.effect for done in perform(Client(REPOSITORY), actions)] == ["made"] * 3
    effects = [done.effect for done in perform(Client(REPOSITORY), actions)]
    assert effects == ["there already", "there already", "unchanged"]
    assert len(talk.answers(number)) == 1 and talk.reactions(said) == ["eyes"]
    (check,) = talk.repository.table(CheckRun).values()
    assert check.app.login == "torch-perf[bot]"
    issue = Issue(KEY, "3 tests slower", "first", ("torchbench",), True)
    assert [GitHubIssues(Client(REPOSITORY)).put(issue).effect for _ in range(2)] == ["created", "unchanged"]


@on_enterprise_too
def test_an_app_looks_up_what_commands_ask(talk):
    number, look = talk.open_pull_request(), GitHubLooking(Client(REPOSITORY))
    assert look.role("writer") == "write"
    assert look.pull_request(number).head == talk.head(number)
    assert look.bot_comments(number) == ()


def test_an_app_is_preferred_to_a_token(hub, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "owners")
    hub.fake.world.add_token(Token("owners", OWNER))
    assert Client(REPOSITORY).login == "torch-perf[bot]"


def test_a_key_whose_line_ends_are_spelled_out_is_read(hub, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_APP_PRIVATE_KEY", keys()[0].replace("\n", "\\n"))
    assert Client(REPOSITORY).repo.full_name == REPOSITORY


def test_an_app_that_is_not_installed_there_is_told_to_be_installed(hub):
    hub.fake.world.add_repository(f"{OWNER}/other")
    with pytest.raises(
        BotError, match=f"{OWNER}/other: the App is not installed there, or there is no such repository"
    ):
        perform(Client(f"{OWNER}/other"), [Reply(number=1, key=KEY, body="x")])


@pytest.mark.parametrize(("app_id", "which"), [(None, 1), ("999", 0)])
def test_a_key_or_an_id_that_github_does_not_accept_is_told_without_showing_it(hub, monkeypatch, app_id, which):
    monkeypatch.setenv("TORCHBENCH_APP_PRIVATE_KEY", keys(which)[0])
    if app_id:
        monkeypatch.setenv("TORCHBENCH_APP_ID", app_id)
    with pytest.raises(BotError, match="TORCHBENCH_APP_ID and TORCHBENCH_APP_PRIVATE_KEY are not accepted") as failed:
        GitHubLooking(Client(REPOSITORY)).role("writer")
    assert "BEGIN" not in str(failed.value)


@pytest.mark.parametrize(
    ("app_id", "key", "told"),
    [
        ("", "key", "TORCHBENCH_APP_ID is not set"),
        ("12", "", "TORCHBENCH_APP_PRIVATE_KEY is not set"),
        ("12 3", "key", "TORCHBENCH_APP_ID is not the id of an App"),
        ("12", "c2VjcmV0", "TORCHBENCH_APP_PRIVATE_KEY is not a private key"),
        ("12", "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----", "is not a private key"),
    ],
)
def test_what_can_be_no_app_is_told_before_anything_is_asked(hub, monkeypatch, app_id, key, told):
    monkeypatch.setenv("TORCHBENCH_APP_ID", app_id)
    monkeypatch.setenv("TORCHBENCH_APP_PRIVATE_KEY", key)
    with pytest.raises(BotError, match=told) as failed:
        Client(REPOSITORY)
    assert "c2VjcmV0" not in "".join(traceback.format_exception(failed.value))
    assert failed.value.__cause__ is None and ("private" not in told or failed.value.__suppress_context__)
    assert not hub.proxy.seen


def test_neither_the_key_nor_a_token_is_in_a_log_or_an_error(talk, hub, caplog):
    caplog.set_level(logging.DEBUG)
    number = talk.open_pull_request()
    client = Client(REPOSITORY)
    perform(client, [Reply(number=number, key=KEY, body="x")])
    hub.proxy.faults[:] = [Answer(500, "")] * 20
    with pytest.raises(BotError) as failed:
        perform(client, [Reply(number=number, key="f" * 16, body="x")])
    (secret,) = [value for value in hub.fake.world.tokens if value.startswith("ghs_")]
    told = caplog.text + "".join(traceback.format_exception(failed.value)) + repr(client)
    assert secret not in told and keys()[0].split("\n")[1] not in told


@pytest.mark.parametrize("fault", [LOSE_ANSWER, Answer(502, "")])
@pytest.mark.parametrize(
    "path", ["GET {0}/app", "GET {0}/repos/torch-owner/nightlies/installation", "POST {0}/app/inst"]
)
def test_a_github_that_stumbles_while_an_app_logs_in_is_asked_again(talk, hub, fault, path):
    hub.proxy.faults[:] = [fault]
    hub.proxy.concerns = lambda seen: seen.startswith(path.format(hub.fake.prefix))
    number = talk.open_pull_request()
    assert perform(Client(REPOSITORY), [Reply(number=number, key=KEY, body="x")])[0].effect == "made"
    assert not hub.proxy.faults
