"""The watchdog: what it takes for missing, and that it says so once and takes it back."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from github_servers import BOT, REPOSITORY
from night_factory import FIRST_NIGHT, A, B, C, run_of

from baselines.history import add_night
from baselines.retention import outdated_runs, remove_runs
from baselines.runs import store_run
from baselines.store import open_store
from bot.config import NightlyConfig
from bot.errors import BotError
from bot.filing import open_tracker
from bot.github.issue_file import IssueFile, read_issues
from bot.watchdog import file, look, watch
from torchbenchmark.records import Status

LIMIT = timedelta(hours=26)


def kept(store, day, tests=None, **fields):
    add_night(store, store_run(store, run_of(day, tests or {A: 1.0}, **fields)).rpartition("/")[0])


def at(days: float):
    return FIRST_NIGHT + timedelta(days=days)


def problems(store, now, machine_class=None):
    watched = look(store, "smoke", machine_class, LIMIT, now)
    return {one.machine_class: one.problem for one in watched if not one.retired}


def test_a_night_is_missed_after_26_hours_and_not_before(any_store):
    kept(any_store, 0)
    assert problems(any_store, at(26 / 24)) == {"cpu-4t": ""}
    assert problems(any_store, at(27 / 24)) == {"cpu-4t": "no night for 27 hours"}
    kept(any_store, 1)
    assert problems(any_store, at(27 / 24)) == {"cpu-4t": ""}


def test_a_night_in_which_nothing_ended_ok_has_no_data(any_store):
    kept(any_store, 0)
    kept(any_store, 1, {A: Status.CRASH, B: None})
    assert problems(any_store, at(1.1)) == {"cpu-4t": "the newest night has no data: no test ended ok"}


def test_every_class_is_watched_and_a_retired_one_is_not(any_store):
    kept(any_store, 0, machine_class="cpu-old")
    kept(any_store, 35)
    kept(any_store, 34, machine_class="cpu-8t")
    assert problems(any_store, at(35.5)) == {"cpu-4t": "", "cpu-8t": "no night for 36 hours"}
    assert problems(any_store, at(35.5), "cpu-old") == {"cpu-old": "no night for 852 hours"}


def test_a_class_that_is_not_there_is_a_mistake_and_no_outage(any_store, tmp_path):
    kept(any_store, 0)
    kept(any_store, 0, machine_class="cpu-8t")
    kept(any_store, 0, machine_class="gpu-1", suite="other")
    config = NightlyConfig(store=any_store.location, outbox=tmp_path / "outbox")
    for typo in ("cpu-4", "gpu-1", "any class"):
        with pytest.raises(BotError, match=rf"--class {typo}: there is no run of smoke on it; known: cpu-4t, cpu-8t$"):
            watch(config, open_tracker(config), machine_class=typo)
    assert not (tmp_path / "outbox").exists(), "nothing is filed"
    assert problems(any_store, at(0.1), "cpu-8t") == {"cpu-8t": ""}


def test_where_no_night_was_ever_stored_a_class_can_be_neither_right_nor_wrong(any_store):
    kept(any_store, 0, suite="other")
    assert problems(any_store, at(0), "cpu-4t") == {"any class": "there has been no night"}


def test_a_class_whose_records_were_all_removed_is_still_known(any_store):
    kept(any_store, 0, machine_class="cpu-old")
    kept(any_store, 100)
    remove_runs(any_store, outdated_runs(any_store, "smoke", "cpu-old", at(50)))
    assert problems(any_store, at(100.1), "cpu-old") == {"cpu-old": "no night for 2402 hours"}


def test_no_night_at_all_is_missed_too(any_store):
    assert problems(any_store, at(0)) == {"any class": "there has been no night"}
    kept(any_store, 0, suite="other")
    assert problems(any_store, at(0.1)) == {"any class": "there has been no night"}
    kept(any_store, 0)
    assert problems(any_store, at(50)) == {"any class": "there has been no night in 30 days"}


@pytest.mark.parametrize("ahead", [0.01, 0.5])
def test_a_clock_that_differs_makes_no_night_missing(any_store, ahead):
    kept(any_store, 0)
    assert problems(any_store, at(-ahead)) == {"cpu-4t": ""}


def test_one_issue_is_opened_and_closed_when_a_night_has_come(any_store, tmp_path):
    config = NightlyConfig(outbox=tmp_path / "outbox", owners=("@team",))

    def issues():
        return {path.read_text().partition("\n")[0]: path.read_text() for path in (tmp_path / "outbox").glob("*.md")}

    def watch(days):
        file(config, look(any_store, "smoke", None, LIMIT, at(days)), open_tracker(config), at(days))

    watch(0)
    (text,) = issues().values()
    assert "*open*" in text and "There has been no night" in text and "cc @team" in text
    kept(any_store, 0)
    watch(0.1)
    (text,) = issues().values()
    assert "*closed*" in text and "A night with data has come" in text
    watch(2)
    watch(2.5)
    opened = [text for text in issues().values() if "*open*" in text]
    assert len(issues()) == 2 and len(opened) == 1
    assert "No nightly of smoke on cpu-4t" in opened[0] and "No night for 60 hours" in opened[0]
    assert "run `r0000`, 1 of 1 tests ok" in opened[0]
    kept(any_store, 3)
    watch(3.1)
    assert all("*closed*" in text for text in issues().values())


def test_an_issue_that_a_person_closed_is_open_again_at_the_next_outage(hub, tmp_path):
    store = open_store(str(tmp_path / "store"))
    config = NightlyConfig(github=REPOSITORY, github_login=BOT)

    def watch(days):
        file(config, look(store, "smoke", None, LIMIT, at(days)), open_tracker(config), at(days))
        return [(issue["state"], issue["title"]) for issue in hub.issues()]

    kept(store, 0)
    ((_, title),) = opened = watch(2)
    assert opened == [("open", "No nightly of smoke on cpu-4t")]
    hub.call("PATCH", f"issues/{hub.issues()[0]['number']}", "torch-owner", state="closed")
    assert watch(3) == [("closed", title)]
    kept(store, 4)
    assert watch(4.1) == [("closed", title)]
    before = hub.issues()
    assert watch(4.5) == [("closed", title)]
    assert hub.issues() == before, "a closed issue is left alone on good days"
    assert watch(6) == [("open", title)]
    hub.call("PATCH", f"issues/{hub.issues()[0]['number']}", "torch-owner", state="closed")
    kept(store, 7)
    assert watch(9) == [("open", title)], "also if no good day was seen in between"


def test_of_a_night_without_data_the_issue_says_why_its_tests_failed_and_nothing_of_runners(tmp_path):
    store = open_store(str(tmp_path / "store"))
    config = NightlyConfig(store=str(tmp_path / "store"), outbox=tmp_path / "outbox")

    def text(days):
        file(config, look(store, "smoke", None, LIMIT, at(days)), open_tracker(config), at(days))
        (path,) = (tmp_path / "outbox").glob("*.md")
        return path.read_text()

    kept(store, 1, {A: Status.CRASH, B: Status.CRASH, C: None})
    empty = text(1.1)
    assert "The newest night has no data" in empty and "look at why its tests failed" in empty
    assert "- 2 tests: `crash: planted crash`\n- 1 test: `no record: " in empty
    assert f"`torchbench baseline show --store {config.store} runs/smoke/cpu-4t/2026-03-02-build0001-r0001`" in empty
    assert "runner" not in empty and "no night comes" not in empty
    silent = text(3)
    assert "No night for 48 hours" in silent and "is a runner online" in silent
    assert "why its tests failed" not in silent


def test_an_outage_of_nights_without_data_is_one_outage(any_store, tmp_path):
    def occasion(days):
        watched = look(any_store, "smoke", None, LIMIT, at(days))
        file(NightlyConfig(), watched, IssueFile(tmp_path / "issues.json"), at(days))
        return next(issue.occasion for issue in read_issues(tmp_path / "issues.json") if issue.is_open)

    kept(any_store, 0)
    kept(any_store, 1, {A: Status.CRASH})
    first = occasion(1.1)
    kept(any_store, 2, {A: Status.CRASH})
    assert occasion(2.1) == occasion(5) == first
    kept(any_store, 6)
    kept(any_store, 7, {A: Status.CRASH})
    assert occasion(7.1) != first


def test_a_class_that_is_retired_takes_its_issue_with_it(any_store, tmp_path):
    config = NightlyConfig(outbox=tmp_path / "outbox")

    def states():
        texts = [path.read_text() for path in (tmp_path / "outbox").glob("*.md")]
        return {text.split("\n")[1]: "*open*" in text for text in texts}

    kept(any_store, 0, machine_class="cpu-old")
    kept(any_store, 0)
    file(config, look(any_store, "smoke", None, LIMIT, at(2)), open_tracker(config), at(2))
    assert states() == {"# No nightly of smoke on cpu-4t": True, "# No nightly of smoke on cpu-old": True}
    kept(any_store, 40)
    file(config, look(any_store, "smoke", None, LIMIT, at(40)), open_tracker(config), at(40))
    assert states() == {"# No nightly of smoke on cpu-4t": False, "# No nightly of smoke on cpu-old": False}


def test_the_issue_of_no_night_at_all_stays_open_until_a_class_is_well(any_store, tmp_path):
    config = NightlyConfig(outbox=tmp_path / "outbox")

    def is_open():
        return "*open*" in (tmp_path / "outbox" / next(iter(names))).read_text()

    file(config, look(any_store, "smoke", None, LIMIT, at(0)), open_tracker(config), at(0))
    names = [path.name for path in (tmp_path / "outbox").glob("*.md")]
    kept(any_store, 0)
    kept(any_store, 0, machine_class="cpu-8t")
    file(config, look(any_store, "smoke", None, LIMIT, at(2)), open_tracker(config), at(2))
    assert is_open()
    kept(any_store, 2)
    file(config, look(any_store, "smoke", "cpu-8t", LIMIT, at(2)), open_tracker(config), at(2))
    assert is_open()
    file(config, look(any_store, "smoke", None, LIMIT, at(2.1)), open_tracker(config), at(2.1))
    assert not is_open()


def test_it_writes_nothing_into_the_store(any_store, tmp_path):
    store_run(any_store, run_of(0, {A: 1.0}))
    before = any_store.list("")
    assert problems(any_store, at(0.1)) == {"cpu-4t": ""}
    assert any_store.list("") == before


def test_it_runs_where_there_is_no_torch_and_says_what_is_missing_by_its_exit_code(tmp_path):
    config = tmp_path / "nightly.yaml"
    config.write_text(yaml.safe_dump({"store": str(tmp_path / "store"), "outbox": str(tmp_path / "outbox")}))
    code = "import sys; sys.modules['torch'] = None; from bot.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "watchdog", "--config", str(config)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "smoke on any class: there has been no night" in ended.stdout
    assert len(list((tmp_path / "outbox").glob("*.md"))) == 1


def test_a_class_that_the_configuration_names_is_missed_before_its_first_night_and_after_a_month(tmp_path):
    store = open_store(str(tmp_path / "store"))
    kept(store, 0)
    problems = {
        one.machine_class: one.problem for one in look(store, "smoke", None, LIMIT, at(1), ("cpu-4t", "cpu-8t"))
    }
    assert problems == {"cpu-4t": "", "cpu-8t": "there is no night that can be read"}
    (one, _) = look(store, "smoke", None, LIMIT, at(50), ("cpu-4t", "cpu-8t"))
    assert (one.retired, one.problem) == (False, "no night for 1200 hours")
