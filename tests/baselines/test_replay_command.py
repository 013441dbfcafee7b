"""`torchbench replay` on real files."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer
from rich.cells import cell_len
from rich.console import Console

from baselines import replay_command
from baselines.histories import FORMATS, read_histories
from baselines.replay import replay_histories
from baselines.replay_view import details, level, overview, percent
from torchbenchmark.terminal import new_app, run_app

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "=cmd|' /C calc'!A0",
    'with "quotes", commas',
    "two\nlines",
    "carriage\rreturn",
    "été ❄",
]


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def replay(tmp_path, monkeypatch, capsys) -> Callable[..., Ended]:
    """`torchbench replay` in an empty folder, in this process."""
    app = new_app("torchbench")
    app.callback()(lambda: None)  # so that the only command has to be named
    replay_command.register(app)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run_app(app, ["replay", *map(str, arguments)])
        return Ended(ended.value.code, *capsys.readouterr())

    return run


def write_points(path: Path, names: list[str], step: float = 1.1, nights: int = 60) -> Path:
    """Every series takes a step in its middle."""
    rng = np.random.default_rng(7)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["series", "i", "time", "commit", "value"])
        for name in names:
            for night in range(nights):
                value = (step if night >= nights // 2 else 1.0) * np.exp(rng.normal(0, 0.005))
                rows.writerow([name, night, f"2026-{1 + night // 28:02}-{1 + night % 28:02}", f"c{night}", value])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def test_reports_are_written_and_summed_up(replay, tmp_path):
    write_points(tmp_path / "points.csv", ["a", "b"])
    ended = replay("points.csv", "--out", "detections.csv")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-2:] == [
        "2 series, 120 nights, 2 reports, 6.08 reports a series-year of 365 nights",
        "reports written to detections.csv",
    ]
    rows = rows_of(tmp_path / "detections.csv")
    assert [(row["series"], row["onset_i"], row["kind"]) for row in rows] == [
        ("a", "30", "regression"),
        ("b", "30", "regression"),
    ]


def test_a_series_is_shown_with_its_sparkline_levels_and_last_report(replay, tmp_path):
    write_points(tmp_path / "points.csv", ["a"])
    (tmp_path / "series.csv").write_text("series,unit,direction\na,ms,lower\n")
    lines = replay("points.csv", "--series", "series.csv").stdout.splitlines()
    assert lines[0] == "a, 60 nights, 2026-01-01 to 2026-03-04, ms, lower is better"
    assert (len(lines[1]), lines[2]) == (60, " " * 30 + "▲")
    assert re.fullmatch(r" *0 \(2026-01-01\) +30 +[01][.0-9]* ms *", lines[4])
    assert re.fullmatch(r"30 \(2026-02-03\) +30 +1\.[01][0-9]* ms +\+9\.[0-9] % +3[2-5] +regression *", lines[5])
    assert lines[6].startswith("last: regression, +9.") and "since night 30 (2026-02-03)" in lines[6]


def test_many_series_have_a_line_each_until_one_is_named(replay, tmp_path):
    write_points(tmp_path / "points.csv", [f"suite[{name}]" for name in "abcdef"])
    ended = replay("points.csv")
    lines = ended.stdout.splitlines()
    assert lines[0].split() == ["series", "nights", "history", "reports", "last"]
    assert [line.split()[0] for line in lines[1:7]] == [f"suite[{name}]" for name in "abcdef"]
    assert lines[7] == "--series-name GLOB shows a series in full"
    named = replay("points.csv", "--series-name", "*[a]", "--series-name", "suite[b*", "--out", "few.csv").stdout
    assert "last: regression" in named and "suite[c]" not in named
    assert {row["series"] for row in rows_of(tmp_path / "few.csv")} == {"suite[a]", "suite[b]"}


def test_a_series_without_reports_is_shown_if_it_is_named(replay, tmp_path):
    write_points(tmp_path / "points.csv", ["calm"], step=1.0)
    assert replay("points.csv").stdout == "1 series, 60 nights, 0 reports, 0.00 reports a series-year of 365 nights\n"
    assert replay("points.csv", "--series-name", "calm").stdout.startswith("calm, 60 nights")


def test_hostile_names_come_out_byte_for_byte_and_reach_no_terminal(replay, tmp_path):
    path = write_points(tmp_path / "points.csv", HOSTILE)
    path.write_bytes(path.read_bytes() + path.read_bytes().split(b"\r\n", 1)[1].replace("été ❄".encode(), b"\xe9t\xe9"))
    ended = replay("points.csv", "--out", "detections.csv")
    assert ended.returncode == 0, ended.stderr
    names = {row["series"].encode(errors="surrogateescape") for row in rows_of(tmp_path / "detections.csv")}
    assert names == {*(name.encode() for name in HOSTILE), b"\xe9t\xe9"}
    for printed in (ended.stdout, replay("points.csv", "--series-name", "*").stdout):
        assert "\x1b" not in printed and "\r" not in printed
        printed.encode()


def test_pictures_are_drawn_of_what_is_chosen(replay, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")
    write_points(tmp_path / "points.csv", ["a", "b/c"])
    ended = replay("points.csv", "--series-name", "b*", "--picture", "new/pictures")
    assert ended.stdout.endswith("1 picture drawn into new/pictures\n"), ended.stderr
    assert [path.name[:4] for path in (tmp_path / "new" / "pictures").iterdir()] == ["b-c-"]
    refused = replay("points.csv", "--picture", "points.csv")
    assert refused.returncode == 2 and "points.csv: is no folder" in refused.stderr


def test_notes_are_told_and_a_flood_of_them_is_not(replay, tmp_path):
    lines = [f"s{number},0,-1\ns{number},1,1" for number in range(30)]
    (tmp_path / "points.csv").write_text("\n".join(["series,i,value", *lines, ""]))
    told = [line for line in replay("points.csv").stdout.splitlines() if line.startswith("note: ")]
    assert told[0] == "note: s0: 1 night left out (1 negative)"
    assert (len(told), told[-1]) == (21, "note: ... and 10 more such lines")


def test_every_format_goes_through_the_command(replay, tmp_path):
    values = [1.0 + 0.001 * (night % 3) + 0.2 * (night >= 20) for night in range(40)]
    runs = [
        {"date": night * 86_400_000, "tool": "go", "commit": {"id": "c"}, "benches": [{"name": "a", "value": value}]}
        for night, value in enumerate(values)
    ]
    (tmp_path / "data.js").write_text("window.BENCHMARK_DATA = " + json.dumps({"entries": {"s": runs}}))
    box = tmp_path / "results" / "box"
    box.mkdir(parents=True)
    (box / "machine.json").write_text("{}")
    for night, value in enumerate(values):
        document = {"commit_hash": f"{night:08}", "date": night, "params": {}, "results": {"t.time_a": value}}
        (box / f"{night:08}-py.json").write_text(json.dumps(document))
        folder = tmp_path / "nightly" / "box" / f"20260101_0000{night:02}" / "abcdef0"
        folder.mkdir(parents=True)
        (folder / "x_1.orun.summary.bench").write_text(json.dumps({"name": "a", "time_secs": value}) + "\n")
    for name, path in (("github-action-benchmark", "data.js"), ("asv", "results"), ("sandmark", "nightly")):
        ended = replay(path, "--format", name, "--out", "detections.csv")
        assert ended.returncode == 0, ended.stderr
        (row,) = rows_of(tmp_path / "detections.csv")
        assert (row["onset_i"], row["kind"]) == ("20", "regression"), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "none.csv: no such file or folder"),
        (["points.csv", "--format", "xml"], "--format xml: no such format; known are csv,"),
        (["points.csv", "--knob", "loud"], "'loud' is not one of 'strict', 'default', 'sensitive'"),
        (["points.csv", "--value-column", "speed"], "points.csv:1: no column 'speed' among"),
        (
            ["points.csv", "--series-name", "a", "--series-name", "b*"],
            "--series-name b*: no series of points.csv matches",
        ),
        (["points.csv", "--out", "."], ".: is a folder; --out names the file"),
        (["points.csv", "--out", "none/out.csv"], "none: no such folder"),
        (["points.csv", "--out", "./points.csv"], "--out would overwrite what is read"),
        (["zeros.csv"], "zeros.csv: no series has a value that can be compared"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(replay, tmp_path, arguments, message):
    write_points(tmp_path / "points.csv", ["a"])
    (tmp_path / "zeros.csv").write_text("series,value\na,0\n")
    before = (tmp_path / "points.csv").read_bytes()
    ended = replay(*arguments)
    assert ended.returncode == 2
    assert message in ended.stderr and len(ended.stderr.splitlines()) == 1
    assert (tmp_path / "points.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["short", "x" * 300, "長い名前" * 40])
def test_a_terminal_of_100_columns_is_enough(tmp_path, name):
    names = [f"{name}{number}" for number in range(5)]
    reading = read_histories(write_points(tmp_path / "points.csv", names, step=0.001, nights=400))
    replayed = replay_histories(reading.histories, "default")
    out = StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    console.print(overview(replayed), details(replayed[0], 100))
    lines = out.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= 100
    assert sum("…" in line for line in lines) == (5 if len(name) > 100 else 0), "nothing else is cut"
    for number in range(5):
        assert any(f"{number}   " in line and "-99.9 %" in line for line in lines)


SCENARIOS = """\
step: {nights: 34, steps: [{build: 30, size: 0.03, tests: [3]}]}
driver: {nights: 34, drivers: [{night: 30, size: 0.03, tests: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]}]}
"""
FLEET = ("--fleet", "small_fleet:SmallFleet")


def test_a_simulated_fleet_is_replayed_and_what_is_filed_written_for_its_judge(replay, tmp_path):
    (tmp_path / "fleet.yaml").write_text(SCENARIOS)
    ended = replay(*FLEET, "--scenario", "fleet.yaml:step", "--seed", 2, "--out", "filed.json")
    assert ended.returncode == 0, ended.stderr
    filed = json.loads((tmp_path / "filed.json").read_text())
    assert ended.stdout.splitlines() == [
        f"seed 2: filed 1 regression; {filed['processes']} processes beside the nightly's",
        "what is filed written to filed.json",
    ]
    assert set(filed) == {"seed", "processes", "alerts", "intervals"} and filed["seed"] == 2
    (alert,) = filed["alerts"]
    assert set(alert) == {"night", "kind", "tests", "onset_lo", "onset_hi", "id"}
    assert (alert["night"], alert["kind"], alert["tests"]) == (31, "regression", [3])
    for interval in filed["intervals"]:
        assert set(interval) == {"test", "base", "head", "lo_pct", "hi_pct", "confirmed"}
        assert interval["lo_pct"] <= interval["hi_pct"] and type(interval["confirmed"]) is bool
    (shown,) = [one for one in filed["intervals"] if one["confirmed"]]
    assert shown["test"] == 3 and shown["lo_pct"] < 3.5 and shown["hi_pct"] > 2.5
    replay(*FLEET, "--scenario", "fleet.yaml:driver", "--out", "note.json")
    note = json.loads((tmp_path / "note.json").read_text())
    assert note["seed"] == 1 and [(set(one), one["kind"]) for one in note["alerts"]] == [
        ({"night", "kind", "id"}, "environment")
    ]


def test_a_fleet_is_replayed_by_the_bot_with_the_module_on_its_path(tmp_path):
    (tmp_path / "fleet.yaml").write_text("calm: {nights: 17}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "bot", "replay", *FLEET, "--scenario", "fleet.yaml:calm", "--out", "filed.json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "seed 1: filed nothing; 72 processes" in ended.stdout, "3 nights of 12 pairs of a build against itself"
    assert json.loads((tmp_path / "filed.json").read_text())["alerts"] == []


SCENARIO, OUT = ("--scenario", "fleet.yaml:step"), ("--out", "filed.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the history to replay, or a simulated fleet with --fleet and --scenario"),
        ([*FLEET, *SCENARIO], "a fleet needs --fleet MODULE:CLASS, --scenario FILE:NAME and --out FILE"),
        ([*FLEET, *OUT], "a fleet needs --fleet MODULE:CLASS"),
        ([*SCENARIO, *OUT], "a fleet needs --fleet MODULE:CLASS"),
        (["--seed", "3", "points.csv"], "a fleet needs --fleet MODULE:CLASS"),
        ([*FLEET, *SCENARIO, *OUT, "points.csv"], "POINTS: of a history; a fleet brings its own nights"),
        ([*FLEET, *SCENARIO, *OUT, "--picture", "p"], "--picture: of a history"),
        ([*FLEET, *SCENARIO, "--out", "."], ".: --out names a file in a folder that exists"),
        ([*FLEET, *SCENARIO, "--out", "none/filed.json"], "none/filed.json: --out names a file in a folder that"),
        ([*FLEET, *SCENARIO, "--out", "fleet.yaml"], "fleet.yaml: --out would overwrite what is read"),
        (["--fleet", "no_fleet:Fleet", *SCENARIO, *OUT], "--fleet no_fleet:Fleet: ModuleNotFoundError"),
        ([*FLEET, "--scenario", "none.yaml:step", *OUT], "none.yaml: cannot be read"),
        ([*FLEET, "--scenario", "fleet.yaml:wild", *OUT], "fleet.yaml: has no scenario wild; it has step, driver"),
    ],
)
def test_what_is_wrong_with_a_fleet_is_one_line_and_exit_code_2(replay, tmp_path, arguments, message):
    (tmp_path / "fleet.yaml").write_text(SCENARIOS)
    write_points(tmp_path / "points.csv", ["a"])
    ended = replay(*arguments)
    assert ended.returncode == 2
    assert message in ended.stderr and len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "filed.json").exists() and (tmp_path / "fleet.yaml").read_text() == SCENARIOS


def test_numbers_are_short_and_foreign_units_harmless():
    assert [percent(value) for value in (0.123, -1.26, 123.4, 2.5e7)] == ["+0.12 %", "-1.3 %", "+123 %", "+2.5e+07 %"]
    assert level(0.000123456, "s\x1b[2J\n") == "0.0001235 s[2J"


def test_the_help_names_every_format():
    app = typer.Typer()
    app.command()(replay_command.replay)
    (option,) = [one for one in typer.main.get_command(app).params if one.name == "format_name"]
    assert set(re.findall(r"[\w-]+", option.help.replace(" or ", " ").rstrip("."))) == set(FORMATS)


def test_the_command_line_starts_without_the_libraries_that_compute():
    code = (
        "import sys; from bot.cli import OWNERS, joined; joined(list(OWNERS));"
        "print([name for name in ('numpy', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
