"""The auto-encoder of ratings."""

import itertools

from published.facts import Published

ITEMS, WIDTHS = 15178, (512, 512, 1024)
LAYERS = [*itertools.pairwise((ITEMS, *WIDTHS)), *itertools.pairwise((*WIDTHS[::-1], ITEMS))]

PUBLISHED = {
    "nvidia_deeprecommender": Published(
        sum((inputs + 1) * outputs for inputs, outputs in LAYERS),
        (128, ITEMS),
        (1, ITEMS),
        {"lr": 0.005, "momentum": 0.9, "weight_decay": 0},
        sum(inputs * outputs for inputs, outputs in LAYERS),
    )
}
