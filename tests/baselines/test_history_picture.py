"""The pictures of `torchbench replay`, looked at through what is drawn."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from baselines.errors import BaselineError
from baselines.histories import History
from baselines.history_picture import draw_history, draw_pictures, file_names
from baselines.replay import Replayed, replay_histories

ROOT = Path(__file__).resolve().parents[2]

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib, the extra `pictures`, is not installed"
)


def stepped(series: str = "a", step: float = 1.1, unit: str = "s", spike: float = 0.0) -> Replayed:
    values = np.repeat([1.0, step], 40) * np.exp(np.random.default_rng(1).normal(0, 0.005, 80))
    if spike:
        values[20] = spike
    history = History(
        series=series,
        unit=unit,
        better="lower",
        positions=np.arange(80),
        times=tuple(f"2026-{1 + night // 28:02}-{1 + night % 28:02}T02:00" for night in range(80)),
        commits=("",) * 80,
        values=values,
    )
    return replay_histories([history], "default")[0]


def texts(path: Path) -> list[str]:
    """What an SVG says; its text is drawn as outlines, and kept in comments."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    tree = ElementTree.parse(path, parser)
    return [node.text.strip() for node in tree.iter() if node.tag is ElementTree.Comment and node.text]


@needs_matplotlib
def test_a_picture_says_unit_dates_effect_and_what_is_drawn(tmp_path):
    draw_history(stepped(), tmp_path / "a.svg")
    said = texts(tmp_path / "a.svg")
    assert {"s (lower is better)", "2026-01-01", "night and its date"} <= set(said)
    assert {"level (median)", "onset of a regression", "night of the report"} <= set(said)
    assert sum(re.fullmatch(r"\+(9|10)\.[0-9] %", text) is not None for text in said) == 1
    assert any(re.match(r"a: regression, \+(9|10)\.", text) for text in said), "the title"


@needs_matplotlib
def test_title_and_window_can_be_chosen(tmp_path):
    draw_history(stepped(), tmp_path / "a.svg", title="A step, $\\frac{$", window=(10, 30))
    said = texts(tmp_path / "a.svg")
    assert "A step, $\\frac{$" in said and "10" in said and "onset of a regression" not in said
    with pytest.raises(BaselineError, match="no night from 100 to 200"):
        draw_history(stepped(), tmp_path / "a.svg", window=(100, 200))


@needs_matplotlib
def test_a_spike_is_outside_with_its_value_and_flattens_nothing(tmp_path):
    draw_history(stepped(step=1.0, spike=55.5), tmp_path / "a.svg")
    said = texts(tmp_path / "a.svg")
    assert {"55.5", "night outside, with its value", "a: no report"} <= set(said)
    assert "1.01" in said or "1.010" in said, "the axis shows the other nights"


@needs_matplotlib
def test_the_same_history_gives_the_same_bytes(tmp_path):
    for suffix in ("png", "svg"):
        paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for path in paths:
            draw_history(stepped(), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


@needs_matplotlib
@pytest.mark.parametrize("value", [5.0, 1e-300, 1e300])
def test_a_constant_series_and_a_single_night_can_be_drawn(tmp_path, value):
    for nights in (1, 50):
        history = History("a", "", "unknown", np.arange(nights), ("",) * nights, ("",) * nights, np.full(nights, value))
        draw_history(Replayed(history, ()), tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@needs_matplotlib
def test_every_series_has_its_file_and_none_lies_elsewhere(tmp_path):
    names = ["a", "A", "../../escape", "x" * 300, "\x1b[31m\udce9\ud83d", "$\\frac{", "北京"]
    count = draw_pictures([stepped(name, unit="$") for name in names], tmp_path / "new" / "pictures")
    assert count == len(names)
    assert len(list((tmp_path / "new" / "pictures").glob("*.png"))) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_file_names_are_harmless_and_differ():
    names = file_names(["plain", "PLAIN", "plain", "v1.5", "a/b", "a b", "..", "", "x" * 300, "é", ".hidden"])
    assert names[:4] == ["plain", "PLAIN-2", "plain-3", "v1.5"]
    assert names[4] != names[5] and names[4].startswith("a-b-")
    assert all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,100}", name) for name in names)
    assert len({name.lower() for name in names}) == len(names)


def test_without_matplotlib_it_is_said_what_to_install_before_anything_is_done(tmp_path):
    (tmp_path / "points.csv").write_text("series,value\na,1\n")
    code = (
        "import sys, importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'matplotlib' else find(name, *more)\n"
        "sys.modules['matplotlib'] = None\n"
        "from bot.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "replay", "points.csv", "--out", "out.csv", "--picture", "pictures"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "matplotlib is not installed" in done.stderr and "pip install 'torchbench-sentinel[pictures]'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]
