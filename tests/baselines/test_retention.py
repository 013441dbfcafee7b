"""Old runs are removed without their nights, and nothing that a pin or a detection needs."""

from datetime import UTC, datetime, timedelta

import pytest
from night_factory import FIRST_NIGHT, A, B, run_of, shards_of
from typer.testing import CliRunner

from baselines import cli
from baselines.confirming.state import ClassState, SeriesState
from baselines.confirming.stored_state import write_state
from baselines.errors import BaselineError
from baselines.history import add_night, read_nights, rebuild_history
from baselines.pins import pinned_night, set_pin
from baselines.retention import outdated_runs, remove_runs
from baselines.runs import list_runs, run_prefix, store_run
from torchbenchmark.terminal import new_app

SERIES = ("smoke", "cpu-4t")
LONG_AGO = -1000  # days from the first night


def kept(store, day):
    prefix = store_run(store, run_of(day, {A: 1.0 + day})).rpartition("/")[0]
    add_night(store, prefix)
    return prefix


def nights(store):
    return read_nights(store, *SERIES, 99, before=FIRST_NIGHT + timedelta(days=99))


def old_runs(store, day):
    return outdated_runs(store, *SERIES, FIRST_NIGHT + timedelta(days=day))


def test_of_a_removed_run_the_night_stays_also_when_the_history_is_made_again(any_store):
    prefixes = [kept(any_store, day) for day in (0, 1, 40, 41)]
    before = nights(any_store)
    removed = remove_runs(any_store, old_runs(any_store, 41))
    assert (removed.runs, removed.left) == (tuple(prefixes[:3]), ())
    assert list_runs(any_store, *SERIES) == prefixes[3:]
    assert nights(any_store) == before
    rebuilt = rebuild_history(any_store, *SERIES)
    assert (rebuilt.nights, rebuilt.left_out) == (4, ())
    assert nights(any_store) == before
    kept(any_store, 42)
    assert nights(any_store)[:4] == before
    assert remove_runs(any_store, old_runs(any_store, 41)).runs == ()


def test_a_pinned_run_stays(any_store):
    prefixes = [kept(any_store, day) for day in (0, 1, 2)]
    set_pin(any_store, "release", prefixes[1])
    assert old_runs(any_store, 9) == [prefixes[0], prefixes[2]]
    remove_runs(any_store, old_runs(any_store, 9))
    assert pinned_night(any_store, *SERIES).key == prefixes[1]


def test_the_run_that_a_segment_begins_with_stays(any_store):
    prefixes = [kept(any_store, day) for day in (0, 1, 2)]
    series = {f"{A} cpu_time": SeriesState(segment=FIRST_NIGHT + timedelta(days=1))}
    write_state(any_store, *SERIES, ClassState(series=series), None)
    assert old_runs(any_store, 9) == [prefixes[0], prefixes[2]]


def test_a_run_that_the_history_had_never_seen_is_put_into_it_first(any_store):
    store_run(any_store, run_of(0, {A: 1.0}))
    remove_runs(any_store, old_runs(any_store, 9))
    assert [night.run for night in nights(any_store)] == ["r0000"]


def test_a_removal_that_was_killed_between_two_shards_loses_nothing_and_goes_on(any_store):
    whole = run_of(0, {A: 1.0, B: 2.0})
    for shard in shards_of(whole, [A], [B]):
        add_night(any_store, store_run(any_store, shard).rpartition("/")[0])
    before = nights(any_store)
    delete, gone = any_store.delete, []

    def dies_after_one(key):
        if gone:
            raise KeyboardInterrupt
        delete(key)
        gone.append(key)

    any_store.delete = dies_after_one
    with pytest.raises(KeyboardInterrupt):
        remove_runs(any_store, old_runs(any_store, 9))
    assert gone
    any_store.delete = delete
    rebuild_history(any_store, *SERIES)
    add_night(any_store, store_run(any_store, run_of(1, {A: 1.0})).rpartition("/")[0])
    assert nights(any_store)[:1] == before
    assert remove_runs(any_store, old_runs(any_store, 1)).runs == (run_prefix(whole.header),)
    assert [night.run for night in nights(any_store)] == ["r0000", "r0001"]
    assert nights(any_store)[:1] == before


def test_a_shard_that_comes_when_its_run_was_removed_takes_nothing_from_the_night(any_store):
    shards = shards_of(run_of(0, {A: 1.0, B: 2.0}), [A], [B])
    for shard in shards:
        add_night(any_store, store_run(any_store, shard).rpartition("/")[0])
    before = nights(any_store)
    remove_runs(any_store, old_runs(any_store, 9))
    with pytest.raises(BaselineError, match="its records were removed"):
        add_night(any_store, store_run(any_store, shards[1]).rpartition("/")[0])
    rebuild_history(any_store, *SERIES)
    assert nights(any_store) == before


def test_a_run_that_is_pinned_while_others_are_removed_stays(any_store):
    prefixes = [kept(any_store, day) for day in (0, 1)]
    found = old_runs(any_store, 9)
    set_pin(any_store, "release", prefixes[0])
    removed = remove_runs(any_store, found)
    assert removed.runs == (prefixes[1],) and "was pinned meanwhile" in removed.left[0]
    assert pinned_night(any_store, *SERIES).key == prefixes[0]


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b'{"schema": 2}'])
def test_a_history_that_cannot_be_read_is_kept_aside_before_it_is_written_again(any_store, damage):
    kept(any_store, 0)
    remove_runs(any_store, old_runs(any_store, 9))
    key = "history/smoke/cpu-4t/2026-03.json.gz"
    found = any_store.read_versioned(key)
    damaged = damage(found.content)
    assert any_store.write_if(key, damaged, found.version)
    kept(any_store, 1)
    (aside,) = any_store.list("unreadable/")
    assert aside.startswith(f"unreadable/{key}-") and any_store.read(aside) == damaged


def test_an_object_can_be_deleted_once_and_again(any_store):
    any_store.create("a/b", b"1")
    any_store.delete("a/b")
    any_store.delete("a/b")
    assert any_store.read_if_present("a/b") is None and any_store.list("") == []
    any_store.create("a/b", b"2")


def gc(*arguments):
    app = new_app("test")
    cli.register(app)
    return CliRunner().invoke(app, ["baseline", "gc", *arguments])


def test_the_command_counts_and_removes_only_when_told(any_store):
    kept(any_store, LONG_AGO)
    today = (datetime.now(UTC) - FIRST_NIGHT).days
    kept(any_store, today)
    counted = gc("--store", any_store.location)
    assert counted.exit_code == 0
    assert (
        "smoke cpu-4t 1 2023-06-05 2023-06-05" in " ".join(counted.output.split())
        and "nothing was removed" in counted.output
    )
    assert len(list_runs(any_store, *SERIES)) == 2
    removed = gc("--store", any_store.location, "--remove")
    assert removed.exit_code == 0 and "runs removed" in removed.output
    assert [run[-5:] for run in list_runs(any_store, *SERIES)] == [f"r{today:04}"]
    assert "no run that may go" in gc("--store", any_store.location, "--remove").output


def test_a_run_that_cannot_be_read_stays_and_is_told(any_store):
    prefix = kept(any_store, LONG_AGO)
    key = f"{run_prefix(run_of(LONG_AGO + 1, {A: 1.0}).header)}/1-of-1.jsonl.gz"
    any_store.create(key, b"damaged\n")
    done = gc("--store", any_store.location, "--remove")
    assert done.exit_code == 2
    assert "stays:" in done.output and "1-of-1.jsonl.gz" in done.output
    assert any_store.read(key) == b"damaged\n"
    assert prefix not in list_runs(any_store, *SERIES)


def test_the_agreement_of_the_shards_goes_with_their_run(any_store):
    for shard in shards_of(run_of(0, {A: 1.0, B: 1.0}), [A], [B]):
        key = store_run(any_store, shard)
    add_night(any_store, key.rpartition("/")[0])
    assert any_store.list("agreements/") == ["agreements/smoke/r0000.json"]
    remove_runs(any_store, [key.rpartition("/")[0]])
    assert any_store.list("agreements/") == []
