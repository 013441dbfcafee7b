"""Histories out of CSV: what becomes of odd nights, and how a wrong file is told."""

from pathlib import Path

import pytest

from baselines.errors import BaselineError
from baselines.histories import History, Reading, read_histories

HEADER = "series,i,time,commit,value\n"


@pytest.fixture
def read(tmp_path):
    """Read a CSV of this text, and perhaps a series.csv of another."""

    def of(text: str | bytes, series: str | None = None, **options: str) -> Reading:
        points = tmp_path / "points.csv"
        points.write_bytes(text.encode() if isinstance(text, str) else text)
        if series is not None:
            (tmp_path / "series.csv").write_text(series)
        return read_histories(points, series=tmp_path / "series.csv" if series is not None else None, **options)

    return of


def only(reading: Reading) -> History:
    (history,) = reading.histories
    return history


def nights(history: History) -> list[tuple[int, float]]:
    return list(zip(history.positions.tolist(), history.values.tolist(), strict=True))


def test_a_history_has_the_files_own_positions_times_and_commits(read):
    reading = read(HEADER + "a,3,2026-01-01,abc,1.5\na,4,2026-01-02,def,2e-3\n")
    history = only(reading)
    assert (history.series, nights(history)) == ("a", [(3, 1.5), (4, 0.002)])
    assert (history.times, history.commits) == (("2026-01-01", "2026-01-02"), ("abc", "def"))
    assert reading.notes == ()


def test_series_keep_the_order_of_their_first_rows(read):
    reading = read(HEADER + "b,0,,,1\na,0,,,1\nb,1,,,1\n")
    assert [history.series for history in reading.histories] == ["b", "a"]


def test_time_commit_and_position_may_be_missing_and_more_columns_are_ignored(read):
    history = only(read("value,note,series\n1,x,a\n2,y,a\n"))
    assert nights(history) == [(0, 1.0), (1, 2.0)]
    assert (history.times, history.commits) == (("", ""), ("", ""))


def test_the_column_date_is_the_time(read):
    assert only(read("series,i,date,value\na,0,2026-01-01,1\n")).times == ("2026-01-01",)


def test_another_column_can_be_taken_for_the_value(read):
    history = only(read("series,i,value,replicate\na,0,1,7\n", value_column="replicate"))
    assert nights(history) == [(0, 7.0)]


def test_a_gap_in_the_positions_is_left_out_and_the_others_keep_theirs(read):
    reading = read(HEADER + "a,0,,,1\na,5,,,2\n")
    assert nights(only(reading)) == [(0, 1.0), (5, 2.0)]
    assert reading.notes == ()


def test_a_night_that_stands_twice_counts_with_its_median_and_is_told(read):
    reading = read(HEADER + "a,0,d0,c0,1\na,1,d1,c1,9\na,1,d2,c2,2\na,1,d3,c3,4\na,2,d4,c4,1\n")
    history = only(reading)
    assert nights(history) == [(0, 1.0), (1, 4.0), (2, 1.0)]
    assert history.commits == ("c0", "c3", "c4"), "the last one's"
    assert reading.notes == ("a: 1 night more than once; the median of each counts",)


def test_of_many_doubled_nights_each_has_its_own_last_row(read):
    rows = [f"a,{night},d{night}.{copy},,{1 + night + copy}" for copy in range(3) for night in range(40)]
    history = only(read(HEADER + "\n".join(rows)))
    assert nights(history) == [(night, 2.0 + night) for night in range(40)]
    assert history.times == tuple(f"d{night}.2" for night in range(40))


def test_rows_in_any_order_are_sorted_by_position_and_it_is_told(read):
    reading = read(HEADER + "a,2,z,,3\na,0,x,,1\na,1,y,,2\n")
    history = only(reading)
    assert (nights(history), history.times) == ([(0, 1.0), (1, 2.0), (2, 3.0)], ("x", "y", "z"))
    assert reading.notes == ("a: its rows are not in order; they were sorted by position",)


def test_nights_without_a_positive_number_are_left_out_and_counted(read):
    odd = ["", "nan", "NA", "0", "-0.0", "-3", "inf", "-inf", "5"]
    reading = read(HEADER + "".join(f"a,{i},,,{value}\n" for i, value in enumerate(odd)))
    assert nights(only(reading)) == [(8, 5.0)]
    assert reading.notes == ("a: 8 nights left out (3 without a value, 2 zero, 1 negative, 2 infinite)",)


def test_a_night_that_is_left_out_has_a_place_where_rows_are_counted(read):
    assert nights(only(read("series,value\na,1\na,\na,3\n"))) == [(0, 1.0), (2, 3.0)]


def test_a_series_of_which_nothing_is_left_is_told(read):
    reading = read(HEADER + "a,0,,,0\nb,0,,,1\n")
    assert [history.series for history in reading.histories] == ["b"]
    assert reading.notes == ("a: 1 night left out (1 zero)", "a: no night with a value that can be compared")


def test_another_unit_begins_a_history_of_its_own(read):
    reading = read("series,i,value,unit\na,0,1,s\na,1,2,s\na,2,1000,ms\na,3,1100,ms\n")
    assert [(history.unit, nights(history)) for history in reading.histories] == [
        ("s", [(0, 1.0), (1, 2.0)]),
        ("ms", [(2, 1000.0), (3, 1100.0)]),
    ]
    assert reading.notes == ("a: its unit changes from s to ms at 2; a new history begins there",)


def test_unit_and_direction_come_from_series_csv(read):
    reading = read(
        HEADER + "a,0,,,1\nb,0,,,1\nc,0,,,1\nd,0,,,1\n",
        "series,host,unit,direction\na,x,s,lower\nb,x,steps/s,Higher\nc,x,,\nd,x,B,unknown\n",
    )
    assert [(one.unit, one.better) for one in reading.histories] == [
        ("s", "lower"),
        ("steps/s", "higher"),
        ("", "lower"),
        ("B", "unknown"),
    ]


def test_without_a_series_csv_less_is_better(read):
    assert only(read(HEADER + "a,0,,,1\n")).better == "lower"


def test_series_that_only_one_of_the_two_files_knows_are_told_or_have_no_direction(read):
    reading = read(HEADER + "a,0,,,1\n", "series,unit,direction\nb,s,lower\n")
    assert only(reading).better == "unknown"
    assert reading.notes == ("b: described, but there are no points of it",)


def test_a_byte_order_mark_and_blank_lines_do_no_harm(read):
    assert nights(only(read(b"\xef\xbb\xbfseries,i,value\r\na,0,1\r\n\r\na,1,2\r\n"))) == [(0, 1.0), (1, 2.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "points.csv: empty"),
        ("name,i,value\na,0,1\n", "points.csv:1: no column 'series' among name, i, value"),
        ("series,i\na,0\n", "points.csv:1: no column 'value' among series, i; --value-column"),
        ("series,value,value\na,0,1\n", "points.csv:1: column 'value' stands twice"),
        (HEADER + "a,0,,,1\na,1,,,fast\n", "points.csv:3: value: 'fast' is no number"),
        (HEADER + "a,0,,,1_000\n", "points.csv:2: value: '1_000' is no number"),
        (HEADER + "a,one,,,1\n", "points.csv:2: i: 'one' is no whole number"),
        (HEADER + "a,99999999999999999999,,,1\n", "points.csv:2: i: '99999999999999999999' is no whole number"),
        (HEADER + "a,0,,1\n", "points.csv:2: row: 4 fields where the header has 5"),
        (HEADER + ",0,,,1\n", "points.csv:2: series: empty"),
        (HEADER + f"a,0,,{'c' * 200_000},1\n", "points.csv:2: row: field larger than field limit"),
        (HEADER, "points.csv: no points in it"),
    ],
    ids=lambda value: value[:40] if "points" in value else "",
)
def test_a_file_that_is_wrong_is_told_with_line_and_column(read, text, message):
    with pytest.raises(BaselineError) as told:
        read(text)
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("series,direction\na,lower\nb,faster\n", "series.csv:3: direction: 'faster' is not lower, higher or unknown"),
        ("series,unit\na,s\na,ms\n", "series.csv:3: series: 'a' stands twice"),
        ("unit\ns\n", "series.csv:1: no column 'series'"),
    ],
)
def test_a_series_csv_that_is_wrong_is_told_with_line_and_column(read, text, message):
    with pytest.raises(BaselineError) as told:
        read(HEADER + "a,0,,,1\n", text)
    assert message in str(told.value)


def test_what_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(BaselineError, match="no such file"):
        read_histories(tmp_path / "none.csv")
    with pytest.raises(BaselineError, match="is a folder; name a CSV file, or add --format"):
        read_histories(tmp_path)
    with pytest.raises(BaselineError, match="--format xml: no such format; known are csv, sandmark"):
        read_histories(tmp_path, "xml")
