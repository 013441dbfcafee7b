"""Messages about alerts, to a real server: once each, and the address stands nowhere."""

import json
import logging
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_alert_events import alert_of, at, verdict

from baselines.store import open_store
from bot.alert_settings import NotifySettings
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.decisions import Snoozed
from bot.notifying import notify, send

SECRET = "T000/B000/XXXX-secret"
WHERE = ("smoke", "cpu-4t")


class Webhook:
    """A server as Slack's, that takes messages or answers as told."""

    def __init__(self):
        self.taken, self.status, self.paths = [], 200, []


@contextmanager
def webhook():
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            hook.paths.append(self.path)
            if hook.status == 200:
                hook.taken.append(json.loads(content))
            self.send_response(hook.status)
            if hook.status == 302:
                self.send_header("Location", "http://192.0.2.1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hook.address = f"http://127.0.0.1:{server.server_port}/services/{SECRET}"
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hook(monkeypatch):
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.address)
        yield hook


CONFIG = NightlyConfig(notify=NotifySettings(webhook="$HOOK"))


@pytest.fixture
def tell(tmp_path):
    """Stores an alert and notifies of all that is stored, as a night does."""
    store = open_store(str(tmp_path))

    def tell(alert=None, day=12):
        if alert is not None:
            told = next((one.told for one in read_alerts(store, *WHERE) if one.key == alert.key), ())
            kept = alert.model_copy(update={"told": told})
            change_alerts(store, *WHERE, lambda before: (kept,))
        notify(CONFIG, store, read_alerts(store, *WHERE), at(day))

    return tell


def test_each_event_is_told_once_in_one_line(hook, tell):
    tell(alert_of(issue="https://github.com/o/r/issues/7"))
    tell()
    tell(alert_of(bisected=verdict(), issue="https://github.com/o/r/issues/7"), 13)
    tell(day=14)
    assert hook.taken == [
        {"text": "New: 1 test slower by up to 20.0% since 2026-03-11 (smoke), cpu-4t https://github.com/o/r/issues/7"},
        {
            "text": "The culprit is found: 1 test slower by up to 20.0% since 2026-03-11 (smoke), cpu-4t "
            "https://github.com/o/r/issues/7"
        },
    ]


def test_nothing_in_a_message_mentions_anybody_or_is_a_link(hook, tell):
    tell(alert_of(closed=at(12), closed_because="recovered for 3\n<!channel> & <http://e|x> nights"))
    assert len(hook.taken) == 2
    for message in hook.taken:
        assert "<" not in message["text"] and "\n" not in message["text"]
    assert "recovered for 3 &lt;!channel&gt; &amp; &lt;http://e|x&gt; nights" in hook.taken[1]["text"]


def test_what_could_not_be_sent_is_told_and_sent_the_next_night(hook, tell, capsys, caplog):
    caplog.set_level(logging.INFO)
    hook.status = 500
    tell(alert_of())
    said = " ".join(capsys.readouterr().out.split())
    assert "no message of alert aaaaaaaaaaaaaaaa: the webhook answered 500; is the address in $HOOK right?" in said
    hook.status = 200
    tell()
    tell()
    assert len(hook.taken) == 1
    assert SECRET not in said + caplog.text


def test_a_server_that_is_not_there_is_told_without_its_address(tell, monkeypatch, capsys):
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.address)
    tell(alert_of())
    said = capsys.readouterr().out
    assert "the webhook did not answer (ConnectionError)" in " ".join(said.split()) and SECRET not in said
    with pytest.raises(BotError) as raised:
        send(CONFIG.notify, "text")
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


def test_a_redirect_is_not_followed(hook, tell, capsys):
    hook.status = 302
    tell(alert_of())
    assert len(hook.paths) == 1 and "answered 302" in capsys.readouterr().out


def test_a_snoozed_alert_sends_nothing_until_its_time(hook, tell):
    tell(alert_of())
    alert = alert_of(snoozed=Snoozed(at=at(11), by="ada", until=at(18)), bisected=verdict())
    tell(alert, 13)
    assert len(hook.taken) == 1
    tell(alert, 18)
    assert [one["text"].partition(":")[0] for one in hook.taken] == [
        "New",
        "The snooze is over, and it is still there",
    ]


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("", "the environment has no HOOK"),
        (f"http://hooks.example.com/{SECRET}", "holds an address that is not https"),
        (f"http://127.0.0.1.example.com/{SECRET}", "holds an address that is not https"),
        (f"ftp://127.0.0.1/{SECRET}", "holds an address that is not https"),
        (f"hooks.example.com/{SECRET}", "holds no address"),
        (f"https://hooks.example.com:0/{SECRET}", "holds no address"),
        (f"https://[half/{SECRET}", "holds no address"),
        (f"https://e.com/{SECRET} x", "holds no address"),
    ],
)
def test_an_address_that_is_none_or_is_not_https_is_refused_and_not_repeated(monkeypatch, address, problem):
    monkeypatch.setenv("HOOK", address)
    with pytest.raises(BotError, match=problem) as raised:
        send(CONFIG.notify, "text")
    assert SECRET not in str(raised.value)


def test_the_configuration_names_a_variable_and_never_an_address(tmp_path):
    path = tmp_path / "nightly.yaml"
    path.write_text(f"notify:\n  webhook: https://hooks.example.com/{SECRET}\n")
    with pytest.raises(BotError, match=r"key notify\.webhook: say \$NAME") as raised:
        load_config(path)
    assert SECRET not in str(raised.value), "which may stand in a log"
