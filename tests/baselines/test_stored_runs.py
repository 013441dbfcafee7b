"""Runs in a store, and the history derived from them."""

import dataclasses
import gzip
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from night_factory import FIRST_NIGHT, A, B, C, run_of, shards_of

from baselines.errors import BaselineError
from baselines.history import MONTHS_BACK, add_night, read_nights, rebuild_history
from baselines.runs import list_runs, list_series, load_run, run_prefix, store_run
from baselines.series import summarise
from baselines.store.folder import FolderStore
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Status, encode_run

SERIES = ("smoke", "cpu-4t")
MARCH = "history/smoke/cpu-4t/2026-03.json.gz"


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


def stored(store, day, value=1.0, **fields) -> str:
    """Store the night of a day; its prefix."""
    return store_run(store, run_of(day, {A: value}, **fields)).rpartition("/")[0]


def kept(store, day, value=1.0, **fields) -> str:
    """As `stored`, and in the history as well."""
    prefix = stored(store, day, value, **fields)
    add_night(store, prefix)
    return prefix


def test_a_run_is_stored_under_suite_class_date_build_and_run(store):
    run = run_of(3, {A: 1.0, B: Status.CRASH})
    key = store_run(store, run)
    assert key == "runs/smoke/cpu-4t/2026-03-04-build0003-r0003/1-of-1.jsonl.gz"
    assert store.list("") == [key]
    assert load_run(store, run_prefix(run.header)) == run
    assert store_run(store, run) == key


def test_a_run_once_stored_cannot_be_changed(store):
    stored(store, 0, 1.0)
    with pytest.raises(BaselineError, match="immutable"):
        stored(store, 0, 2.0)


@pytest.mark.parametrize("field", ["suite", "machine_class", "run"])
def test_a_name_that_cannot_be_in_a_key_is_refused_by_name(store, field):
    with pytest.raises(BaselineError, match=r"'\.\./x' cannot be part of a key"):
        stored(store, 0, **{field: "../x"})


def test_the_runs_of_a_suite_and_class_come_by_date(store):
    for day in (40, 2, 11):
        stored(store, day)
    stored(store, 1, machine_class="cpu-8t")
    assert [prefix.rpartition("/")[2][:10] for prefix in list_runs(store, *SERIES)] == [
        "2026-03-03",
        "2026-03-12",
        "2026-04-10",
    ]
    assert len(list_runs(store, *SERIES, "2026-04")) == 1
    assert list_series(store) == [("smoke", "cpu-4t"), ("smoke", "cpu-8t")]


def test_the_shards_of_a_run_are_one_run_that_names_what_is_missing(store):
    whole = run_of(0, {A: 1.0, B: 2.0, C: 3.0})
    first, second = shards_of(whole, [A], [B, C])
    prefix = store_run(store, second).rpartition("/")[0]
    part = load_run(store, prefix)
    assert part.missing_shards == ("1/2",)
    assert [planned.test for planned in part.header.elsewhere] == [A]
    assert part.coverage == pytest.approx(2 / 3)
    night = summarise(part)
    assert night.missing_shards == ("1/2",)
    assert night.tests[A].absent and not night.tests[A].failed and not night.tests[A].ok
    assert night.tests[A].reason == "not delivered: shard 1/2 is missing"
    store_run(store, first)
    joined = load_run(store, prefix)
    assert summarise(joined) == summarise(whole)
    assert {record.test for record in joined.records} == {A, B, C}
    assert joined.missing_shards == () and joined.header.elsewhere == ()


def test_the_history_of_a_night_is_made_whole_by_a_shard_that_comes_late(store):
    whole = run_of(0, {A: 1.0, B: 2.0})
    for shard in shards_of(whole, [A], [B]):
        prefix = store_run(store, shard).rpartition("/")[0]
        add_night(store, prefix)
    (night,) = read_nights(store, *SERIES, 9, before=FIRST_NIGHT + timedelta(days=9))
    assert night == summarise(whole)
    grown = store.read(MARCH)
    rebuild_history(store, *SERIES)
    assert store.read(MARCH) == grown


def test_a_whole_run_stored_by_an_early_version_is_read(store):
    run = run_of(0, {A: 1.0})
    path = store.root / store_run(store, run)
    path.rename(path.with_name("0-of-1.jsonl.gz"))
    assert load_run(store, run_prefix(run.header)) == run


GOOD = {A: 1.0, B: 1.0}


def halves(**fields):
    return shards_of(run_of(0, GOOD, **fields), [A], [B])


def changed(shard, **fields):
    return dataclasses.replace(shard, header=shard.header.model_copy(update=fields))


def otherwise_measured(shard, **settings):
    return changed(shard, measuring=shard.header.measuring.model_copy(update=settings))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            halves(fingerprint="env2", facts={"driver": "2"})[1],
            r"differ in environment \(cpu, driver\); measure the shard",
        ),
        (halves(fingerprint="env2")[1], r"differ in environment \(the fingerprint alone\)"),
        (halves(workloads={B: "w2"})[1], "differ in the tests they planned, or the workloads of these"),
        (shards_of(run_of(0, {**GOOD, C: 1.0}), [A], [B])[1], "differ in the tests they planned"),
        (changed(halves()[1], seed=2, rounds=9), "differ in seed, rounds"),
        (changed(halves()[1], device="cuda"), "differ in device"),
        (changed(halves()[1], harness="other"), "differ in harness"),
        (otherwise_measured(halves()[1], budget_s=0.05), "differ in measuring"),
        (shards_of(run_of(0, GOOD), [A], [A, B])[1], "has a record in another shard too"),
        (shards_of(run_of(0, {A: 1.0}), [A], [], [])[1], "shards of different divisions"),
        (halves(machine_class="cpu-8t")[1], "with class cpu-4t instead of cpu-8t; measure"),
        (
            changed(halves()[1], build=run_of(1, GOOD).header.build),
            "with build build0000 instead of build0001; measure",
        ),
        (
            changed(halves()[1], started=FIRST_NIGHT + timedelta(days=2, hours=1)),
            r"with start 2026-03-01 02:00:00\+00:00 instead of 2026-03-03 03:00:00\+00:00; measure",
        ),
        (
            changed(halves(machine_class="cpu-8t")[1], build=run_of(1, GOOD).header.build),
            "with build build0000 instead of build0001 and class cpu-4t instead of cpu-8t; measure",
        ),
    ],
)
def test_a_shard_that_does_not_belong_to_the_others_is_refused_before_it_spoils_them(store, other, said):
    first, second = halves()
    key = store_run(store, first)
    with pytest.raises(BaselineError, match=rf"shard \S+ of run r0000 is not stored: .*{said}"):
        store_run(store, other)
    assert store.list("runs/") == [key]
    store_run(store, second)
    assert load_run(store, run_prefix(first.header)).missing_shards == ()


def test_shards_that_differ_in_limits_only_belong_together(store):
    first, second = halves()
    store_run(store, first)
    store_run(store, otherwise_measured(second, timeout_s=5.0, memory_limit_bytes=2**30))
    assert load_run(store, run_prefix(first.header)).missing_shards == ()


def test_a_run_whose_name_ends_like_that_of_another_is_no_part_of_it(store):
    store_run(store, shards_of(run_of(0, GOOD, run="x-r9"), [A], [B])[0])
    store_run(store, shards_of(run_of(0, GOOD, run="r9"), [A], [B])[0])
    assert len(list_runs(store, *SERIES)) == 2


def test_shards_that_came_into_the_store_past_this_code_are_told_by_their_keys(store):
    first, _ = halves()
    path = store.root / store_run(store, first)
    path.rename(path.with_name("3-of-2.jsonl.gz"))
    with pytest.raises(BaselineError, match=r"3-of-2\.jsonl\.gz is not a shard; expected the form i-of-n"):
        load_run(store, run_prefix(first.header))
    path.with_name("3-of-2.jsonl.gz").rename(path)
    (path.parent / "2-of-2.jsonl.gz").write_bytes(encode_run(halves(fingerprint="env2")[1]))
    with pytest.raises(BaselineError, match=r"2-of-2\.jsonl\.gz and \S+/1-of-2\.jsonl\.gz differ in environment"):
        load_run(store, run_prefix(first.header))


def test_a_writer_that_saw_only_a_part_of_a_run_leaves_no_partial_night(store):
    """The other shard comes between its reading and its writing, or before a kill took the other writer."""
    first, second = halves()
    prefix = store_run(store, first).rpartition("/")[0]
    write_if = store.write_if

    def other_writer_is_faster(key, content, version):
        store.write_if = write_if
        store_run(store, second)
        add_night(store, prefix)
        return write_if(key, content, version)

    store.write_if = other_writer_is_faster
    assert add_night(store, prefix).missing_shards == ()
    (night,) = read_nights(store, *SERIES, 1, before=FIRST_NIGHT + timedelta(days=1))
    assert night == summarise(run_of(0, GOOD))


def test_a_night_that_got_a_shard_whose_writer_was_killed_is_whole_after_the_next_night(store):
    first, second = halves()
    add_night(store, store_run(store, first).rpartition("/")[0])
    store_run(store, second)
    add_night(store, stored(store, 1))
    before, _ = read_nights(store, *SERIES, 2, before=FIRST_NIGHT + timedelta(days=2))
    assert before == summarise(run_of(0, GOOD))


def test_a_history_can_be_read_without_being_written(store):
    prefix = stored(store, 0)
    (night,) = read_nights(store, *SERIES, 1, before=FIRST_NIGHT + timedelta(days=1), read_only=True)
    assert night.key == prefix
    assert store.list("history/") == []


def test_a_run_that_is_not_there_or_damaged_is_told(store):
    with pytest.raises(BaselineError, match="there is no run"):
        load_run(store, "runs/smoke/cpu-4t/2026-03-01-b-r")
    with pytest.raises(BaselineError, match="is not the key of a run"):
        load_run(store, "runs/smoke")
    prefix = stored(store, 0)
    path = store.root / prefix / "1-of-1.jsonl.gz"
    content = path.read_bytes()
    for damaged in (content[:40], content[:20] + bytes(8) + content[28:], b"no gzip\n"):
        path.write_bytes(damaged)
        with pytest.raises((BaselineError, BenchmarkError), match="1-of-1"):
            load_run(store, prefix)


def test_a_night_keeps_every_planned_test_and_what_each_process_gave():
    run = run_of(0, {A: {"cpu_time": [1.0, 3.0, 2.0]}, B: None})
    night = summarise(run)
    assert night.tests[A].channels["cpu_time"].p20 == (1.0, 3.0, 2.0)
    assert night.tests[A].channels["cpu_time"].location("p20") == pytest.approx(1.4)  # of 1, 2, 3 pooled
    assert night.tests[B].status is None and night.tests[B].failed and "no record" in night.tests[B].reason
    assert night.coverage == 0.5
    assert night.environment.observed == {}


def test_the_history_is_the_same_bytes_whether_added_night_by_night_or_rebuilt(store):
    for day in (5, 1, 3, 30, 31, 32, 70):
        kept(store, day, 1.0 + day / 7)
    grown = {key: store.read(key) for key in store.list("history/")}
    assert list(grown) == [f"history/smoke/cpu-4t/2026-0{month}.json.gz" for month in (3, 4, 5)]
    rebuilt = rebuild_history(store, *SERIES)
    assert (rebuilt.nights, rebuilt.left_out) == (7, ())
    assert {key: store.read(key) for key in store.list("history/")} == grown
    for key in grown:
        (store.root / key).unlink()
    rebuild_history(store, *SERIES)
    assert {key: store.read(key) for key in store.list("history/")} == grown


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.integers(0, 80), st.floats(1e-9, 1e9), min_size=1, max_size=6).flatmap(
        lambda nights: st.permutations(sorted(nights.items()))
    )
)
def test_the_order_in_which_nights_are_added_does_not_show_in_the_history(tmp_path_factory, nights):
    store = FolderStore(tmp_path_factory.mktemp("store"))
    for day, value in nights:
        kept(store, day, value)
    grown = {key: store.read(key) for key in store.list("history/")}
    rebuild_history(store, *SERIES)
    assert {key: store.read(key) for key in store.list("history/")} == grown


def test_a_night_that_an_interrupted_writer_left_out_of_the_history_comes_in_with_the_next(store):
    kept(store, 1)
    stored(store, 2)
    kept(store, 3)
    assert [night.run for night in read_nights(store, *SERIES, 9, before=FIRST_NIGHT + timedelta(days=9))] == [
        "r0001",
        "r0002",
        "r0003",
    ]


@pytest.mark.parametrize(
    "damage",
    [
        None,
        b"",
        b"no gzip",
        gzip.compress(b"no json"),
        gzip.compress(b'{"kind":"history","schema":2,"nights":[]}'),
        gzip.compress(b'{"kind":"history","schema":1,"nights":[{"run":1}]}'),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + b"\xff" * 30,
    ],
    ids=["missing", "empty", "no gzip", "no JSON", "foreign schema", "foreign entry", "broken gzip"],
)
def test_a_history_that_is_missing_or_damaged_is_rebuilt_by_reading_and_by_adding(store, damage):
    for day in range(3):
        kept(store, day)
    good, path = store.read(MARCH), store.root / MARCH
    before = FIRST_NIGHT + timedelta(days=20)

    def hurt():
        path.unlink() if damage is None else path.write_bytes(damage)

    hurt()
    assert len(read_nights(store, *SERIES, 9, before=before)) == 3
    assert store.read(MARCH) == good
    hurt()
    kept(store, 3)
    assert len(read_nights(store, *SERIES, 9, before=before)) == 4


def test_a_run_that_cannot_be_read_is_left_out_of_the_rebuilt_history_and_named(store):
    prefix = kept(store, 1)
    kept(store, 2)
    (store.root / prefix / "0-of-1.jsonl.gz").write_bytes(b"")
    rebuilt = rebuild_history(store, *SERIES)
    assert rebuilt.nights == 1
    assert len(rebuilt.left_out) == 1 and prefix in rebuilt.left_out[0]


def test_reading_gives_the_last_nights_before_a_time_oldest_first(store):
    for day in (0, 10, 31, 45, 62):
        kept(store, day)

    def read(count, day, **options):
        nights = read_nights(store, *SERIES, count, before=FIRST_NIGHT + timedelta(days=day), **options)
        return [int(night.run[1:]) for night in nights]

    assert read(2, 62) == [31, 45]
    assert read(9, 99) == [0, 10, 31, 45, 62]
    assert read(2, 63, wanted=lambda night: night.run != "r0045") == [31, 45, 62]
    assert read(3, 0) == []


def test_one_reading_touches_a_bounded_number_of_objects_however_long_the_history(store, monkeypatch):
    for day in range(-30 * 39, 1, 30):
        kept(store, day)
    reads, lists = [], []
    read, listed = store.read_if_present, store.list
    monkeypatch.setattr(store, "read_if_present", lambda key: (reads.append(key), read(key))[1])
    monkeypatch.setattr(store, "list", lambda prefix: (lists.append(prefix), listed(prefix))[1])
    assert len(read_nights(store, *SERIES, 5, before=FIRST_NIGHT + timedelta(days=1))) == 5
    assert len(reads) <= 6 and not any(key.startswith("runs/") for key in reads)
    read_nights(store, *SERIES, 10_000, before=FIRST_NIGHT + timedelta(days=1))
    assert len(reads) <= 6 + MONTHS_BACK


ADDING = """
import sys
from pathlib import Path
from baselines.history import add_night
from baselines.store import open_store
for prefix in sys.argv[2:]:
    add_night(open_store(sys.argv[1]), prefix)
"""


def test_nights_added_by_several_processes_at_once_are_all_there(store):
    prefixes = [stored(store, day) for day in range(12)]
    writers = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(store.root), *prefixes[index::3]]) for index in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 3
    assert len(read_nights(store, *SERIES, 99, before=FIRST_NIGHT + timedelta(days=30))) == 12
    grown = store.read(MARCH)
    rebuild_history(store, *SERIES)
    assert store.read(MARCH) == grown


def test_a_time_zone_does_not_move_a_night(store):
    run = run_of(0, {A: 1.0})
    local = run.header.started.astimezone(timezone(timedelta(hours=-8)))
    moved = dataclasses.replace(run, header=run.header.model_copy(update={"started": local}))
    assert "2026-03-01" in store_run(store, moved)
    assert summarise(moved) == summarise(run)


@pytest.mark.parametrize("changes", [{"fingerprint": "env2"}, {"run": "r0000", "day": 1}])
def test_of_two_shards_that_are_stored_at_the_same_moment_only_one_gives_the_run_its_ground(
    store, monkeypatch, changes
):
    first = shards_of(run_of(0, {A: 1.0, B: 1.0}), [A], [B])[0]
    other = shards_of(run_of(**{"day": 0, "tests": {A: 1.0, B: 1.0}, **changes}), [A], [B])[1]
    # Each has looked before the other wrote.
    monkeypatch.setattr("baselines.runs._check_joins", lambda *_: None)
    store_run(store, first)
    with pytest.raises(BaselineError, match=r"stored at the same moment, in (build|environment)"):
        store_run(store, other)
    assert load_run(store, run_prefix(first.header)).missing_shards == ("2/2",)
    assert store_run(store, first), "the same again is a success"


def test_a_writer_that_was_killed_before_its_shard_keeps_no_other_out_for_long(store, monkeypatch):
    stray, good = (shards_of(run_of(0, {A: 1.0, B: 1.0}, fingerprint=print_), [A], [B]) for print_ in ("odd", "env1"))
    monkeypatch.setattr(type(store), "create", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        store_run(store, stray[0])
    monkeypatch.undo()
    with pytest.raises(BaselineError, match="environment"):
        store_run(store, good[1])
    monkeypatch.setattr("baselines.runs.ABANDONED", timedelta(0))
    store_run(store, good[1])
    monkeypatch.undo()
    assert store_run(store, good[0])


def test_a_run_of_a_machine_whose_clock_is_days_ahead_is_refused(store):
    ahead = (datetime.now(UTC) - FIRST_NIGHT).days
    store_run(store, run_of(ahead, {A: 1.0}))
    with pytest.raises(BaselineError, match="yet to come: set the clock"):
        store_run(store, run_of(ahead + 3, {A: 1.0}))
