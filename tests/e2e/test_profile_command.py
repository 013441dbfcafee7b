"""`torchbench profile`, as it is called: real processes and real profiles of models with a planted difference."""

import json
import sys
from pathlib import Path

import pytest
from planted_profiles import arguments, wrong

from torchbenchmark.paired.pairs_file import read_pairs
from torchbenchmark.profiles.process_profile import ProfiledProcess


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.timeout(600)
def test_a_slowed_operator_more_calls_and_python_work_are_told_and_equal_sides_tell_nothing(torchbench, tmp_path):
    ended = torchbench(*arguments(tmp_path, "cpu", pairs=5, budget=0.1), XDG_CACHE_HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    content = json.loads((tmp_path / "profile.json").read_text())
    assert wrong(content, "cpu") == [], ended.stdout
    assert "test_eval[slower_operator-cpu-eager-tiny]: aten::mm (CPU) slower, +" in ended.stdout
    assert "CPU-side: Python, outside of operators slower, +" in ended.stdout
    assert "test_eval[nothing-cpu-eager-tiny]: no operator or kernel differs beyond noise" in ended.stdout
    text = (tmp_path / "profile.md").read_text()
    assert "| `aten::mm` | CPU | " in text and "| `remainder` |" in text
    assert len(list((tmp_path / "traces").glob("*.json.gz"))) == 8, "of either side of each test one"
    processes = [
        process for pair in read_pairs(tmp_path / "profiles.jsonl").pairs for process in (pair.base, pair.head)
    ]
    assert len(processes) == 40 and all(isinstance(process, ProfiledProcess) for process in processes)
    again = torchbench("profile", "--from", "profiles.jsonl", "--json", "again.json", XDG_CACHE_HOME=str(tmp_path))
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "again.json").read_text()) == content
    taken = torchbench("ab", *arguments(tmp_path, "cpu", 5, 0.1)[1:3], "--out", "profiles.jsonl", "--resume")
    assert taken.returncode == 2 and "was begun" in plain(taken.stderr)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("X",), "name both sides, BASE and HEAD"),
        (("X", "Y", "--from", "pairs.jsonl"), "--from: tells what was measured"),
        (("X", "Y", "--level", "1.5"), "--level 1.5"),
        (("X", "Y", "--tree", "."), "--tree: only with --paths"),
        (("X", "Y", "--paths", "none"), "none: cannot be read"),
        (("X", "Y", "--json", f"{__file__}/a.json"), "a.json: cannot be written"),
        ((sys.executable, sys.executable, "--traces", Path(__file__)), "is no folder"),
    ],
)
def test_what_cannot_be_profiled_is_told_in_one_line_before_anything_is_measured(torchbench, given, said):
    ended = torchbench("profile", *given)
    assert ended.returncode == 2, ended.stdout
    assert plain(ended.stderr).count(said) == 1 and "round 1" not in ended.stdout, ended.stderr
