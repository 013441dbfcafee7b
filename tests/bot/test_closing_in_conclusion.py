"""The whole conclusion of nights with a scripted machine: an issue is closed by pairs, and no start asks one twice."""

import math
import sys

import pytest
from night_factory import A, run_of
from scripted_bench import OTHERS, Scripted, values

from baselines.policy import load_policy
from baselines.runs import store_run
from baselines.store import open_store
from bot import conclusion
from bot.conclusion import conclude
from bot.config import NightlyConfig
from bot.confirming.closing import confirm_closings
from bot.confirming.confirmation import confirm_night
from bot.github.outbox import Outbox

POLICY = load_policy("default")
SLOW = (3, 4, 9, 10)  # the days on which A is


@pytest.fixture
def night(tmp_path):
    """Concludes the night of a day. Gives the exit code, and the machine that was asked before alerts closed."""
    config = NightlyConfig(store=str(tmp_path / "store"), work=tmp_path / "work", outbox=tmp_path / "outbox")
    config.work.mkdir()
    store = open_store(config.store)

    def conclude_night(day):
        times = {A: values(1.2 if day in SLOW else 1.0, day), **{test: [1.0, 1.001, 0.999] for test in OTHERS}}
        run = run_of(day, {test: {"cpu_time": processes} for test, processes in times.items()})
        store_run(store, run)
        machine, closing = Scripted({A: math.log(1.2)} if day in SLOW else {}), Scripted({})

        def confirm(tonight, report, canary):
            return confirm_night(store, tonight, report, POLICY, lambda nights: machine, canary)

        def confirm_closing(tonight, report, alerts, now):
            return confirm_closings(store, tonight, report, alerts, lambda nights: closing, now)

        code = conclude(config, store, POLICY, run, Outbox(config.outbox), 0.0, confirm, confirm_closing)
        return code, closing

    conclude_night.outbox = config.outbox
    return conclude_night


def test_an_issue_is_closed_by_pairs_and_a_start_after_a_kill_asks_no_pair_again(night, monkeypatch, capsys):
    for day in range(7):
        night(day)
    (issue,) = night.outbox.glob("*.md")
    assert "recovered, night 2 of 3" in issue.read_text()

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(conclusion, "change_alerts", killed)
        with pytest.raises(KeyboardInterrupt):
            night(7)
    code, closing = night(7)
    assert code == 0 and closing.asked == []
    assert "and gone by 6 pairs of the build from before it and tonight's" in issue.read_text()
    told = capsys.readouterr().out
    assert f"recovered: {A} cpu_time against the build of 2026-03-03 02:00: gone" in told
    assert "recovered, night 3 of 3: closed" in told, "closing is no silent update"


def test_a_night_killed_before_its_pairs_were_asked_closes_nothing_and_the_next_one_asks(night, monkeypatch):
    """It was confirmed already, and the next night concludes it first."""
    for day in range(7):
        night(day)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules[__name__], "confirm_closings", killed)
        with pytest.raises(KeyboardInterrupt):
            night(7)
    (issue,) = night.outbox.glob("*.md")
    _, closing = night(8)
    assert closing.asked and "pairs are asked the next night" in issue.read_text()
    assert "and gone by 6 pairs of the build from before it and tonight's" in issue.read_text()


def test_a_relapse_right_after_the_closing_is_confirmed_and_opens_the_issue_again(night, capsys):
    """The nights since it was confirmed the first time are few, and the limits know better."""
    codes = [night(day)[0] for day in range(11)]
    assert codes == [0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1]
    assert f"verdict: regression: confirmed slower: {A}" in capsys.readouterr().out
    (issue,) = night.outbox.glob("*.md")
    assert "*open*" in issue.read_text() and "reopened: it is back" in issue.read_text()
