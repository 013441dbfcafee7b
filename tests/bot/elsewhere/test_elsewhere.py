"""A night that is confirmed by another machine than the one that reads the store, and `torchbench confirm`."""

import gzip
import json
from datetime import timedelta
from functools import partial

import pytest
import yaml
from night_factory import A, B, C, night_of, run_of, shards_of
from scripted_bench import OTHERS, Scripted, values

from baselines.confirming.state import ClassState
from baselines.confirming.stored_state import read_state
from baselines.history import add_night
from baselines.policy import load_policy
from baselines.runs import load_run, run_prefix, store_run
from baselines.series import summarise
from baselines.store import open_store
from baselines.stored_builds import store_build, stored_build
from bot import conclusion
from bot.conclusion import conclude, judge_night
from bot.config import load_config
from bot.confirm import confirm_stored
from bot.confirming import confirmation
from bot.confirming.report import unconfirmed_masks
from bot.elsewhere import asking
from bot.elsewhere.asking import AskedNight, Asking, answer_question, asked_nights
from bot.elsewhere.deciding import confirmed_already, confirms
from bot.elsewhere.question import read_question
from bot.errors import BotError
from bot.github.issue_file import IssueFile, read_issues
from bot.sharded import conclude_nights, conclude_shards
from torchbenchmark.builds.pinned import PinnedBuild, PinnedWheel
from torchbenchmark.records import Status


class Nights:
    """Nights of one class, each through the jobs of the workflow: detect, confirm, decide."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.patch, self.day = folder, monkeypatch, 0
        config = folder / "nightly.yaml"
        config.write_text(yaml.safe_dump({"store": "store", "work": "work", "outbox": "outbox"}))
        self.config, self.policy = load_config(config), load_policy("default")
        self.store = open_store(self.config.store)
        self.config.work.mkdir()

    def stored(self, times):
        every = {**{test: [1.0, 1.001, 0.999] for test in OTHERS}, **times}
        cells = {test: one if isinstance(one, Status) else {"cpu_time": one} for test, one in every.items()}
        run = run_of(self.day, cells)
        self.day += 1
        store_run(self.store, run)
        add_night(self.store, run_prefix(run.header))
        return run

    def detect(self, run):
        asking = Asking(self.config, self.folder / "questions")
        asking(self.store, self.policy, [run_prefix(run.header)])
        return asking.nights

    def answer(self, name, bench):
        self.patch.setattr(asking, "MachineBench", lambda *given: bench)
        out = self.folder / "answers" / f"answers-{name}" / f"{name}.jsonl"
        out.parent.mkdir(parents=True, exist_ok=True)
        answer_question(self.config, self.folder / "questions" / f"{name}.json.gz", self.folder / "into", out)
        return out

    def decide(self, run, nights):
        how = confirms(self.config, self.store, self.policy, self.folder / "answers", nights)
        tracker = IssueFile(self.folder / "issues.json")
        code = conclude(self.config, self.store, self.policy, run, tracker, confirm=how[run_prefix(run.header)])
        return code, json.loads((self.config.work / "nightly.json").read_bytes())["report"]

    def night(self, times, bench=None):
        """One whole night; `bench` None: the machine that was to confirm it died."""
        run = self.stored(times)
        nights = self.detect(run) or [AskedNight(key=run_prefix(run.header), name="")]
        if bench is not None and nights[0].name:
            self.answer(nights[0].name, bench)
        return self.decide(run, nights)

    @property
    def issues(self):
        return read_issues(self.folder / "issues.json")

    @property
    def state(self):
        return read_state(self.store, "smoke", "cpu-4t")[0]


@pytest.fixture
def nights(tmp_path, monkeypatch):
    return Nights(tmp_path, monkeypatch)


def usual(day):
    return {A: values(1.0, day), B: values(1.0, day)}


def test_a_change_is_confirmed_elsewhere_on_one_night_and_filed_on_the_next(nights):
    for day in range(3):
        run = nights.stored(usual(day))
        assert nights.detect(run) == [], "nothing to measure, so no machine is asked for"
        assert nights.decide(run, [AskedNight(key=run_prefix(run.header), name="")])[0] == 0
    bench = Scripted({A: 0.18})
    code, report = nights.night({A: values(1.2, 90), B: values(1.0, 90)}, bench)
    assert (code, report["reason"]) == (1, f"confirmed slower: {A}") and nights.issues == ()
    assert nights.state.series[f"{A} cpu_time"].pending is not None
    code, report = nights.night({A: values(1.2, 91), B: values(1.0, 91)}, bench)
    assert code == 1 and len(report["confirmation"]["filed"]) == 1
    (issue,) = nights.issues
    assert A in issue.body and "confirmed twice" in issue.body


def test_what_is_decided_from_answers_is_what_a_bench_here_would_have_come_to(nights, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    here = Nights(tmp_path / "here", monkeypatch)
    for day in range(14):
        for these in (nights, here):
            these.stored({**usual(day), C: values(1.0, 2 * day)})
    for day in range(14, 22):
        slow = 0.03 if 16 <= day < 19 else 0.0
        times = {A: values(1.0 + slow, day), B: values(1.0, day), C: values(1.0, 2 * day)}
        bench = Scripted({A: slow, C: 0.001})
        code, _ = nights.night(times, bench)
        run = here.stored(times)
        confirm = partial(confirmation.confirm_here, here.config, here.store, here.policy)
        closings = partial(confirmation.confirm_closings_here, here.config, here.store)
        for one in ("bench_of_night", "closing_bench"):
            monkeypatch.setattr(confirmation, one, lambda *given, bench=bench: bench)
        tracker = IssueFile(here.folder / "issues.json")
        assert conclude(here.config, here.store, here.policy, run, tracker, 0.0, confirm, closings) == code
    (one,), (other,) = nights.issues, here.issues
    assert (one.key, one.title, one.revision) == (other.key, other.title, other.revision)
    assert nights.state.model_copy(update={"nonce": ""}) == here.state.model_copy(update={"nonce": ""})
    assert nights.state.accounts.aa_tries > 0, "answers of every kind of ask were there"
    (closing,) = nights.state.outcome.closings
    assert closing.answer == "gone" and closing.asked[0].pairs >= 6 and not one.is_open


def test_a_night_whose_confirming_failed_ends_confirms_nothing_and_loses_nothing(nights):
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    before = nights.state
    code, report = nights.night({A: values(1.5, 3), B: Status.CRASH})
    assert code == 1 and report["confirmation"]["not_measured"].startswith("the confirming job has left no answers")
    assert "slower by over 7%" in report["reason"] and "nothing slower is confirmed" in report["reason"]
    assert nights.state == before, "as if the night had not been: what waits goes on waiting"
    (issue,) = nights.issues
    assert "1 test newly failing" in issue.title and B in issue.body, "failures are filed, what is only slower is not"

    bench = Scripted({A: 0.4}, ends={"04": (Status.OK,) * 3, "03": (Status.CRASH,) * 3})
    code, report = nights.night({A: values(1.5, 4), B: values(1.0, 4)}, bench)
    assert [one["verdict"] for one in report["confirmation"]["tried"]] == ["confirmed"], "the next night asks it"
    assert (A, "build0002", "build0004") in [one for ask in bench.asked for one in ask], "against the last good build"


def test_a_quiet_night_whose_confirming_failed_is_clean_and_says_so(nights):
    for day in range(14):
        nights.stored(usual(day))
    nights.night(usual(14), Scripted({}))
    for path in (nights.folder / "answers").rglob("*.jsonl"):
        path.unlink()
    code, report = nights.night(usual(15))
    assert code == 0 and "as nothing was measured again: the confirming job has left no answers" in report["reason"]
    assert nights.state.accounts.nights == 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (ValueError("a row is empty"), "ValueError: a row is empty"),
    ],
)
def test_a_night_that_cannot_be_concluded_keeps_no_other_from_being_concluded(nights, capsys, fault, told):
    first, second = (run_prefix(nights.stored(usual(day)).header) for day in range(2))

    def failing(*given):
        raise fault

    tracker = IssueFile(nights.folder / "issues.json")
    how = {first: failing, second: lambda *given: None}
    assert conclude_nights(nights.config, nights.store, nights.policy, how, tracker) == [2, 0]
    assert f"error: {first}: cannot be concluded: {told}" in " ".join(capsys.readouterr().err.split())
    assert json.loads((nights.config.work / "nightly.json").read_bytes())["key"] == second


def test_answers_of_another_night_or_changed_ones_confirm_nothing(nights):
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    bench = Scripted({A: 0.4})
    nights.night({A: values(1.5, 3), B: values(1.0, 3)}, bench)
    answers = nights.folder / "answers" / "answers-confirm-1" / "confirm-1.jsonl"
    code, report = nights.night({A: values(1.5, 4), B: values(1.0, 4)})  # yesterday's answers are there still
    assert "answers another question" in report["confirmation"]["not_measured"] and nights.issues == ()
    assert report["confirmation"]["waiting"] == [f"{A} cpu_time"], "what was confirmed is told still"

    run = nights.stored({A: values(1.5, 5), B: values(1.0, 5)})
    asked = nights.detect(run)
    nights.answer(asked[0].name, bench)
    lines = answers.read_text().splitlines(keepends=True)
    for changed in (lines[:-2] + lines[-1:], lines[:-1] + lines[-2:], lines[:-1]):
        answers.write_text("".join(changed))
        code, report = nights.decide(run, asked)
        assert code == 1 and report["confirmation"]["not_measured"] and nights.issues == ()
    answers.write_text("".join(lines))
    code, report = nights.decide(run, asked)
    assert report["confirmation"]["not_measured"] == "" and len(nights.issues) == 1
    assert nights.decide(run, asked)[1]["confirmation"] == report["confirmation"], "decided again, it stays"
    assert nights.detect(run) == [], "and asks for nothing"


def test_the_question_holds_what_a_machine_without_a_store_needs(nights):
    for day in range(15):
        nights.stored(usual(day))
    nights.night(usual(15), Scripted({}))
    wheel = PinnedWheel(name="torch", version="2.14.0", file="torch-2.14-py3-none-any.whl")
    pin = PinnedBuild(index="https://example.org/nightly", date="2026-03-16", python="3.12", wheels=(wheel,))
    store_build(nights.store, "build0015", pin)
    run = nights.stored({A: values(1.5, 16), B: values(1.0, 16)})
    (asked,) = nights.detect(run)
    question = read_question(nights.folder / "questions" / f"{asked.name}.json.gz")
    looked = judge_night(nights.config, nights.store, nights.policy, asked.key)
    there = confirmation.look_at_night(nights.store, looked.tonight, looked.report, nights.policy, "")
    seen = question.seen()
    assert seen.series == there.seen.series and seen.builds == there.seen.builds
    assert seen.logs.tobytes() == there.seen.logs.tobytes() and question.state == there.state
    assert question.candidates() == there.named and len(there.named) == 1
    assert {build.id for build in question.measured} == set(seen.builds)
    nights.answer(asked.name, Scripted({A: 0.4}))
    assert stored_build(open_store(str(nights.folder / "into" / "cpu-4t" / "pins")), "build0015").pin == pin


def test_a_question_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "confirm-1.json.gz"
    damaged = bytearray(gzip.compress(b"a question" * 100))
    damaged[12:15] = b"\xff" * 3
    for content in (b"", b"not gzip", b"\x1f\x8b\x08\x00", damaged):
        path.write_bytes(content)
        with pytest.raises(BotError, match=r"confirm-1\.json\.gz: "):
            read_question(path)


@pytest.mark.parametrize(
    "text", ["", "[]", '[{"key": "runs/../x", "name": "confirm-1"}]', '[{"key": "x", "name": "../1"}]']
)
def test_nights_that_no_step_gave_are_refused(text):
    with pytest.raises(BotError, match="nights: "):
        asked_nights(text)


def test_the_command_confirms_a_stored_night_once(nights, monkeypatch):
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    monkeypatch.setattr(confirmation, "bench_of_night", lambda *given: Scripted({A: 0.4}))
    with pytest.raises(BotError, match="was confirmed already"):
        confirm_stored(nights.config, None, None, None)
    for day in (3, 4):
        nights.stored({A: values(1.5, day), B: values(1.0, day)})
    issues = nights.folder / "issues.json"
    assert confirm_stored(nights.config, "2026-03-04", None, issues) == 1 and nights.issues == ()
    assert confirm_stored(nights.config, None, None, issues) == 1 and len(nights.issues) == 1
    for night, machine_class, said in (
        ("r0003", None, "is no night to confirm any more: that of 2026-03-05"),
        ("2026-03-05", "cpu-4t", "was confirmed already"),
        ("2026-03-30", None, "no night 2026-03-30 of smoke; see `torchbench baseline history`"),
        ("r0", None, "no night r0 of smoke"),
        (None, "gpu", "no nights of smoke on gpu"),
    ):
        with pytest.raises(BotError, match=said):
            confirm_stored(nights.config, night, machine_class, issues)


@pytest.mark.parametrize("by", ["the command", "the next night"])
def test_a_night_killed_after_it_was_confirmed_and_before_it_was_filed_is_filed_without_measuring(
    nights, monkeypatch, by
):
    """Its levels are stored: no later night would find what it has confirmed again."""
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    nights.night({A: values(1.5, 3), B: values(1.0, 3)}, Scripted({A: 0.4}))

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(conclusion, "change_alerts", killed)
        with pytest.raises(KeyboardInterrupt):
            nights.night({A: values(1.5, 4), B: values(1.0, 4)}, Scripted({A: 0.4}))
    assert nights.issues == () and nights.state.outcome.filed
    idle = Scripted({})
    if by == "the command":
        monkeypatch.setattr(confirmation, "bench_of_night", lambda *given: idle)
        assert confirm_stored(nights.config, None, None, nights.folder / "issues.json") == 1
        with pytest.raises(BotError, match="was confirmed already"):
            confirm_stored(nights.config, None, None, None)
    else:
        _, report = nights.night({A: values(1.5, 5), B: values(1.1, 5)}, idle)
        assert not report["confirmation"]["not_measured"], "what is asked is what is decided"
        assert [one["test"] for one in report["confirmation"]["tried"]] == [B]
    (issue,) = nights.issues
    assert A in issue.body and "confirmed twice" in issue.body
    assert not [test for asked in idle.asked for test, _, _ in asked if test == A]
    nights.night({A: values(1.5, 6), B: values(1.0, 6)}, idle)
    assert [one.key for one in nights.issues] == [issue.key]


@pytest.mark.parametrize("left", [0.0, 0.4])
def test_the_command_asks_pairs_before_an_alert_closes(nights, monkeypatch, left):
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    for day in (3, 4):
        nights.night({A: values(1.5, day), B: values(1.0, day)}, Scripted({A: 0.4}))
    for day in (5, 6):
        nights.night(usual(day), Scripted({}))
    assert nights.issues[0].is_open
    nights.stored(usual(7))
    closing = Scripted({A: left})
    monkeypatch.setattr(confirmation, "bench_of_night", lambda *given: Scripted({}))
    monkeypatch.setattr(confirmation, "closing_bench", lambda *given: closing)
    confirm_stored(nights.config, None, None, nights.folder / "issues.json")
    assert [test for asked in closing.asked for test, _, _ in asked] == [A]
    assert nights.issues[0].is_open == (left > 0)


def test_where_nothing_can_be_measured_a_class_that_is_confirmed_is_not_judged_by_the_limits(nights):
    tracker = IssueFile(nights.folder / "issues.json")
    for day in range(3):
        run = nights.stored(usual(day))
        nights.decide(run, [AskedNight(key=run_prefix(run.header), name="")])
    slow = nights.stored({A: values(1.5, 3), B: Status.CRASH})
    assert conclude_shards(nights.config, nights.store, nights.policy, [slow], tracker) == 1
    report = json.loads((nights.config.work / "nightly.json").read_bytes())["report"]
    assert report["confirmation"]["not_measured"] == "that is for `torchbench confirm`"
    (issue,) = nights.issues
    assert "newly failing" in issue.title
    assert confirmed_already(open_store(str(nights.folder / "other")), summarise(slow), None, "") is None


def test_a_night_that_lacks_a_shard_is_never_clean(nights):
    for day in range(3):
        nights.night(usual(day), Scripted({}))
    whole = run_of(3, {A: 1.5, B: 1.0, **dict.fromkeys(OTHERS, 1.0)})
    (shard, _) = shards_of(whole, [A, *OTHERS], [B])
    store_run(nights.store, shard)
    key = run_prefix(shard.header)
    (asked,) = nights.detect(shard)
    nights.answer(asked.name, Scripted({A: 0.0}))
    code, report = nights.decide(load_run(nights.store, key), [asked])
    assert (code, report["verdict"]) == (2, "broken")
    assert report["reason"] == "shard 2/2 is missing; 1 suspect measured again, none confirmed"


def test_nights_that_nobody_confirmed_are_no_baseline_for_some_days_only():
    tonight = night_of(30, {A: 1.0})
    ((mask,),) = unconfirmed_masks(ClassState(last_night=tonight.started - timedelta(days=20)), tonight).values()
    held = [days for days in range(1, 12) if mask.holds(tonight.started - timedelta(days=days))]
    assert held == [1, 2, 3, 4, 5, 6, 7]
    ((mask,),) = unconfirmed_masks(ClassState(last_night=tonight.started - timedelta(days=2)), tonight).values()
    assert mask.holds(tonight.started - timedelta(days=1)) and not mask.holds(tonight.started - timedelta(days=2))
    for known in (None, tonight.started, tonight.started + timedelta(days=1)):
        assert unconfirmed_masks(ClassState(last_night=known), tonight) == {}


def test_a_crash_is_asked_elsewhere_by_fresh_processes_and_filed_the_same_night(nights):
    for day in range(2):
        nights.night(usual(day), Scripted({}))
    bench = Scripted({}, ends={"02": (Status.CRASH,) * 3, "01": (Status.OK,) * 3})
    code, report = nights.night({A: values(1.0, 2), B: Status.CRASH}, bench)
    (one,) = report["confirmation"]["exact"]
    assert (code, one["kind"], one["verdict"], one["tonight"]) == (1, "newly failing", "confirmed", ["crash"] * 3)
    (issue,) = nights.issues
    assert "1 test newly failing" in issue.title and B in issue.body


def test_a_flaky_crash_is_told_by_who_decides_and_not_filed(nights):
    for day in range(2):
        nights.night(usual(day), Scripted({}))
    bench = Scripted({}, ends={"02": (Status.CRASH, Status.OK, Status.CRASH)})
    code, report = nights.night({A: values(1.0, 2), B: Status.CRASH}, bench)
    assert code == 0 and report["confirmation"]["exact"][0]["verdict"] == "flaky" and nights.issues == ()
