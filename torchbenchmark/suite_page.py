"""Writes docs/suite.md, the page of all models, from their metadata alone: python -m torchbenchmark.suite_page"""

import itertools
from collections.abc import Iterator
from pathlib import Path

from torchbenchmark.gpu_batches import PRESET
from torchbenchmark.offers import default_batches
from torchbenchmark.registry import ModelEntry, Registry, load_suite, suite_names

PAGE = Path(__file__).parents[1] / "docs" / "suite.md"
COMMAND = "python -m torchbenchmark.suite_page"

_HEAD = """# The models

This page is written by `{command}` from each model's `metadata.yaml`; a test fails while it is stale.

{count} models are built in: those of TorchBench's score V1, written here from the papers and from published facts, on
timm and transformers where a row says so. They are grouped by category and domain, which are those of the published
taxonomy, odd as some are, for the score weights by them ([score.md](score.md#the-formula)). `torchbench list` tells the
same and can choose ([grid.md](grid.md)); a model of your own: [custom-model.md](custom-model.md).

```sh
torchbench run --suite v1 --preset tiny --out tiny.jsonl                     # every model at toy size
torchbench run --suite v1 --preset tiny --filter demucs --out demucs.jsonl   # one of them
torchbench run --suite v1 --device cuda --out full.jsonl                     # at full size, on a GPU
```

How long that takes: [measuring.md](measuring.md#the-whole-of-suite-v1). Without `--suite`, `run` takes `smoke`.

## The suites

| suite | what it is | models | tests | size |
|---|---|---|---|---|
{suites}

`v1` holds every model of the published taxonomy that is built. `smoke` and `canary` have five models, and are meant to
stay as they are while `v1` grows:

- Each stands for a kind of work and not for a domain: convolutions, attention, a language model's wide matrices,
  lookups in tables, and many small kernels in a row that the host can hardly launch fast enough. The models of speech,
  meta-learning, generation and science are made of the same.
- A canary is measured on a frozen build to see the machine, twice in every shard of every night. More of them would
  cost every night more time; fewer than five say too little; and one that is exchanged begins without a history.
- `smoke` is what CI measures and what a newcomer waits for, and that must stay seconds.

## How to read a row

- **size**: `full` has the shapes of the V1 branch, `head` those of the published harness today, `tiny` runs anywhere in
  about a second; `--preset` chooses. The numbers are the batches of a training step and of an inference; on a GPU that
  is named, the size `head` has another ([grid.md](grid.md#batch-sizes)).
- **tier**: how long a process takes at the size `full` on one large GPU: `short` under 4 s, `medium` under 8 s,
  `long` more.
- **not as V1**: where the workload is not that of the published score, mostly because a mistake there is mended.
"""


def suite_page(registry: Registry | None = None) -> str:
    """The whole page. Without a registry it is of the built-in models."""
    entries = list((registry or Registry()).models.values())
    entries.sort(key=lambda entry: (*_place(entry), entry.name.lower()))
    suites = "\n".join(_suite_row(name) for name in suite_names())
    parts = [_HEAD.format(command=COMMAND, count=len(entries), suites=suites)]
    for (category, domain), group in itertools.groupby(entries, _place):
        title = category if category == domain else f"{category}: {domain}"
        parts += [
            f"\n## {_words(title)}\n\n| model | what it is | tests | devices | size: batches | tier | not as V1 |",
            "|---|---|---|---|---|---|---|",
            *map(_row, group),
        ]
    return "\n".join(parts) + "\n"


def _place(entry: ModelEntry) -> tuple[str, str]:
    return entry.metadata.category, entry.metadata.domain


def _words(title: str) -> str:
    return title.replace("_", " ").lower().capitalize().replace("Nlp", "NLP")


def _suite_row(name: str) -> str:
    suite = load_suite(name)
    cells = (f"`{name}`", suite.description, str(len(suite.models)), ", ".join(suite.tests), f"`{suite.preset}`")
    return _line(cells)


def _row(entry: ModelEntry) -> str:
    about = entry.metadata
    needs = f" Needs {', '.join(about.requires)}." if about.requires else ""
    return _line(
        (
            f"`{entry.name}`",
            f"{about.description}.{needs}",
            ", ".join(about.tests),
            ", ".join(about.devices),
            "<br>".join(_sizes(entry)),
            about.tier,
            "<br>".join(about.differs_from_v1),
        )
    )


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sizes(entry: ModelEntry) -> Iterator[str]:
    """Each size with its batches; a batch that the source does not state is the model's own."""
    about = entry.metadata
    batches = default_batches((entry.folder / "__init__.py").read_bytes())
    for preset in about.presets:
        sizes = [f"{test} {batches.get(test, {}).get(preset, 'its own')}" for test in about.tests]
        yield f"`{preset}`: {', '.join(sizes)}"
        if preset == PRESET:
            for gpu, on_gpu in about.gpu_batches.items():
                yield f"`{preset}` on {gpu}: {', '.join(f'{test} {size}' for test, size in on_gpu.items())}"


if __name__ == "__main__":
    PAGE.write_text(suite_page(), encoding="utf-8")
