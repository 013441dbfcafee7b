"""`torchbench list`: what there is to measure."""

import importlib

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment
from torchbenchmark.listing import list_models, print_suite
from torchbenchmark.offers import default_batches, offers
from torchbenchmark.registry import Registry, SkipRule, Suite, load_suite, suite_names
from torchbenchmark.terminal import console


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


def listed(capsys, **options) -> list[str]:
    """The models in the table that the options leave, and nothing beside the table."""
    list_models(**options)
    out = capsys.readouterr().out
    assert "\nsuite " not in out and "precisions:" not in out
    return [line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line.split()[1] != "│"]


def names(fits) -> list[str]:
    return [entry.name for entry in Registry().models.values() if fits(entry.metadata)]


def test_models_are_listed_by_what_their_metadata_says(capsys):
    for options, fits in (
        ({"category": ["nlp"]}, lambda about: about.category == "NLP"),
        ({"domain": ["CLASSIFICATION"]}, lambda about: about.domain == "CLASSIFICATION"),
        ({"device": ["cuda"]}, lambda about: "cuda" in about.devices),
        ({"test": ["train"]}, lambda about: "train" in about.tests),
        ({"requires": ["TIMM"]}, lambda about: any(one.startswith("timm") for one in about.requires)),
        ({"without": ["timm", "transformers", "torchvision"]}, lambda about: not about.requires),
        ({"category": ["nlp", "recommendation"]}, lambda about: about.category in ("NLP", "RECOMMENDATION")),
        (
            {"category": ["other"], "test": ["train"]},
            lambda about: about.category == "OTHER" and "train" in about.tests,
        ),
    ):
        expected = names(fits)
        assert expected and len(expected) <= len(Registry().models)
        assert listed(capsys, **options) == expected, options


def test_models_are_listed_by_suite_and_duration(capsys, tmp_path):
    (tmp_path / "mine.yaml").write_text("{name: mine, description: d, models: [hf_Bert, dlrm]}")
    assert listed(capsys, suite=["smoke"]) == sorted(load_suite("smoke").models)
    assert listed(capsys, suite=[str(tmp_path / "mine.yaml")]) == ["dlrm", "hf_Bert"]
    assert listed(capsys, suite=["smoke"], without=["timm"], category=["nlp"]) == ["hf_Bert"]
    assert listed(capsys, tier=["short"], suite=["smoke"]) == sorted(load_suite("smoke").models)


def test_on_a_narrow_terminal_every_model_has_lines_of_its_own_and_nothing_is_cut(capsys, monkeypatch):
    monkeypatch.setattr(console, "width", 80)
    list_models(category=["speech"])
    out = capsys.readouterr().out
    about = Registry().model("tts_angular").metadata
    assert f"tts_angular: {about.description}" in " ".join(out.split())
    assert "  speech / synthesis; train, eval; cpu, cuda; full, head, tiny; short\n" in out


def test_a_description_is_shown_word_for_word(capsys, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "metadata.yaml").write_text(
        "{description: 'From [batch, words] to [red]', category: OTHER, domain: MINE, workload_version: '1'}"
    )
    list_models(domain=["mine"], models=[tmp_path])
    assert "From [batch, words] to [red]" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"suite": ["smok"]}, "unknown suite 'smok'; did you mean smoke"),
        ({"category": ["chess"]}, "--category 'chess': no model has that; known: computer_vision, nlp"),
        ({"domain": ["chess"]}, "--domain 'chess': .* known: classification, "),
        ({"domain": ["Speech"]}, "--domain 'speech': no model has that; it is a category: --category speech$"),
        ({"category": ["detection"]}, "--category 'detection': .*; it is a domain: --domain detection$"),
        ({"device": ["tpu"]}, "--device 'tpu': .* known: cpu, cuda"),
        ({"test": ["infer"]}, "--test 'infer': .* known: train, eval"),
        ({"tier": ["core"]}, "--tier 'core': .* known: short, medium, long"),
        ({"requires": ["jax"]}, "--requires 'jax': .* known: timm, torchvision, transformers"),
        ({"without": ["jax"]}, "--without 'jax': .* known: timm, torchvision, transformers"),
        ({"requires": ["timm"], "without": ["torchvision"]}, "no model is all that was asked for"),
        ({"names": ["dlrm"], "device": ["cpu"]}, "models are named, or chosen by options; not both"),
    ],
)
def test_what_no_model_has_is_refused_with_what_there_is(options, problem):
    with pytest.raises(BenchmarkError, match=problem):
        list_models(**options)


def test_a_batch_that_a_gpu_has_of_its_own_is_listed_where_there_are_gpus(capsys):
    told = told_of("opacus_cifar10", capsys)
    assert told["eval on cuda"][0].startswith(
        "batch size: 64 (full), 64 (head), 32 (tiny), 512 (head on NVIDIA A100), or"
    )
    assert "A100" not in "".join(line for heading in ("train on cuda", "eval on cpu") for line in told[heading])


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


def test_a_size_that_has_a_name_of_its_own_in_the_module_is_read_there():
    source = (
        b"V1 = Preset(train_batch=4, eval_batch=1)\nclass Model:\n    PRESETS = {'full': V1, 'head': V1, 'tiny': V2}"
    )
    assert default_batches(source) == {"train": {"full": 4, "head": 4}, "eval": {"full": 1, "head": 1}}


def test_a_batch_size_that_is_computed_or_inherited_is_not_guessed():
    assert default_batches(b"PRESETS = {'tiny': Preset(train_batch=2 * 2, eval_batch=3)}") == {"eval": {"tiny": 3}}
    assert default_batches(b"class Model(Original):\n    PRESETS = Original.PRESETS") == {}
