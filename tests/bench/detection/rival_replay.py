"""Run by rivals.py in the venv of the other detectors: a job as JSON on stdin, its change points as JSON on stdout.

Every night the detector is rerun on the history up to that night. Of each position that it calls a change point the
first night is kept on which it did so and the position was `age` nights old, itself included. Which of them are
reported is decided by the caller.
"""

import json
import sys
import time

import numpy as np

FEWEST = 10  # nights before the first run
SMALLEST_SCALE = 1e-4


def otava(values, settings):
    """settings: p, magnitude; nights: of history that a run is given, 0 for all."""
    from otava.analysis import compute_change_points

    def found(night):
        begin = max(0, night + 1 - settings["nights"]) if settings["nights"] else 0
        points, _ = compute_change_points(
            values[begin : night + 1], max_pvalue=settings["p"], min_magnitude=settings["magnitude"]
        )
        return [begin + int(point.index) for point in points]

    return found


def pelt(values, settings):
    """settings: penalty, in squared noise sds as the first differences show them; nights, as above. The linear kernel
    is the squared-error cost."""
    import ruptures

    logs = np.log(np.maximum(values, 1e-12))

    def found(night):
        begin = max(0, night + 1 - settings["nights"]) if settings["nights"] else 0
        recent = logs[begin : night + 1]
        scale = max(SMALLEST_SCALE, 1.4826 * np.median(np.abs(np.diff(recent))) / np.sqrt(2))
        model = ruptures.KernelCPD(kernel="linear", min_size=3).fit(((recent - recent[0]) / scale)[:, None])
        return [begin + int(end) for end in model.predict(pen=settings["penalty"])[:-1]]

    return found


def first_seen(values, detector, settings, age):
    found = detector(values, settings)
    seen = {}
    for night in range(FEWEST - 1, len(values)):
        for position in found(night):
            if night - position + 1 >= age:
                seen.setdefault(position, night)
    return sorted(seen.items(), key=lambda item: (item[1], item[0]))


def main():
    job = json.load(sys.stdin)
    detector = {"otava": otava, "pelt": pelt}[job["detector"]]
    begun = time.process_time()
    points = [first_seen(values, detector, job["settings"], job["age"]) for values in job["series"]]
    json.dump({"points": points, "cpu_s": time.process_time() - begun}, sys.stdout)


if __name__ == "__main__":
    main()
