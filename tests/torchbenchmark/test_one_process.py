"""What a child says of its measurement, as it gets into a record: the child runs the code of a model and of a build."""

import json
from datetime import UTC, datetime

import pytest

from torchbenchmark.isolation import ChildOutcome
from torchbenchmark.one_process import process_of
from torchbenchmark.records import Status, to_line, unfit_text

LATENCY = {"unit": "s", "samples": [1.0], "median": 1.0, "mean": 1.0, "p20": 1.0}
WHERE = {
    "round": 1, "index": 0, "zygote": "r1z0", "start_method": "fork", "started": datetime(2026, 1, 1, tzinfo=UTC),
}  # fmt: skip


def process(**result):
    return process_of(ChildOutcome(result, "ok", "", "", 1.0), **WHERE)


def test_a_result_as_it_should_be_is_ok():
    found = process(channels={"latency": LATENCY}, reasons={"graph_breaks": ["here"]}, notes=["hot"])
    assert found.status is Status.OK and found.channels["latency"].samples == (1.0,)


@pytest.mark.parametrize(
    "result",
    [
        {"channels": [LATENCY]},
        {"channels": {"latency": LATENCY | {"median": "much"}}},
        {"channels": {"latency": LATENCY | {"samples": []}}},
        {"channels": {"latency": LATENCY | {"samples": [float("inf")]}}},
        {"channels": {"latency": LATENCY | {"p20": 1e300}}},
        {"channels": {"latency\x1b]0;owned\x07": LATENCY}},
        {"channels": {"": LATENCY}},
        {"notes": 7},
        {"notes": [None, 7], "reasons": [1]},
        {"reasons": {"graphs\n": ["x"]}},
        {"reasons": {"graphs": 7}},
        {"threads": "many"},
    ],
)
def test_an_absurd_result_is_an_error_of_the_test_and_its_record_stays_readable(result):
    found = process(**result)
    assert found.status is Status.ERROR and found.channels == {}
    assert found.reason.startswith("the child's result does not validate: ")
    assert unfit_text(json.loads(to_line(found)), allowed="\n\t") is None
