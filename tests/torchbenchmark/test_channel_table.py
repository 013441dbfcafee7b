"""The one table of the channels, and the page that shows it."""

import re
from pathlib import Path

from torchbenchmark.channels import CHANNELS

PAGE = Path(__file__).parents[2] / "docs" / "records.md"


def test_the_page_of_the_records_shows_the_table_as_it_is():
    shown = {}
    for row in PAGE.read_text().partition("## Channels")[2].splitlines():
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        for name in re.findall(r"`(\w+)`", cells[0]) if len(cells) == 5 else ():
            shown[name] = (cells[1], cells[2], cells[3] == "exactly")
    assert shown == {name: (kind.unit, kind.better, kind.exact) for name, kind in CHANNELS.items()}


def test_what_the_gpu_itself_measures_needs_no_covariate_of_the_host():
    assert CHANNELS["gpu_time"].side == CHANNELS["launches"].side == "gpu"
    assert CHANNELS["latency"].side == CHANNELS["event_latency"].side == CHANNELS["cpu_time"].side == "cpu"


def test_the_covariate_itself_is_never_judged():
    assert not CHANNELS["host_probe"].judged
