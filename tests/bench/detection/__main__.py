"""How well level shifts are found and changes filed, beside what others do: the measured part of docs/detection.md.

`make bench-detection DATA=../shared/data` or `python tests/bench/detection DATA` measures everything and writes it into
docs/detection.md; `--only knobs` one part of it; `--only slack`, not measured otherwise, how the knob `sensitive`
was chosen among 200 settings; `--out FILE` writes elsewhere. Needs the labelled public histories and, in a folder
`tools` beside them, evalkit.py, fleet.py and fleet.yaml; the product needs neither. The other detectors are installed
into `--cache`, where their answers and what simulated fleets came to are kept: eleven minutes on a free core, the first
time twenty more for either; the fleets use all cores. Seeds are fixed.
"""

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: one core is what is promised
from markdown_page import replace_section

ROOT = Path(__file__).resolve().parents[3]
PARTS = {  # module: heading
    "knobs": "The three knobs on labelled histories",
    "other_detectors": "Beside other detectors",
    "slack": "How the knob sensitive was chosen",
    "injected_steps": "Steps, drifts and spikes put into real stretches",
    "cost": "Time and memory",
    "agreement": "The nightly beside the replay",
    "ranking": "Ranking: suspects of the first three nights",
    "filing": "Filing on a simulated fleet",
}
ON_REQUEST = {"slack"}  # only with --only: a choice is made once, and comparing 200 settings takes eight minutes
NEEDED = (  # seen from the folder of the histories
    *(f"{name}/series.csv" for name in ("sandmark", "aa", "visual")),
    *(f"../tools/{name}" for name in ("evalkit.py", "fleet.py", "fleet.yaml")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the labelled histories; its tools lie beside it")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated; all but slack without it")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "detection.md", help="a page with the two markers")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench-detection", help="of answers that take minutes")
    arguments = parser.parse_args()
    data = arguments.data.resolve()
    missing = [name for name in NEEDED if not (data / name).exists()]
    if missing:
        sys.exit(
            f"bench-detection needs the labelled histories and their tools: {data} lacks {', '.join(missing)}. "
            "Give their folder: make bench-detection DATA=path/to/shared/data"
        )
    for folder in (data.parent / "tools", ROOT):
        sys.path.insert(0, str(folder))
    for name in arguments.only or [part for part in PARTS if part not in ON_REQUEST]:
        begun = time.monotonic()
        part = importlib.import_module(name)
        text = part.measure(data, arguments.cache.resolve())
        replace_section(arguments.out, PARTS[name], text, list(PARTS.values()))
        print(f"### {PARTS[name]}\n\n{text}\n({name}: {time.monotonic() - begun:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
