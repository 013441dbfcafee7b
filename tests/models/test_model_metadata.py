"""Metadata and suites of the built-in models: read without torch, and true to the published taxonomy."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from score.taxonomy import PUBLISHED
from torchbenchmark.experiment import Experiment
from torchbenchmark.gpu_batches import PRESET
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.requirements import parse_requirement

ROOT = Path(__file__).parents[2]
PUBLISHED_DOMAINS = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
MODELS = Registry().models

every_model = pytest.mark.parametrize("name", MODELS)


def python(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


@every_model
def test_category_and_domain_are_those_of_the_published_taxonomy(name):
    if name not in PUBLISHED_DOMAINS:
        pytest.skip(f"the published taxonomy has no {name}")
    metadata = MODELS[name].metadata
    assert {"category": metadata.category, "domain": metadata.domain} == PUBLISHED_DOMAINS[name]


@every_model
def test_what_a_model_requires_are_names_of_distributions(name):
    for requirement in Registry().model(name).metadata.requires:
        assert version(parse_requirement(requirement).name)


@every_model
def test_the_presets_of_the_metadata_are_those_of_the_class(name):
    loaded = __import__(f"torchbenchmark.models.{name}", fromlist=["Model"])
    assert set(Registry().model(name).metadata.presets) == set(loaded.Model.PRESETS)


@every_model
def test_batches_by_gpu_are_of_tests_and_the_size_that_the_model_has(name):
    metadata = Registry().model(name).metadata
    for sizes in metadata.gpu_batches.values():
        assert set(sizes) <= set(metadata.tests)
        assert PRESET in metadata.presets and "cuda" in metadata.devices


def test_the_registry_reads_all_metadata_and_sources_without_importing_torch_or_a_model():
    done = python(
        "import sys\n"
        "from torchbenchmark.registry import Registry, load_suite\n"
        "for entry in Registry().models.values():\n"
        "    entry.metadata, entry.source_hash\n"
        "load_suite('smoke'), load_suite('v1')\n"
        "heavy = {'torch', 'timm', 'transformers', 'torchvision', 'numpy'} & set(sys.modules)\n"
        "models = [name for name in sys.modules if name.startswith('torchbenchmark.models')]\n"
        "print(sorted(heavy), models)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] []"


def test_models_in_plain_torch_import_where_the_drivers_libraries_are_missing():
    plain = [f"torchbenchmark.models.{name}" for name, entry in MODELS.items() if not entry.metadata.requires]
    assert plain
    done = python(
        "import sys\n"
        "for name in ('pydantic', 'yaml', 'typer', 'rich', 'jinja2', 'boto3', 'requests', 'timm', 'transformers'):\n"
        "    sys.modules[name] = None\n"
        f"import {', '.join(plain)}\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("suite", "preset"), [("smoke", "tiny"), ("v1", "full")])
def test_a_suite_plans_both_tests_of_its_models(suite, preset):
    registry = Registry()
    loaded = load_suite(suite)
    planned = registry.experiments(loaded, ["cpu"])
    suffix = "" if preset == "full" else f"-{preset}"
    expected = {f"test_{test}[{name}-cpu-eager{suffix}]" for name in loaded.models for test in ("train", "eval")}
    assert {experiment.id for experiment in planned} == expected
    for experiment in planned:
        entry = registry.model(experiment.model)
        assert (entry.unsupported_reason(experiment) is None) == (experiment.test in entry.metadata.tests)


@pytest.mark.parametrize("name", ["hf_Longformer", "pytorch_struct"])
@pytest.mark.parametrize("precision", ["amp_bf16", "amp_fp16"])
def test_what_torch_export_asserts_of_some_networks_does_not_hold_under_autocast(name, precision):
    """RuntimeError: Tensor dtype mismatch! Expected: Float, Got: c10::BFloat16."""
    asked = Experiment(name, "eval", "cpu", backend="export", precision=precision, preset="tiny")
    assert "under autocast" in MODELS[name].unsupported_reason(asked)
    assert MODELS[name].unsupported_reason(replace(asked, precision="bf16")) is None


def test_the_backward_pass_that_torchscript_derives_of_the_inside_algorithm_under_autocast_fails():
    asked = Experiment("pytorch_struct", "train", "cpu", backend="jit", precision="amp_bf16", preset="tiny")
    assert "TorchScript derives under autocast" in MODELS["pytorch_struct"].unsupported_reason(asked)
    assert MODELS["pytorch_struct"].unsupported_reason(replace(asked, test="eval")) is None


def test_the_suite_of_version_one_holds_every_built_in_model_of_the_published_taxonomy():
    assert set(load_suite("v1").models) == set(MODELS) & set(PUBLISHED_DOMAINS)
