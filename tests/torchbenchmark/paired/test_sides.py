"""What names a side of a comparison."""

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment
from torchbenchmark.paired.sides import Side, parse_side


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("/venv/bin/python", Side("/venv/bin/python")),
        ("X@backend=inductor", Side("X", {"backend": "inductor"})),
        ("release:torch==2.12.0@env.A_B=1@batch_size=8", Side("release:torch==2.12.0", {}, 8, {"A_B": "1"})),
        ("git:https://h/r.git@0123abcd@precision=bf16", Side("git:https://h/r.git@0123abcd", {"precision": "bf16"})),
        ("git:git@host:r@main", Side("git:git@host:r@main")),
        (
            "url:https://h/t-{date}.whl@2026-11-20@env.X=",
            Side("url:https://h/t-{date}.whl@2026-11-20", variables={"X": ""}),
        ),
    ],
)
def test_a_side_is_a_build_and_overrides_and_its_text_names_it_again(text, side):
    assert parse_side(text) == side
    assert parse_side(str(side)) == side


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@backend=inductor", "names no build"),
        ("X@backnd=inductor", "@backnd is no override; there are: backend, precision"),
        ("X@backend=a@backend=b", "stands twice"),
        ("X@batch_size=0", "a whole number from 1 on"),
        ("X@env.LD_PRELOAD=/x.so", "decides which code is loaded"),
        ("X@env.PYTHONPATH=/x", "decides which code is loaded"),
        ("X@env.1=2", "not the name of a variable"),
        ("X@env.A=\x1b[31m", "control character"),
        ("X@env.A=1\n@env.B=2", "line break"),
        ("X@env.HF_TOKEN=abc", "looks like a secret"),
        ("X@env.PROXY=http://me:abc@host", "looks like a secret"),
    ],
)
def test_what_names_no_side_is_told(text, said):
    with pytest.raises(BenchmarkError, match=said):
        parse_side(text)


@pytest.mark.parametrize(
    "override", ["backnd=jit", "batch_size=0", "env.1=2", "env.LD_X=1", "backend=a@backend=b", "env.A_TOKEN=hunter2"]
)
def test_no_error_repeats_the_address_of_the_build_or_the_value_of_a_secret(override):
    with pytest.raises(BenchmarkError) as told:
        parse_side(f"url:https://me:hunter2@host/t.whl@{override}")
    assert "hunter2" not in str(told.value) and "me:" not in str(told.value)


def test_overrides_change_the_experiment_and_nothing_else():
    planned = Experiment("resnet18", "eval", "cpu", preset="tiny")
    side = parse_side("X@backend=inductor@batch_size=8")
    assert side.experiment(planned).id == "test_eval[resnet18-cpu-inductor-bs8-tiny]"
    assert parse_side("X").experiment(planned) == planned
    with pytest.raises(BenchmarkError, match="precision"):
        parse_side("X@precision=fp12").experiment(planned)
