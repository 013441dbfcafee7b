"""Forty nights through everything that follows the measuring, on a GitHub that fails every tenth call and with a store
that is lost twice: exactly the issues that people should have seen, each once, in the right state."""

import itertools
import math
import shutil
from datetime import timedelta
from functools import partial

from faulty_proxy import LOSE_ANSWER, Answer
from github_servers import BOT, REPOSITORY, own_github
from night_factory import A, B, C, run_of
from scripted_bench import OTHERS

from baselines.confirming.bench import Ended
from baselines.policy import load_policy
from baselines.runs import store_run
from baselines.store import open_store
from bot.conclusion import conclude
from bot.config import NightlyConfig
from bot.confirming.closing import confirm_closings
from bot.confirming.confirmation import confirm_night, rules_of
from bot.culprits.of_night import BisectedTonight
from bot.culprits.verdict_of_alert import write_verdict
from bot.filing import open_tracker
from bot.filing_rules import FilingRules
from bot.github.alert_store import read_alerts
from bot.github.bisected import Bisected, BisectedChange, SuspectCommit
from bot.triage.calling_noise import call_noise
from torchbenchmark.records import Status

NIGHTS = 40
WHERE = ("smoke", "cpu-4t")
POLICY = load_policy("default")
FAST, LATE = OTHERS[0], OTHERS[1]
# What the builds of which nights are, against the first: this is the truth that nights and pairs both see.
SLOWER = {
    A: ([*range(10, 16), *range(22, 25)], 1.2),  # a regression, and its relapse
    B: ([12, 13, 20, 21], 1.15),  # swings, and is called noise
    FAST: (range(33, NIGHTS), 0.8),  # an improvement
    LATE: (range(34, NIGHTS), 1.25),  # a regression that is there when the store is lost
}
FAILING = {C: range(17, 20)}
ENVIRONMENT = 30  # from then on another machine, on which all takes 10 % more
ALERTS_LOST, STORE_LOST = 15, 37
NOISE_CALLED = 13
CULPRIT = "c0ffee" + "0" * 34


def level(test, build):
    """How long a test takes with the build of a night."""
    nights, factor = SLOWER.get(test, ((), 1.0))
    return factor if build in nights else 1.0


def ends_ok(test, build):
    return build not in FAILING.get(test, ())


class Machine:
    """A bench that measures the builds as they are, on the machine of a night."""

    runners = 1

    def __init__(self, day):
        self.day = day

    def has(self, build, runner=0):
        return True

    def pairs(self, wanted, rounds, decided, runner=0):
        found = [[] for _ in wanted]
        for number in range(rounds):
            done = decided(found)
            for index, one in enumerate(wanted):
                if index not in done:
                    base, head = (level(one.test, number_of(build)) for build in (one.base, one.head))
                    noise = 0.002 * math.sin(7.0 * number + index)
                    found[index].append({"cpu_time": math.log(head / base) + noise})
        return found

    def again(self, tests, build, processes):
        return {test: {"cpu_time": times(test, number_of(build), self.day)[:processes]} for test in tests}

    def one_by_one(self, tests, build, processes):
        return {
            test: [Ended(Status.OK if ends_ok(test, number_of(build)) else Status.CRASH)] * processes for test in tests
        }


def number_of(build):
    return int(build.removeprefix("build"))


def times(test, build, day):
    slow = 1.1 if day >= ENVIRONMENT else 1.0
    return [slow * level(test, build) * (1 + 0.002 * math.sin(3.0 * day + process)) for process in range(3)]


def night_of(day):
    tests = [A, B, C, *OTHERS]
    return run_of(
        day,
        {test: {"cpu_time": times(test, day, day)} if ends_ok(test, day) else Status.CRASH for test in tests},
        fingerprint="env2" if day >= ENVIRONMENT else "env1",
    )


def bisect(store, tonight, alerts):
    """Finds the culprit of the first regression, the first time."""
    found = []
    for alert in alerts:
        if alert.tests == (A,) and alert.is_open and not alert.earlier and alert.verdict is None:
            suspect = SuspectCommit(commit=CULPRIT, subject="faster @everyone")
            change = BisectedChange(commits=(suspect,), told="+20 %", probability=0.99, certainty="certain")
            verdict = Bisected(
                at=tonight.started, episode=0, verdict="culprit", good="1" * 40, bad="2" * 40, changes=(change,)
            )
            write_verdict(store, alert, verdict)
            found.append(BisectedTonight(alert=alert.key, verdict="culprit", told="found"))
    return found


def conclude_night(config, day):
    run, store = night_of(day), open_store(config.store)
    store_run(store, run)

    def confirm(tonight, report, canary):
        rules = rules_of(config.file, POLICY)
        return confirm_night(store, tonight, report, POLICY, lambda nights: Machine(day), canary, rules)

    def closings(tonight, report, alerts, now):
        return confirm_closings(store, tonight, report, alerts, lambda nights: Machine(day), now)

    now = run.header.started + timedelta(hours=2)
    steps = {"confirm": confirm, "confirm_closings": closings, "bisect": partial(bisect, store)}
    return conclude(config, store, POLICY, run, open_tracker(config), now=now, **steps)


def lose(store, day):
    if day == ALERTS_LOST:
        (store.root / "alerts" / "smoke" / "cpu-4t.json").unlink()
    if day == STORE_LOST:
        shutil.rmtree(store.root)


def shown(issue):
    """An issue's kind, its state, and that of its alert."""
    labels = {label["name"] for label in issue["labels"]} - {"torchbench"}
    (state,) = (name for name in labels if name.startswith("alert: "))
    (kind,) = labels - {state}
    return kind, issue["state"], state.removeprefix("alert: ")


def life(seen, number):
    """When the state of an issue was another than the night before."""
    states = [(day, states[number]) for day, states in enumerate(seen) if len(states) > number]
    return [
        (day, *now)
        for (day, now), before in zip(states, [None, *(one for _, one in states)], strict=False)
        if now != before
    ]


def test_forty_nights_end_with_exactly_the_right_issues_each_once_in_the_right_state(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.github.client.time.sleep", lambda seconds: None)
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        config = NightlyConfig(
            store=str(tmp_path / "store"),
            work=tmp_path / "work",
            outbox=tmp_path / "outbox",
            github=REPOSITORY,
            github_login=BOT,
            file=FilingRules(improvement="confirmed", environment="confirmed"),
        )
        config.work.mkdir()
        calls, seen = itertools.count(1), []

        def every_tenth(request):
            return next(calls) % 10 == 0

        for day in range(NIGHTS):
            store = open_store(config.store)
            lose(store, day)
            hub.proxy.faults[:] = [Answer(502, "{}", {"Content-Type": "application/json"}), LOSE_ANSWER] * 500
            hub.proxy.concerns = every_tenth
            conclude_night(config, day)
            if day == NOISE_CALLED:
                (key,) = (one.key for one in read_alerts(store, *WHERE) if one.tests == (B,))
                at = night_of(day).header.started + timedelta(hours=8)
                call_noise(store, *WHERE, key, by="ada", why="it swings", now=at)
            hub.proxy.faults.clear()
            seen.append([shown(issue) for issue in hub.issues()])
        failed = next(calls) // 10
        issues = hub.issues()
        said = [
            [one["body"].partition("-->\n")[2].split("**")[1] for one in hub.call("GET", f"issues/{number}/comments")]
            for number in (issue["number"] for issue in issues)
        ]
    assert [life(seen, number) for number in range(6)] == [
        [
            (11, "performance regression", "open", "culprit found"),
            (18, "performance regression", "closed", "recovered"),
            (23, "performance regression", "open", "relapsed"),
            (27, "performance regression", "closed", "recovered"),
        ],
        [(13, "performance regression", "open", "filed"), (14, "performance regression", "closed", "noise")],
        [(17, "newly failing", "open", "filed"), (22, "newly failing", "closed", "recovered")],
        [(30, "environment change", "open", "filed")],
        [(33, "performance improvement", "open", "filed")],
        [(35, "performance regression", "open", "filed"), (39, "performance regression", "closed", "over")],
    ]
    assert len(issues) == 6
    assert said == [
        ["The culprit is", "Recovered, and closed", "It is back", "Recovered, and closed"],
        [],
        ["Recovered, and closed"],
        [],
        [],
        ["Closed"],
    ]
    assert issues[1]["state_reason"] == "not_planned"
    assert [issue["title"].partition(" since")[0] for issue in issues] == [
        "1 test slower by up to 20.0%",
        "1 test slower by up to 15.0%",
        "1 test newly failing",
        "Another environment",
        "1 test faster by up to 20.0%",
        "1 test slower by up to 25.0%",
    ]
    assert all("| test | channel |" in issue["body"] for issue in issues if "slower" in issue["title"])
    assert failed > 20, "it did fail"
