"""Repeats the nightly's end-to-end test many times and counts how often it was wrong. Run by hand, on a quiet machine:

    python tests/e2e/repeat_slow_build.py --times 20

Each repetition starts from the same nights of the untouched build and measures the slowed build, the slowed one again,
and the untouched build. It is wrong if the first slow night confirms or the second files other tests than those of the
slowed operator, if the score does not fall, or if there is not exactly one issue, made in the second slow night.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from nights import Night, Nights
from slow_build import SLOWED_MODELS, make_slow_build

BASELINE_NIGHTS = 3


def judge_slow(night: Night, nights: Nights, effects: list[str]) -> list[str]:
    rows = {row["test"] for row in night.summary["report"]["rows"]}
    expected = {test for test in rows if any(model in test for model in SLOWED_MODELS)}
    confirmation = night.summary["report"]["confirmation"]
    found = {one["test"] for one in confirmation["tried"] if one["verdict"] == "confirmed"}
    found |= {one["test"] for filed in confirmation["filed"] for one in filed["intervals"]}
    wrong = [f"missed {test}" for test in sorted(expected - found)]
    wrong += [f"false {test}" for test in sorted(found - expected)]
    if night.exit_code != 1:
        wrong.append(f"exit {night.exit_code} for the slow build")
    if not night.summary["score"]["total"] < 1000:
        wrong.append(f"score {night.summary['score']['total']:.1f} did not fall")
    if [issue["effect"] for issue in night.summary["issues"]] != effects or len(nights.issues) != len(effects):
        wrong.append(f"issues {night.summary['issues']}, {len(nights.issues)} files")
    return wrong


def judge_untouched(night: Night, nights: Nights) -> list[str]:
    wrong = [] if night.exit_code == 0 else [f"untouched: {night.summary['verdict']}: {night.summary['reason']}"]
    if len(nights.issues) != 1:
        wrong.append(f"{len(nights.issues)} issues after the untouched night")
    return wrong


def largest_changes(night: Night) -> str:
    changes = {row["test"]: row["change"] for row in night.summary["report"]["rows"] if row["change"] is not None}
    slowed = [change for test, change in changes.items() if any(model in test for model in SLOWED_MODELS)]
    others = [change for test, change in changes.items() if not any(model in test for model in SLOWED_MODELS)]
    return f"slowed {min(slowed):+.0%}..{max(slowed):+.0%}, others {min(others):+.0%}..{max(others):+.0%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        slow_python = make_slow_build(folder / "slow")
        before = Nights(folder / "before")
        before.folder.mkdir()
        for _ in range(BASELINE_NIGHTS):
            night = before.run()
            print(f"baseline night: {night.summary['verdict']}: {night.summary['reason']}", flush=True)
        repetitions_wrong = 0
        for number in range(1, options.times + 1):
            nights = Nights(folder / f"repetition-{number}")
            shutil.copytree(before.folder, nights.folder)
            shutil.rmtree(nights.folder / "outbox", ignore_errors=True)
            wrong, told = [], []
            for effects in ([], ["created"]):
                night = nights.run(slow_python)
                wrong += judge_slow(night, nights, effects)
                told.append(largest_changes(night))
            night = nights.run()
            wrong += judge_untouched(night, nights)
            told.append(largest_changes(night))
            repetitions_wrong += bool(wrong)
            print(f"{number}: {'WRONG: ' + '; '.join(wrong) if wrong else 'right'} ({' | '.join(told)})", flush=True)
        print(f"{repetitions_wrong} of {options.times} repetitions wrong")
    return 0 if repetitions_wrong <= options.times // 20 else 1


if __name__ == "__main__":
    sys.exit(main())
