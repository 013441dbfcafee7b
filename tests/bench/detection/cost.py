"""What a night and a whole replay cost in seconds and memory, beside otava's night on the same machine.

`python cost.py DATA` prints the figures as JSON: a process of its own, so that the peak of memory is the screen's.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __name__ == "__main__":  # elsewhere __main__.py has done so
    sys.path[:0] = [str(Path(sys.argv[1]).parent / "tools"), *map(str, Path(__file__).resolve().parents[2:4])]
from markdown_page import table, verdict
from rivals import Rivals, single_threaded
from scores import sandmark

from baselines.rolling import ValidNights
from baselines.screening.fleet import Move, view_fleet
from baselines.screening.runners import on_one_runner
from baselines.screening.screen import screen_night
from baselines.screening.shifts import KNOBS, replay
from baselines.series_values import series_of_night

SERIES, NIGHTS = 3000, 400
OTAVA_SERIES = 3
MOVES = 20_000
GATHERED_TESTS, GATHERED_CHANNELS, GATHERED_NIGHTS = 40, ("cpu_time", "latency", "cpu_memory"), 120
VALUE_FLOOR = 8e-6  # seconds a value
NIGHT_FLOOR, REPLAY_FLOOR, MEMORY_FLOOR = 2.0, 900.0, 1.0  # seconds, seconds, GiB


def measure(data: Path, cache: Path) -> str:
    done = subprocess.run([sys.executable, __file__, data], env=single_threaded(), stdout=subprocess.PIPE, check=True)
    ours = json.loads(done.stdout)
    histories = [np.exp(logs) for logs in tiled_histories(data, OTAVA_SERIES)]
    settings = {"p": 1e-7, "magnitude": 0.005, "nights": 0}
    _, otava = Rivals(cache).replay("otava", settings, 7, histories, again=True)
    otava_night = otava / (OTAVA_SERIES * NIGHTS)
    per_night = {
        name: ours[name]["cpu_s"] / divisor for name, divisor in (("night", SERIES), ("replay", SERIES * NIGHTS))
    }
    of_a_value = ours["gathering"]["cpu_s"] / (GATHERED_TESTS * len(GATHERED_CHANNELS) * GATHERED_NIGHTS)
    rows = [
        ["", "CPU s", "wall s", "of a series-night, us", "otava takes so many times that", "floor"],
        [
            f"one night's screen of {SERIES} series given {NIGHTS} nights",
            f"{ours['night']['cpu_s']:.2f}",
            f"{ours['night']['wall_s']:.2f}",
            f"{1e6 * per_night['night']:.0f}",
            f"{otava_night / per_night['night']:.0f}",
            f"<= {NIGHT_FLOOR:g} s {verdict(ours['night']['cpu_s'] <= NIGHT_FLOOR)}",
        ],
        [
            f"every night replayed, {SERIES} x {NIGHTS}",
            f"{ours['replay']['cpu_s']:.0f}",
            f"{ours['replay']['wall_s']:.0f}",
            f"{1e6 * per_night['replay']:.0f}",
            f"{otava_night / per_night['replay']:.0f}",
            f"<= {REPLAY_FLOOR:g} s {verdict(ours['replay']['cpu_s'] <= REPLAY_FLOOR)}",
        ],
        [
            f"a night's {GATHERED_TESTS * len(GATHERED_CHANNELS)} series gathered from {GATHERED_NIGHTS} stored nights",
            f"{ours['gathering']['cpu_s']:.2f}",
            f"{ours['gathering']['wall_s']:.2f}",
            f"{1e6 * of_a_value:.1f}",
            "",
            f"<= {1e6 * VALUE_FLOOR:.0f} us {verdict(of_a_value <= VALUE_FLOOR)}",
        ],
        [
            f"{SERIES} series on one runner, as if every night had another host",
            f"{ours['hosts']['cpu_s']:.2f}",
            f"{ours['hosts']['wall_s']:.2f}",
            f"{1e6 * ours['hosts']['cpu_s'] / SERIES:.0f}",
            "",
            "",
        ],
        [
            f"the fleet of {MOVES} tests that moved within a fortnight",
            f"{ours['fleet']['cpu_s']:.2f}",
            f"{ours['fleet']['wall_s']:.2f}",
            "",
            "",
            "",
        ],
        [
            "peak of memory of the first two",
            f"{ours['peak_gib']:.2f} GiB",
            "",
            "",
            "",
            f"<= {MEMORY_FLOOR:g} GiB {verdict(ours['peak_gib'] <= MEMORY_FLOOR)}",
        ],
    ]
    return (
        f"One core, numpy {np.__version__}; pieces of {NIGHTS} nights of the same histories. Judged by CPU seconds, as "
        f"wall time counts what else the machine does. otava in the same run, rerun nightly on {OTAVA_SERIES} of these "
        f"histories from its first night on: {1000 * otava_night:.1f} ms a series-night.\n\n{table(rows)}"
    )


def tiled_histories(data: Path, number: int) -> list[np.ndarray]:
    """Pieces of real series, each beginning elsewhere."""
    labelled = sandmark(data)
    rng = np.random.default_rng(0)
    long_enough = [labelled.y[name] for name in labelled.names if len(labelled.y[name]) >= NIGHTS]
    begins = [int(rng.integers(len(long_enough[i % len(long_enough)]) - NIGHTS + 1)) for i in range(number)]
    return [long_enough[i % len(long_enough)][begin : begin + NIGHTS] for i, begin in enumerate(begins)]


def gathering() -> Callable[[], object]:
    """The gathering of the series of a night out of the nights before it, all of them made by now."""
    from night_factory import night_of  # of the tests

    tests = [f"test_eval[m{test}-cpu-eager]" for test in range(GATHERED_TESTS)]
    made = dict.fromkeys(tests, dict.fromkeys(GATHERED_CHANNELS, 1.0))
    *history, tonight = [night_of(day, made) for day in range(GATHERED_NIGHTS + 1)]
    valid = dict.fromkeys(tonight.tests, ValidNights(nights=7, min_coverage=0.8))
    return lambda: series_of_night(tonight, history, valid)


def timed(work: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    of_all = tiled_histories(Path(sys.argv[1]), SERIES)
    figures: dict[str, object] = {
        "night": min(
            (timed(lambda: screen_night(of_all, KNOBS["default"])) for _ in range(3)), key=lambda taken: taken["cpu_s"]
        ),
        "replay": timed(lambda: replay(of_all, KNOBS["default"])),
    }
    figures["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures["gathering"] = timed(gathering())
    hosts = [f"host{night}" for night in range(NIGHTS)]
    figures["hosts"] = timed(lambda: [on_one_runner(logs, hosts) for logs in of_all])
    moves = [Move(f"t{number}", -number % 14, larger=True) for number in range(MOVES)]
    figures["fleet"] = timed(lambda: view_fleet(moves, MOVES))
    print(json.dumps(figures))
