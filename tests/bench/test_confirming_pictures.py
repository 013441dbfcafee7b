"""The pictures of confirming can be drawn, the same every time, and what they show is so."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from confirming_pictures import MOVED_BY, SHOWN, SLOWED_BY, draw, live_through, tried


def test_the_evidence_of_nothing_is_given_up_after_the_second_lost_pair():
    path, decision = tried(np.full(24, -0.01))
    assert decision.verdict == "futile" and len(path) == decision.pairs + 1 == 3


@pytest.mark.long
def test_the_same_pictures_come_out_every_time(tmp_path):
    story = live_through()
    assert list(story.shifts.values())[SHOWN] == pytest.approx(np.log1p(MOVED_BY), abs=0.004)
    assert story.interval.low < SLOWED_BY < story.interval.high
    first = [path.read_bytes() for path in draw(tmp_path, ".svg")]
    assert first == [path.read_bytes() for path in draw(tmp_path, ".svg")]
    assert all(b"<svg" in content for content in first)
