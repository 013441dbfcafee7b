"""Many writers of one store at once: no pin and no change of an alert is lost or made twice."""

import json
import subprocess
import sys
import time

import pytest
from night_factory import A, run_of

from baselines.pins import read_pins
from baselines.runs import store_run
from bot.github.alert_store import read_alerts

WRITERS = 8
SERIES = ("smoke", "cpu-4t")

# Counts in its own alert and moves its own pin from run to run until its time is over; tells what it did at last.
WRITER = """
import json, sys, time
from datetime import UTC, datetime
from baselines.pins import set_pin
from baselines.store import open_store
from bot.github.alert_store import change_alerts
from bot.github.alert import Alert

location, number, seconds, *runs = sys.argv[1:]
store, key, changes, pinned = open_store(location), f"{int(number):016x}", 0, None

def count(alerts):
    others = tuple(alert for alert in alerts if alert.key != key)
    mine = next((alert for alert in alerts if alert.key == key), None)
    return (*others, Alert(
        key=key, kind="regression", suite="smoke", machine_class="cpu-4t", opened=datetime(2026, 3, 1, tzinfo=UTC),
        tests=(), nights=(), recovered_nights=(mine.recovered_nights if mine else 0) + 1,
    ))

deadline = time.monotonic() + float(seconds)
while time.monotonic() < deadline:
    change_alerts(store, "smoke", "cpu-4t", count)
    changes += 1
    pinned = runs[changes % len(runs)]
    set_pin(store, f"writer{number}", pinned)
print(json.dumps([changes, pinned]))
"""


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.long)])
def test_eight_writers_lose_nothing_and_double_nothing(any_store, seconds):
    runs = [store_run(any_store, run_of(day, {A: 1.0})).rpartition("/")[0] for day in range(2)]
    began = time.monotonic()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, any_store.location, str(number), str(seconds), *runs],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    told = [writer.communicate(timeout=seconds + 120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    done = [json.loads(line) for line in told]
    alerts = {alert.key: alert.recovered_nights for alert in read_alerts(any_store, *SERIES)}
    pins = read_pins(any_store, *SERIES)
    assert alerts == {f"{number:016x}": changes for number, (changes, _) in enumerate(done)}
    assert {name: pin.run for name, pin in pins.items()} == {f"writer{n}": run for n, (_, run) in enumerate(done)}
    print(f"{sum(changes for changes, _ in done)} changes of each kind in {time.monotonic() - began:.0f} s")
