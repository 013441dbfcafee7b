"""What slows one operator in a build (tests/e2e/slow_build.py): `layer_norm` writes so many rows more in every call.

The build keeps this as its module `slow_operator`, and a plan beside it that says how many rows for which calls. A call
is known by the shape of its input, its epsilon and whether gradients are taken, which differ from test to test.
"""

import json
from pathlib import Path

PLAN = Path(__file__).with_name("longer_operator.json")  # rows by call
rows = json.loads(PLAN.read_text()) if PLAN.exists() else {}
calls = set()  # that were made in this process


def slow_down(functional):
    import torch

    original = functional.layer_norm
    buffers = {}

    def slowed(input, normalized_shape, weight=None, bias=None, eps=1e-5):
        call = f"{'x'.join(map(str, input.shape))} {eps:g} {'train' if torch.is_grad_enabled() else 'eval'}"
        calls.add(call)
        if count := rows.get(call):
            if count not in buffers:
                buffers[count] = torch.ones(count, device=input.device)
            with torch.no_grad():
                buffers[count].fill_(1.0)
        return original(input, normalized_shape, weight, bias, eps)

    functional.layer_norm = slowed
