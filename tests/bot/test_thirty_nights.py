"""A month of nights through everything that follows the measuring, with GitHub's emulator as the tracker and a real
object store, and with the fake and a folder: one step up, later undone, is one issue."""

import random

import pytest
from github_servers import BOT, REPOSITORY, github, needs_emulator, own_github
from night_factory import A, B, C, run_of

from baselines.policy import load_policy
from baselines.store import open_store
from bot.config import NightlyConfig
from bot.filing import open_tracker
from bot.sharded import conclude_shards

NIGHTS, STEP, UNDONE = 30, range(10, 20), 20


@pytest.mark.parametrize(
    ("any_store", "start"),
    [pytest.param("seaweedfs", github, marks=needs_emulator), ("folder", own_github)],
    indirect=["any_store"],
)
def test_a_step_of_20_percent_that_is_later_undone_is_one_issue_closed_after_three_good_nights(
    any_store, start, tmp_path, monkeypatch
):
    chance = random.Random(11)
    policy = load_policy("default")
    seen = []
    with start(tmp_path) as hub:
        hub.use(monkeypatch)
        config = NightlyConfig(
            store=any_store.location,
            work=tmp_path / "work",
            outbox=tmp_path / "outbox",
            github=REPOSITORY,
            github_login=BOT,
        )
        config.work.mkdir()
        for day in range(NIGHTS):
            times = {test: chance.lognormvariate(0, 0.003) for test in (A, B, C)}
            if day in STEP:
                times[A] *= 1.2
            code = conclude_shards(config, open_store(config.store), policy, [run_of(day, times)], open_tracker(config))
            seen.append((code, [(issue["state"], issue["body"]) for issue in hub.issues()]))
            if day == STEP.start:  # a night that is concluded again, as after a kill, changes nothing
                assert (
                    conclude_shards(
                        config, open_store(config.store), policy, [run_of(day, times)], open_tracker(config)
                    )
                    == code
                )
                assert [(issue["state"], issue["body"]) for issue in hub.issues()] == seen[-1][1]
    assert [code for code, _ in seen] == [1 if day in STEP else 0 for day in range(NIGHTS)]
    states = [[state for state, _ in issues] for _, issues in seen]
    closed = UNDONE + 2
    assert states == [[]] * STEP.start + [["open"]] * (closed - STEP.start) + [["closed"]] * (NIGHTS - closed)
    bodies = [issues[0][1] for _, issues in seen[STEP.start :]]
    assert len(set(bodies[: closed - STEP.start + 1])) == closed - STEP.start + 1, "updated every night"
    assert len(set(bodies[closed - STEP.start :])) == 1, "and left alone once closed"
    assert f"`{A}`" in bodies[0]
    assert "recovered for 3 nights" in bodies[-1]
    assert not (tmp_path / "outbox").exists()
