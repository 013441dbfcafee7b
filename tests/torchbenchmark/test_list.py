"""`torchbench list`: what there is to measure."""

import importlib

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment
from torchbenchmark.listing import list_models, print_suite
from torchbenchmark.offers import default_batches, offers
from torchbenchmark.registry import Registry, SkipRule, Suite, load_suite, suite_names


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


def told_of(model: str, capsys) -> dict[str, list[str]]:
    """The lines that are told of a model, by test and device."""
    list_models([model])
    heading, found = "", {}
    for line in capsys.readouterr().out.splitlines()[1:]:
        if line.startswith("    "):
            found[heading].append(line.strip())
        else:
            heading = line.strip()
            found[heading] = []
    return found


def test_a_model_that_is_named_is_listed_with_batch_sizes_backends_precisions_and_what_it_has_not(capsys):
    told = told_of("dlrm", capsys)
    assert list(told) == ["train on cpu", "train on cuda", "eval on cpu", "eval on cuda"]
    batch, backends, precisions, *without = told["train on cuda"]
    assert batch == "batch size: 2 (full), 128 (tiny), or any --batch-size"
    assert "inductor_cudagraphs" in backends and "jit" not in backends
    assert precisions == "precisions: fp32, tf32, bf16, amp_fp16, amp_bf16"
    assert "not jit: its module is annotated with Sequence, which TorchScript does not know" in without
    assert any(line.startswith("not cudagraphs: CUDA graphs need a GPU") for line in told["eval on cpu"])
    with pytest.raises(BenchmarkError, match="unknown model 'dlm'; did you mean dlrm"):
        list_models(["dlm"])


def test_what_is_listed_is_what_a_run_would_measure():
    for entry in Registry().models.values():
        for offer in offers(entry):
            without = dict(offer.without)
            for backend in offer.backends:
                for precision in offer.precisions:
                    experiment = Experiment(entry.name, offer.test, offer.device, backend, precision)
                    assert entry.unsupported_reason(experiment) == without.get(f"{backend} with {precision}")


@pytest.mark.parametrize("name", sorted(Registry().models))
def test_the_batch_sizes_that_are_read_are_those_of_the_model(name):
    presets = importlib.import_module(f"torchbenchmark.models.{name}").Model.PRESETS
    assert default_batches((Registry().model(name).folder / "__init__.py").read_bytes()) == {
        "train": {preset: made.train_batch for preset, made in presets.items()},
        "eval": {preset: made.eval_batch for preset, made in presets.items()},
    }


def test_a_batch_size_that_is_computed_or_inherited_is_not_guessed():
    assert default_batches(b"PRESETS = {'tiny': Preset(train_batch=2 * 2, eval_batch=3)}") == {"eval": {"tiny": 3}}
    assert default_batches(b"class Model(Original):\n    PRESETS = Original.PRESETS") == {}
