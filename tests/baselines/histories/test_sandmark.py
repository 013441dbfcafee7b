"""The files of sandmark-nightly, both harnesses, and a CSV of points made from them."""

import json
from pathlib import Path

import pytest

from baselines.errors import BaselineError
from baselines.histories import Reading, read_histories

MACHINE = json.dumps({"version": "5.4", "hostname": "box", "kernel": "Linux"})


def orun(root: Path, folder: str, variant: str, programs: dict[str, object], head: str = "") -> None:
    lines = [json.dumps({"name": name, "time_secs": value, "maxrss_kB": 100}) for name, value in programs.items()]
    write(root / folder / f"{variant}_1.orun.summary.bench", "\n".join([*([head] if head else []), *lines, ""]))


def perfstat(root: Path, folder: str, variant: str, programs: dict[str, str | None]) -> None:
    blocks = [MACHINE]
    for command, elapsed in programs.items():
        blocks += ["# started on Thu Jan  1 02:00:00 2026", "", f" Performance counter stats for '{command}':", ""]
        blocks += ["       1,12,775.05 msec task-clock    #    1.000 CPUs utilized", ""]
        blocks += [f"       {elapsed} seconds time elapsed", "", "  2.7 seconds user", ""] if elapsed else []
    write(root / folder / f"{variant}_1.perfstat.summary.bench", "\n".join(blocks))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def points(reading: Reading) -> dict[str, list[tuple[int, float]]]:
    return {
        one.series: list(zip(one.positions.tolist(), one.values.tolist(), strict=True)) for one in reading.histories
    }


def test_runs_of_one_compiler_on_one_host_are_a_history(tmp_path):
    for day, seconds in ((2, 1.2), (1, 1.1)):
        orun(tmp_path, f"sequential/box/2026010{day}_020000/{'ab' * 20}", "4.12.0+stock", {"fft.": seconds})
    reading = read_histories(tmp_path, "sandmark")
    (history,) = reading.histories
    assert points(reading) == {"box/orun/4.12.0+stock/fft.": [(0, 1.1), (1, 1.2)]}
    assert (history.unit, history.better) == ("s", "lower")
    assert (history.times[0], history.commits[0]) == ("2026-01-01T02:00:00", "ab" * 20)


def test_the_trunk_is_one_history_whatever_version_it_is_called_and_branches_are_others(tmp_path):
    orun(tmp_path, "sequential/box/20260101_000000/aaaaaaa", "5.1.0+trunk+sequential", {"kb.": 1.0})
    orun(tmp_path, "sequential/box/20260102_000000/bbbbbbb", "5.2.0+trunk+sequential", {"kb.": 2.0})
    orun(tmp_path, "sequential/box/20260102_030000/head", "5.2.0+trunk+someone+pr123", {"kb.": 3.0})
    assert points(read_histories(tmp_path, "sandmark")) == {
        "box/orun/trunk+sequential/kb.": [(0, 1.0), (1, 2.0)],
        "box/orun/trunk+someone+pr123/kb.": [(0, 3.0)],
    }


def test_perf_stat_blocks_give_the_time_elapsed_by_program_and_arguments(tmp_path):
    programs = {"taskset --cpu-list 5 ./fft.exe 12": "1,002.5", "taskset --cpu-list 5 menhir -v x.mly": "86.9"}
    perfstat(tmp_path, "perfstat/box/20260101_000000/aaaaaaa", "5.1.0+trunk+perfstat", programs)
    assert points(read_histories(tmp_path, "sandmark")) == {
        "box/perfstat/trunk+perfstat/fft 12": [(0, 1002.5)],
        "box/perfstat/trunk+perfstat/menhir -v x.mly": [(0, 86.9)],
    }


def test_a_program_without_a_time_is_left_out_and_told(tmp_path):
    perfstat(tmp_path, "perfstat/box/20260101_000000/aaaaaaa", "5.1.0+trunk", {"./a.exe": None, "./b.exe": "2"})
    orun(tmp_path, "sequential/box/20260101_000000/aaaaaaa", "5.1.0+trunk", {"c": None, "d": 1.0}, head=MACHINE)
    reading = read_histories(tmp_path, "sandmark")
    assert list(points(reading)) == ["box/orun/trunk/d", "box/perfstat/trunk/b"]
    assert [note for note in reading.notes if "left out" in note] == [
        "box/orun/trunk/c: 1 night left out (1 without a value)",
        "box/perfstat/trunk/a: 1 night left out (1 without a value)",
    ]


def test_old_folders_have_neither_host_nor_commit(tmp_path):
    orun(tmp_path, "sequential/20260101_000000", "4.12.0+stock", {"kb.": 1.0})
    assert list(points(read_histories(tmp_path, "sandmark"))) == ["orun/4.12.0+stock/kb."]


def test_another_member_of_orun_can_be_taken(tmp_path):
    orun(tmp_path, "sequential/box/20260101_000000/aaaaaaa", "4.12.0+stock", {"kb.": 1.0})
    (history,) = read_histories(tmp_path, "sandmark", value_column="maxrss_kB").histories
    assert (history.values.tolist(), history.unit) == ([100.0], "")


def test_a_csv_of_points_is_read_as_such(tmp_path):
    (tmp_path / "points.csv").write_text("series,i,date,commit,value,replicate\nsm-1,0,2026-01-01,abc,1,2\n")
    assert points(read_histories(tmp_path / "points.csv", "sandmark")) == {"sm-1": [(0, 1.0)]}
    read = read_histories(tmp_path / "points.csv", "sandmark", value_column="replicate")
    assert points(read) == {"sm-1": [(0, 2.0)]}


def test_what_is_wrong_is_told_with_file_and_line(tmp_path):
    with pytest.raises(BaselineError, match=r"no \*\.summary\.bench in it"):
        read_histories(tmp_path, "sandmark")
    write(tmp_path / "x_1.orun.summary.bench", "{}\n")
    with pytest.raises(BaselineError, match="no folder YYYYMMDD_HHMMSS above it"):
        read_histories(tmp_path, "sandmark")
    (tmp_path / "x_1.orun.summary.bench").unlink()
    path = tmp_path / "box" / "20260101_000000" / "aaaaaaa" / "x_1.orun.summary.bench"
    write(path, f'{MACHINE}\n{{"name": "kb", "time_secs"\n')
    with pytest.raises(BaselineError, match=r"x_1\.orun\.summary\.bench:2: no JSON"):
        read_histories(tmp_path, "sandmark")


def test_a_file_that_is_cut_off_is_left_out_as_a_whole_and_told(tmp_path):
    orun(tmp_path, "sequential/box/20260101_000000/aaaaaaa", "4.12.0+stock", {"kb.": 1.0})
    path = tmp_path / "sequential" / "box" / "20260102_000000" / "aaaaaaa" / "4.12.0+stock_1.orun.summary.bench"
    write(path, '{"name": "kb.", "time_secs": 2}\n{"name": "fft.", "time')
    orun(tmp_path, "sequential/box/20260103_000000/aaaaaaa", "4.12.0+stock", {"kb.": 3.0})
    reading = read_histories(tmp_path, "sandmark")
    assert points(reading) == {"box/orun/4.12.0+stock/kb.": [(0, 1.0), (2, 3.0)]}
    assert f"left out: {path}:2: no JSON" in reading.notes[0]
