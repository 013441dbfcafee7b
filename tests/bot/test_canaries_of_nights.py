"""Canaries in a nightly: configured, concluded with their shards, and never in the way of the night."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from night_factory import A, B, record, run_of, shards_of

from baselines.canaries import read_canaries
from baselines.store import open_store
from bot import nightly as nightly_module
from bot.canary import canary_command, require_canaries
from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.github.outbox import Outbox
from bot.nightly import run_nightly
from bot.readiness import require_ready
from bot.sharded import conclude_files, make_plan
from bot.workflow import _tell_conclusion
from torchbenchmark.canaries.measuring import canary_file, not_measured
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.records import CanaryOf, Run, Status, read_run, replace_lines
from torchbenchmark.registry import load_suite

SETTINGS = CanarySettings(python="/opt/canary/bin/python")
GOOD = {A: 1.0, B: 1.0}


@pytest.fixture
def config(tmp_path) -> NightlyConfig:
    made = NightlyConfig(
        store=str(tmp_path / "store"), work=tmp_path / "work", outbox=tmp_path / "outbox", canary=SETTINGS
    )
    made.work.mkdir()
    return made


def canaries_of(night: Run, time_s: float = 1.0, *, failed: int = 0, **changes) -> list[Run]:
    """The first and the last canaries of a shard, all ok but some."""
    runs = []
    for turn in ("first", "last"):
        header = not_measured(SETTINGS, night.header, turn, "").header
        canary = CanaryOf(run=night.header.run, shard=night.header.shard, turn=turn, lock="0123456789ab")
        build = header.build.model_copy(update={"id": "2.12.0-frozen00", "version": "2.12.0"})
        header = header.model_copy(update={"canary": canary, "build": build, **changes})
        records = tuple(
            record(
                header.run, one.test, *(({}, Status.CRASH, "broke") if place < failed else ({"cpu_time": time_s},))
            ).model_copy(update={"workload": one.workload})
            for place, one in enumerate(header.plan)
        )
        runs.append(Run(header, records))
    return runs


def conclude(config: NightlyConfig, folder: Path, *runs: Run, plan=None) -> tuple[int, dict]:
    files = []
    for number, run in enumerate(runs):
        files.append(folder / f"{number}.jsonl")
        replace_lines(files[-1], [run.header, *run.records])
    code = conclude_files(config, files, Outbox(config.outbox), plan)
    return code, json.loads((config.work / "nightly.json").read_text())


def stored(config: NightlyConfig, night: Run):
    header = night.header
    return read_canaries(open_store(config.store), "canary", header.machine_class, header.run, header.started)


# What is configured


def test_paths_of_canaries_are_relative_to_the_file_and_in_a_plan_to_the_folder(tmp_path, monkeypatch):
    path = tmp_path / "nightly.yaml"
    path.write_text("suite: smoke\ncanary: {python: env/bin/python, suite: mine.yaml}\n")
    loaded = load_config(path)
    assert loaded.canary.python == tmp_path / "env/bin/python"
    assert loaded.canary.suite == str(tmp_path / "mine.yaml")
    monkeypatch.chdir(tmp_path)
    planned = make_plan(loaded, load_suite("smoke"), 2, {}).canary
    assert (planned.python, planned.suite) == (Path("env/bin/python"), "mine.yaml")
    path.write_text("canary: {python: python3.12}\n")
    assert load_config(path).canary == CanarySettings(python="python3.12")
    path.write_text("canary: {}\n")
    with pytest.raises(BotError, match=r"nightly\.yaml: key canary: .*set either `build`"):
        load_config(path)


def test_a_suite_that_is_the_nightlys_own_or_has_too_few_canaries_is_refused_before_a_night(config, tmp_path):
    require_ready(config)
    with pytest.raises(BotError, match=r"`canary\.suite` in the configuration: canary is the suite of the nightly too"):
        require_ready(config.model_copy(update={"suite": "canary"}))
    few = tmp_path / "few.yaml"
    few.write_text("name: few\ndescription: d\nmodels: [dlrm, resnet18]\npreset: tiny\n")
    lame = SETTINGS.model_copy(update={"suite": str(few)})
    with pytest.raises(BotError, match=r"few has 4 tests on cpu, and the mean over canaries needs 5; add models"):
        require_ready(config.model_copy(update={"canary": lame}))


def test_the_command_needs_the_key(tmp_path):
    path = tmp_path / "nightly.yaml"
    path.write_text("suite: smoke\n")
    with pytest.raises(BotError, match="has no key canary, which says what the frozen build is"):
        canary_command(path)


# What comes with the shards


def test_canaries_are_stored_with_their_night_and_what_they_say_stands_in_the_summary(config, tmp_path):
    night = run_of(0, GOOD)
    code, summary = conclude(config, tmp_path, night, *canaries_of(night))
    assert code == 0
    assert summary["canaries"]["why_not"] == "0 comparable nights before, and a level needs 7"
    history, tonight = stored(config, night)
    assert history == [] and [run.canary.turn for run in tonight.runs] == ["first", "last"]
    assert not tonight.failures and len(tonight.tests) >= 5


def test_a_night_whose_canaries_moved_has_a_reason_to_suspect_the_environment(config, tmp_path, monkeypatch, capsys):
    for day in range(8):
        night = run_of(day, GOOD)
        _, summary = conclude(config, tmp_path, night, *canaries_of(night, 1.0 + 0.0002 * (day % 3)))
        reasons = summary["report"]["screen"]["environment"] if day else []
        assert not reasons, "nothing happened yet"
    night = run_of(8, GOOD)
    code, summary = conclude(config, tmp_path, night, *canaries_of(night, 1.05))
    (reason,) = summary["report"]["screen"]["environment"]
    assert reason == summary["canaries"]["sentence"]
    assert reason.startswith("the frozen build moved: cpu_time of 5 canaries +")
    assert code == 0 and summary["canaries"]["moved"], "no verdict hangs on it"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    capsys.readouterr()
    _tell_conclusion(code, summary)
    assert capsys.readouterr().out.startswith(
        "::warning title=canaries::the frozen build moved: cpu_time of 5 canaries"
    )


def test_a_shard_whose_frozen_build_is_another_is_told(config, tmp_path, capsys):
    first, second = shards_of(run_of(0, GOOD), [A], [B])
    odd = [run.header.canary.model_copy(update={"lock": "f" * 12}) for run in canaries_of(second)]
    others = [
        Run(run.header.model_copy(update={"canary": canary}), run.records)
        for run, canary in zip(canaries_of(second), odd, strict=True)
    ]
    assert conclude(config, tmp_path, first, second, *canaries_of(first), *others)[0] == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "shard 2/2: measured on another frozen build (2.12.0-frozen00) than those before, and left out" in said


def test_canaries_that_have_not_come_are_recorded_as_errors_and_told(config, tmp_path, capsys):
    first, second = shards_of(run_of(0, GOOD), [A], [B])
    code, _ = conclude(config, tmp_path, first, second, *canaries_of(first))
    assert code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "warning: the last canaries of run r0000, shard 2/2: test_eval[" in said
    _, tonight = stored(config, first)
    assert [(run.canary.shard.index, run.canary.turn, run.coverage) for run in tonight.runs] == [
        (1, "first", 1.0),
        (1, "last", 1.0),
        (2, "first", 0.0),
        (2, "last", 0.0),
    ]
    assert set(tonight.failures.values()) == {"error: the run of canaries has not come"}
    # They come late, and count.
    conclude(config, tmp_path, second, *canaries_of(second))
    assert not stored(config, first)[1].failures


def test_a_run_of_canaries_that_ended_early_is_filled_with_errors(config, tmp_path):
    night = run_of(0, GOOD)
    first, last = canaries_of(night)
    code, _ = conclude(config, tmp_path, night, first, Run(last.header, last.records[:2]))
    assert code == 0
    failures = stored(config, night)[1].failures
    assert len(failures) == len(last.records) - 2
    assert set(failures.values()) == {"error: the run ended before this canary"}


def test_canaries_that_failed_or_came_twice_falsify_no_night(config, tmp_path, capsys):
    night = run_of(0, GOOD)
    assert conclude(config, tmp_path, night, *canaries_of(night, failed=5))[0] == 0
    again = canaries_of(night, 2.0)
    code, summary = conclude(config, tmp_path, night, *again)
    assert code == 0 and summary["planned"] == 2
    assert "have come before, with other results: those stay" in " ".join(capsys.readouterr().out.split())
    assert len(stored(config, night)[1].failures) == 5


def test_canaries_without_a_shard_are_no_night(config, tmp_path, capsys):
    night = run_of(0, GOOD)
    files = [tmp_path / "canary.jsonl"]
    (first, _) = canaries_of(night)
    replace_lines(files[0], [first.header, *first.records])
    assert conclude_files(config, files, Outbox(config.outbox)) == 2
    assert "canaries have come, and no shard to judge" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": "another"}, "whose name is not"),
        ({"suite": "smoke"}, "whose suite is not"),
        ({"selection": ("dlrm",)}, "whose selection is not"),
        ({"rounds": 9}, "whose rounds is not"),
        ({"started": datetime(2026, 3, 2, tzinfo=UTC)}, "whose start is not"),
    ],
)
def test_canaries_that_were_not_planned_so_are_refused(config, change, said):
    night = run_of(0, GOOD)
    plan = make_plan(config, load_suite("smoke"), 1, {}).model_copy(
        update={"run": "r0000", "started": night.header.started, "rounds": 1, "shards": (("resnet50", "hf_Bert"),)}
    )
    good = canaries_of(night)
    for run in good:
        require_canaries(run, config, plan)
    first, _ = canaries_of(night, **change)
    first = Run(first.header, tuple(one.model_copy(update={"run": first.header.run}) for one in first.records))
    with pytest.raises(BotError, match=said):
        require_canaries(first, config, plan)


def test_canaries_of_others_are_left_out(config, tmp_path, capsys):
    night = run_of(0, GOOD)
    run = canaries_of(night)[0]
    plan = make_plan(config, load_suite("smoke"), 1, {})
    with pytest.raises(BotError, match="whose night is not"):
        require_canaries(run, config, plan.model_copy(update={"started": night.header.started, "rounds": 1}))
    with pytest.raises(BotError, match="none are asked for"):
        require_canaries(run, config.model_copy(update={"canary": None}), None)
    pinned = SETTINGS.model_copy(update={"lock": "f" * 12})
    with pytest.raises(BotError, match="whose lock is not"):
        require_canaries(run, config.model_copy(update={"canary": pinned}), None)
    with pytest.raises(BotError, match="which `classes` does not take"):
        require_canaries(run, config.model_copy(update={"classes": ("cpu-other-t1",)}), None)
    odd = run.header.model_copy(update={"plan": run.header.plan[1:]})
    with pytest.raises(BotError, match="whose tests is not"):
        require_canaries(Run(odd, run.records[1:]), config, None)
    code, _ = conclude(config.model_copy(update={"canary": None}), tmp_path, night, run)
    assert code == 0 and "none are asked for; left out" in " ".join(capsys.readouterr().out.split())


# A night on one machine


def test_a_night_of_long_ago_that_was_measured_is_finished_without_the_canaries_that_it_lacks(
    config, monkeypatch, capsys
):
    started = datetime.now(UTC) - timedelta(hours=20)
    night = run_of(0, GOOD)
    night = Run(night.header.model_copy(update={"started": started}), night.records)
    file = config.work / "tonight.jsonl"
    replace_lines(file, [night.header, *night.records])
    first, _ = canaries_of(night)
    replace_lines(canary_file(file, "first"), [first.header, *first.records])

    def no_night(*_):
        raise BotError("and no further night")

    monkeypatch.setattr(nightly_module, "require_ready", no_night)
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(config.work / "builds"))
    with pytest.raises(BotError, match="no further night"):
        run_nightly(config)
    _, tonight = stored(config, night)
    assert [run.coverage for run in tonight.runs] == [1.0, 0.0]
    assert set(tonight.failures.values()) == {"error: the night was killed before this, and finished in another night"}
    assert not list(config.work.glob("tonight*"))


@pytest.fixture
def measured(config, monkeypatch) -> Run:
    """A night that was measured just now, of whose canaries the first cannot be stored and the last cannot be read."""
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(config.work / "builds"))
    night = run_of(0, GOOD)
    night = Run(night.header.model_copy(update={"started": datetime.now(UTC)}), night.records)
    first, _ = canaries_of(night)
    file = config.work / "tonight.jsonl"
    replace_lines(file, [night.header, *night.records])
    spoilt = first.header.model_copy(update={"selection": ("dlrm",)})
    replace_lines(canary_file(file, "first"), [spoilt, *first.records])
    return night


def test_canaries_that_cannot_be_stored_are_kept_and_told(config, measured, capsys):
    assert run_nightly(config) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the first canaries of run r0000: not stored: run r0000-canary-first measured only dlrm" in said
    (kept,) = config.work.glob("abandoned-*.canary-first.jsonl")
    assert not read_run(kept).missing
    assert not list(config.work.glob("tonight*"))


def test_canaries_that_cannot_be_stored_are_tried_again_until_the_night_is_concluded(config, measured, monkeypatch):
    def no_conclusion(*_):
        raise BotError("killed here")

    monkeypatch.setattr(nightly_module, "conclude", no_conclusion)
    with pytest.raises(BotError, match="killed here"):
        run_nightly(config)
    held = {path.name: path.read_bytes() for path in config.work.glob("tonight*.jsonl")}
    assert held.keys() == {"tonight.jsonl", "tonight.canary-first.jsonl", "tonight.canary-last.jsonl"}
    with pytest.raises(BotError, match="killed here"):
        run_nightly(config)
    assert {path.name: path.read_bytes() for path in config.work.glob("tonight*.jsonl")} == held
