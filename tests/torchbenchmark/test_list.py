"""`torchbench list`: what there is to measure."""

from torchbenchmark.cli import list_models, print_suite
from torchbenchmark.registry import SkipRule, Suite, load_suite, suite_names


def suites(output: str) -> dict[str, list[str]]:
    """The lines that are told of each suite, by its name."""
    parts = output.partition("\nsuite ")[2].split("\nsuite ")
    return {part.partition(":")[0]: [line.strip() for line in part.splitlines()[1:]] for part in parts}


def test_every_suite_is_listed_with_its_models_tests_preset_and_threads(capsys):
    list_models()
    told = suites(capsys.readouterr().out)
    assert list(told) == suite_names()
    assert told["smoke"] == [
        "models: resnet18, timm_vision_transformer, hf_Bert, dlrm, soft_actor_critic",
        "tests: train, eval; preset: tiny; threads: 1",
    ]
    assert told["v1"][:2] == [
        f"models: {', '.join(load_suite('v1').models)}",
        "tests: train, eval; preset: full; threads: all CPUs",
    ]


def test_what_a_suite_leaves_out_is_listed_with_its_reason(capsys):
    suite = Suite(
        name="mine",
        description="Of my own.",
        models=("dlrm",),
        skip=(SkipRule(tests="test_train[dlrm-*]", reason="too slow [here]"),),
    )
    print_suite("mine", suite)
    assert capsys.readouterr().out.splitlines()[-1] == "  leaves out test_train[dlrm-*]: too slow [here]"
