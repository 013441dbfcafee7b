"""A store that has lost its alerts gets them back from the issues, and files nothing twice."""

import base64
import shutil
import zlib
from datetime import timedelta

import pytest
from github_servers import BOT, OTHER, REPOSITORY, own_github
from hypothesis import given
from hypothesis import strategies as st
from night_factory import FIRST_NIGHT, A, B, run_of
from test_alert_events import alert_of, verdict
from test_alerts import GOOD

from baselines.policy import load_policy
from baselines.runs import store_run
from baselines.store import open_store
from bot.alert_issue import issue_of
from bot.conclusion import conclude
from bot.config import NightlyConfig
from bot.filing import open_tracker
from bot.github.alert import Alert
from bot.github.alert_record import LONGEST, alert_in, record_of
from bot.github.alert_store import read_alerts
from bot.github.issue import Recorded, as_filed
from bot.recovering import recover_alerts
from bot.triage.calling_noise import call_noise
from torchbenchmark.records import Status

WHERE = ("smoke", "cpu-4t")


def recorded(alert: Alert, record: str | None = None) -> Recorded:
    return Recorded(alert.key, record_of(alert) if record is None else record, alert.revision, "https://github.com/1")


def test_an_alert_comes_back_as_it_was_but_for_what_is_in_its_issue_anyway():
    nights = tuple(
        alert_of().nights[0].model_copy(update={"run": f"r{day}", "started": FIRST_NIGHT + timedelta(days=day)})
        for day in range(9)
    )
    alert = alert_of(bisected=verdict(), revision=7, nights=nights, effects={A: 0.2}, signal="s", evidence="a table")
    back = alert_in(recorded(alert))
    assert back.nights == (nights[0], *nights[-2:]) and back.issue == "https://github.com/1" and back.filed is not None
    same = {"nights": nights, "issue": "", "filed": None}
    assert back.model_copy(update=same) == alert


def test_of_an_alert_of_very_many_tests_the_record_stays_short():
    tests = tuple(f"test_eval[model{number:04}-cuda-inductor_cudagraphs-amp_bf16]" for number in range(3000))
    alert = alert_of(tests=tests, effects={test: 0.1 + number / 7 for number, test in enumerate(tests)})
    record = record_of(alert)
    assert len(record) <= LONGEST and (record == "" or alert_in(recorded(alert)).tests == tests)


@pytest.mark.parametrize(
    "record",
    [
        "not base64!",
        base64.b64encode(b"not packed").decode(),
        base64.b64encode(zlib.compress(b"[]")).decode(),
        base64.b64encode(zlib.compress(b" " * 2**26)).decode(),
        record_of(alert_of().model_copy(update={"key": "b" * 16})),
    ],
)
def test_a_record_that_is_none_or_of_another_alert_is_no_alert(record):
    assert alert_in(recorded(alert_of(), record)) is None


@given(st.text() | st.binary().map(lambda raw: base64.b64encode(zlib.compress(raw)).decode()))
def test_whatever_stands_in_an_issue_is_an_alert_or_none(record):
    assert alert_in(recorded(alert_of(), record)) is None


class Nights:
    """Nights of the limits, filed in an outbox or on the fake."""

    def __init__(self, folder, **where):
        self.config = NightlyConfig(
            store=str(folder / "store"), work=folder / "work", outbox=folder / "outbox", **where
        )
        self.config.work.mkdir()
        self.day = 0

    @property
    def store(self):
        return open_store(self.config.store)

    @property
    def alerts(self):
        return read_alerts(self.store, *WHERE)

    def night(self, tests=None, count=1):
        for _ in range(count):
            run = run_of(self.day, {**GOOD, **(tests or {})})
            self.day += 1
            store_run(self.store, run)
            now = run.header.started + timedelta(hours=1)
            conclude(self.config, self.store, load_policy("default"), run, open_tracker(self.config), now=now)

    def lose_alerts(self):
        (self.store.root / "alerts" / "smoke" / "cpu-4t.json").unlink()

    def lose_everything(self):
        shutil.rmtree(self.store.root)


@pytest.fixture(params=["outbox", "fake"])
def nights(request, tmp_path, monkeypatch):
    if request.param == "outbox":
        yield Nights(tmp_path)
        return
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        nights = Nights(tmp_path, github=REPOSITORY, github_login=BOT)
        nights.hub = hub
        yield nights


def issues(nights):
    """How many there are, open and closed."""
    if hasattr(nights, "hub"):
        states = [issue["state"] for issue in nights.hub.issues()]
    else:
        texts = [path.read_text() for path in nights.config.outbox.glob("*.md")]
        states = ["open" if "*open*" in text else "closed" for text in texts]
    return states.count("open"), states.count("closed")


def test_lost_alerts_go_on_from_their_issues_and_close_them(nights):
    nights.night(count=7)
    nights.night({A: 1.5, B: Status.CRASH}, count=2)
    before = nights.alerts
    assert issues(nights) == (2, 0)
    nights.lose_alerts()
    nights.night({A: 1.5, B: Status.CRASH}, count=2)
    assert issues(nights) == (2, 0) and {one.key for one in nights.alerts} == {one.key for one in before}
    assert [one.opened for one in nights.alerts] == [one.opened for one in before]
    nights.lose_alerts()
    nights.night(count=3)
    assert issues(nights) == (0, 2) and all(one.has_recovered for one in nights.alerts)


def test_of_a_store_that_is_lost_whole_the_issues_are_not_left_behind(nights):
    nights.night(count=7)
    nights.night({A: 1.5}, count=2)
    nights.lose_everything()
    nights.night({A: 1.5}, count=2)
    assert issues(nights) == (1, 0)
    nights.night({A: 1.5})
    (alert,) = nights.alerts
    assert issues(nights) == (0, 1) and "no night from before it is left" in alert.closed_because
    nights.night({A: 1.5}, count=7)
    nights.night({A: 2.2})
    assert issues(nights) == (1, 1), "what comes then is new"


def test_what_was_called_noise_is_still_known(nights):
    nights.night(count=7)
    nights.night({A: 1.2})
    key = nights.alerts[0].key
    call_noise(nights.store, *WHERE, key, by="ada", now=FIRST_NIGHT + timedelta(days=7, hours=3))
    nights.night({A: 1.0})
    assert issues(nights) == (0, 1)
    nights.lose_alerts()
    nights.night({A: 1.2})
    assert issues(nights) == (0, 1) and nights.alerts[0].noise is not None


def test_an_issue_of_somebody_else_brings_no_alert(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        nights = Nights(tmp_path, github=REPOSITORY, github_login=BOT)
        forged = issue_of(alert_of(), NightlyConfig())
        hub.call("POST", "issues", OTHER, title="forged", body=as_filed(forged))
        number = hub.issues()[0]["number"]
        hub.call("POST", "labels", name="torchbench", color="ededed")
        hub.call("PATCH", f"issues/{number}", labels=["torchbench"])
        recover_alerts(nights.store, open_tracker(nights.config), *WHERE)
        assert nights.alerts == ()


def test_a_store_that_knows_that_there_are_no_alerts_asks_nobody(tmp_path):
    class Asked(Exception):
        pass

    class Nobody:
        def recorded(self):
            raise Asked

    nights = Nights(tmp_path)
    nights.night()
    recover_alerts(nights.store, Nobody(), *WHERE)
    nights.lose_alerts()
    with pytest.raises(Asked):
        recover_alerts(nights.store, Nobody(), *WHERE)
