"""Histories through the screen, and what is written of it."""

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from baselines.histories import Better, History, read_histories
from baselines.replay import Detection, Replayed, replay_histories, series_years, stretches, write_detections

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
NOISE = 0.005


def history(
    values: Sequence[float], better: Better = "lower", positions: Sequence[int] | None = None, series: str = "a"
) -> History:
    count = len(values)
    return History(
        series=series,
        unit="s",
        better=better,
        positions=np.array(range(count) if positions is None else positions, dtype=np.int64),
        times=("",) * count,
        commits=("",) * count,
        values=np.array(values, dtype=np.float64),
    )


def stepped(*levels: float, nights: int = 40, seed: int = 1) -> list[float]:
    """So many nights at each level, with noise."""
    noise = np.random.default_rng(seed).normal(0, NOISE, nights * len(levels))
    return list(np.repeat(levels, nights) * np.exp(noise))


def found(values: Sequence[float], **options: object) -> tuple[Detection, ...]:
    (replayed,) = replay_histories([history(values, **options)], "default")
    return replayed.detections


def test_a_step_up_of_something_that_should_be_low_is_a_regression():
    (one,) = found(stepped(1.0, 1.1))
    assert (one.kind, one.direction, one.onset) == ("regression", "up", 40)
    assert one.low_pct < one.effect_pct < one.high_pct
    assert abs(one.effect_pct - 10) < 1
    assert 42 <= one.reported <= 45
    assert one.onset_low <= one.onset <= one.onset_high
    assert one.score > 0


@pytest.mark.parametrize(
    ("better", "up", "down"),
    [
        ("lower", "regression", "improvement"),
        ("higher", "improvement", "regression"),
        ("unknown", "change", "change"),
    ],
)
def test_the_direction_of_what_is_better_says_what_kind_it_is(better, up, down):
    assert [one.kind for one in found(stepped(1.0, 1.1, 1.0), better=better)] == [up, down]


def test_positions_are_those_of_the_file():
    values = stepped(1.0, 1.1)
    (plain,) = found(values)
    (spread,) = found(values, positions=[100 + 3 * index for index in range(80)])
    for name in ("reported", "onset", "onset_low", "onset_high"):
        assert getattr(spread, name) == 100 + 3 * getattr(plain, name)


@pytest.mark.parametrize("nights", [1, 2, 3, 7, 8, 9])
def test_a_series_that_has_just_begun_reports_nothing(nights):
    assert found(stepped(1.0, nights=nights)) == ()


@pytest.mark.parametrize("value", [1.0, 1e-300, 1e300, 12345.678])
def test_a_constant_series_reports_nothing(value):
    assert found([value] * 200) == ()


def test_a_constant_series_that_steps_is_reported():
    (one,) = found([3.0] * 30 + [3.3] * 30)
    assert (one.onset, one.reported) == (30, 32)
    assert one.effect_pct == pytest.approx(10)


def test_an_effect_beyond_all_numbers_is_a_number_still():
    (one,) = found([1e-300] * 30 + [1e300] * 30)
    assert np.isfinite([one.effect_pct, one.low_pct, one.high_pct]).all()


def test_no_report_goes_across_a_change_of_the_unit(tmp_path):
    rows = [*((value, "s") for value in stepped(1.0)), *((value, "ms") for value in stepped(1000.0))]
    lines = [f"a,{index},{value},{unit}" for index, (value, unit) in enumerate(rows)]
    (tmp_path / "points.csv").write_text("\n".join(["series,i,value,unit", *lines, ""]))
    histories = read_histories(tmp_path / "points.csv").histories
    assert [one.detections for one in replay_histories(histories, "default")] == [(), ()]


def test_the_knob_says_how_much_evidence_is_needed():
    rng = np.random.default_rng(3)
    many = [history(np.repeat([1.0, 1.012], 60) * np.exp(rng.normal(0, 0.01, 120))) for _ in range(40)]
    counts = [
        sum(len(one.detections) for one in replay_histories(many, knob)) for knob in ("strict", "default", "sensitive")
    ]
    assert counts[0] < counts[1] < counts[2]


def test_stretches_lie_between_the_onsets_and_have_their_median():
    values = [1.0, 1.0, 9.0, 2.0, 2.0, 2.0]
    one = Detection(5, 13, 13, 13, 100.0, 90.0, 110.0, 3.0, "regression")
    first, second = stretches(Replayed(history(values, positions=range(10, 16)), (one,)))
    assert (first.first, first.last, first.nights, first.level, first.detection) == (10, 12, 3, 1.0, None)
    assert (second.first, second.last, second.nights, second.level, second.detection) == (13, 15, 3, 2.0, one)


def test_a_series_year_has_365_nights():
    assert series_years([history([1.0] * 73), history([1.0] * 292)]) == 1.0


def test_reports_are_written_by_series_with_all_their_columns(tmp_path):
    replayed = replay_histories(
        [history(stepped(1.0, 1.1)), history(stepped(1.0, 0.5), "higher", series="b")], "default"
    )
    write_detections(tmp_path / "detections.csv", replayed)
    text = (tmp_path / "detections.csv").read_text()
    assert text.startswith(
        "series,reported_i,onset_i,onset_lo,onset_hi,direction,effect_pct,ci_lo_pct,ci_hi_pct,score,kind\n"
    )
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["series"], row["onset_i"], row["direction"], row["kind"]) for row in rows] == [
        ("a", "40", "up", "regression"),
        ("b", "40", "down", "regression"),
    ]
    assert float(rows[1]["ci_lo_pct"]) < float(rows[1]["effect_pct"]) < float(rows[1]["ci_hi_pct"]) < 0


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    from baselines.errors import BaselineError

    (tmp_path / "taken").mkdir()
    with pytest.raises(BaselineError, match="cannot be written"):
        write_detections(tmp_path / "taken", [])
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_public_histories_are_scored_as_they_are_written(tmp_path):
    """Not how good the screen is, which make bench-detection measures: that its positions are the labels'."""
    data, score = SHARED / "data", SHARED / "tools" / "score_detections.py"
    if not (data / "sandmark" / "points.csv").is_file() or not score.is_file():
        pytest.skip("the labelled histories are not here")
    reading = read_histories(data / "sandmark" / "points.csv", "sandmark", series=data / "sandmark" / "series.csv")
    write_detections(tmp_path / "detections.csv", replay_histories(reading.histories, "default"))
    command = [sys.executable, str(score), str(data), "--sandmark", str(tmp_path / "detections.csv"), "--boot", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=score.parent)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["sandmark"]
    assert figures["F1"] > 0.7 and figures["blind"] > 0.7
