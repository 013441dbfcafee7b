"""The key `file`: what becomes an issue, and when, by kind and severity."""

import pytest
from night_factory import A, B
from scripted_bench import Scripted, values
from scripted_nights import CRASH3, OK3, Class

from baselines.confirming.exact_measured import ExactMeasured
from bot.conclusion import file_alerts
from bot.config import NightlyConfig
from bot.filing_rules import FilingRules
from bot.github.alert import masks
from bot.github.announcements import announce
from bot.github.outbox import Outbox
from bot.pages.issue import render_announcement
from torchbenchmark.records import Status


def nights_of(folder, file, count=2):
    these = Class(folder, file)
    for day in range(count):
        these.night({A: values(1.0, day)}, Scripted({}))
    return these


@pytest.mark.parametrize(
    ("file", "filed_on"),
    [
        ({}, 2),
        ({"severe": "confirmed"}, 1),
        ({"regression": "confirmed"}, 2),
        ({"severe": "never"}, None),
        ({"regression": "never"}, 2),
    ],
)
def test_a_regression_beyond_the_limit_is_filed_as_severe(tmp_path, file, filed_on):
    these, bench = nights_of(tmp_path, FilingRules(**file)), Scripted({A: 0.18})
    found = None
    for number in (1, 2):
        report = these.night({A: values(1.2, 90 + number)}, bench)
        assert found or report.exit_code == 1, "whatever is filed, the night is no clean one"
        if these.alerts and found is None:
            found = number
    assert found == filed_on
    if filed_on == 1:
        (interval,) = these.alerts[0].intervals
        assert interval.head == these.alerts[0].nights[0].started, "of new pairs of that night"


@pytest.mark.parametrize(
    ("file", "filed_on"), [({}, 2), ({"regression": "confirmed"}, 1), ({"severe": "confirmed"}, 2)]
)
def test_a_small_regression_is_no_severe_one(tmp_path, file, filed_on):
    these, bench = nights_of(tmp_path, FilingRules(**file), 20), Scripted({A: 0.04})
    found = None
    for number in (1, 2):
        these.night({A: values(1.04, 90 + number)}, bench)
        if these.alerts and found is None:
            found = number
    assert found == filed_on


def test_a_failure_waits_for_its_second_night_or_is_never_filed_if_that_is_wanted(tmp_path):
    for when, filed in (("persistent", [0, 1]), ("never", [0, 0])):
        these = nights_of(tmp_path / when, FilingRules(failing=when))
        found = []
        for number in ("02", "03"):
            bench = Scripted({}, ends={number: CRASH3, "01": OK3})
            assert these.night({A: Status.CRASH}, bench).exit_code == (1 if number == "02" or filed[1] else 0)
            found.append(len(these.alerts))
        assert found == filed


def test_an_improvement_is_announced_once_if_that_is_wanted_and_its_nights_stay_normal(tmp_path):
    for when, filed_on in (("never", None), ("persistent", 2), ("confirmed", 1)):
        these = nights_of(tmp_path / when, FilingRules(improvement=when))
        found = None
        for number in (1, 2, 3):
            report = these.night({A: values(0.8, 90 + number)}, Scripted({A: -0.22}))
            assert report.exit_code == 0
            if these.alerts and found is None:
                found = number
        assert found == filed_on
    (alert,) = these.alerts
    assert (alert.kind, alert.tests, len(alert.nights)) == ("improvement", (A,), 1)
    assert alert.nights[0].findings[A].startswith("-1") or alert.nights[0].findings[A].startswith("-2")
    assert masks(these.alerts) == {}
    for day in range(15):
        these.night({A: values(0.8, day)}, Scripted({}))
    (alert,) = these.alerts
    assert (alert.is_open, alert.closed_because) == (False, "told 14 days ago")


def test_a_confirmed_count_is_announced_if_that_is_wanted_and_not_beside_a_regression_of_its_test(tmp_path):
    def counted(level, operators):
        return {"cpu_time": values(level, 1), "operators": [operators] * 3}

    these = Class(tmp_path, FilingRules(count="confirmed", severe="confirmed"))
    for _ in range(2):
        these.night({A: counted(1.0, 10.0), B: counted(1.0, 10.0)}, Scripted({}))
    bench = Scripted({B: 0.4}, ends={"02": (12, 12, 12), "01": (10, 10, 10)})
    these.night({A: counted(1.0, 12.0), B: counted(1.5, 12.0)}, bench)
    found = {alert.kind: alert for alert in these.alerts}
    assert found["regression"].tests == (B,) and found["count"].nights[0].findings == {A: "operators 10 -> 12"}


def test_an_announcement_is_an_issue_with_title_label_and_text_of_its_own_and_one_however_often_it_is_filed(tmp_path):
    file = FilingRules(improvement="persistent", count="confirmed", environment="confirmed")
    these = nights_of(tmp_path / "store", FilingRules())
    for number in (1, 2):
        report = these.night({A: values(0.8, 90 + number)}, Scripted({A: -0.22}))
    (filed,) = report.confirmation.filed
    count = ExactMeasured(
        test=B,
        channel="operators",
        kind="count change",
        verdict="confirmed",
        before=("10",),
        tonight=("12",),
        settled=True,
    )
    note = filed.model_copy(update={"id": "n", "kind": "environment", "why": "a new driver", "intervals": ()})
    outcome = report.confirmation.model_copy(update={"filed": (filed, note), "exact": (count,)})
    report = report.model_copy(update={"confirmation": outcome})

    def show(alert):
        return render_announcement(alert.kind, alert.tests, alert.nights[-1].findings, alert.intervals, report)

    alerts = announce((), report, file, show)
    assert announce(alerts, report, file, show) == alerts
    outbox = Outbox(tmp_path / "outbox")
    for effect in ("created", "unchanged"):
        told = file_alerts(outbox, alerts, NightlyConfig(file=file), report.tonight, report.tonight.started)
        assert [one.effect for one in told] == [effect] * 3
    titles = sorted(one.title for one in told)
    assert titles[0].startswith("1 test faster by up to 19.") and titles[0].endswith(" since 2026-03-03 (smoke)")
    assert titles[1].startswith("Another environment since") and titles[2].startswith("Counts of 1 test changed since")
    text = "\n".join(path.read_text() for path in sorted((tmp_path / "outbox").iterdir()))
    for said in (
        "**1 test is faster**",
        "operators 10 -> 12",
        "a new driver",
        "performance improvement",
        "95 % interval",
    ):
        assert said in text
