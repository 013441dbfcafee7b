"""Planted bad models: each is caught by the contract that is meant for it and no other, and a healthy one by none."""

from pathlib import Path

import pytest
import torch

from torchbenchmark.check_models import declared
from torchbenchmark.contracts import CONTRACTS
from torchbenchmark.contracts.contract import Case, Declared
from torchbenchmark.contracts.judging import judge
from torchbenchmark.registry import Registry
from torchbenchmark.worker.loading import import_model

BAD_MODELS = Path(__file__).parents[1] / "bad_models"
# model -> the contract that it breaks, and a word of what is said
PLANTED = {
    "all_on_cpu": ("places", "lie on cpu"),
    "input_on_cpu": ("places", "example inputs"),
    "computes_on_cpu": ("places", "arange gives a tensor on cpu"),
    "target_on_cpu": ("places", "on self.device, and make target there in setup()"),
    "input_copied": ("copies", "from cpu to meta"),
    "constants_copied": ("copies", "tensor puts values of the host onto the device"),
    "value_read_back": ("waits", "_local_scalar_dense"),
    "mask_as_index": ("waits", "index by a mask"),
    "generator_never_stepped": ("updates", "generator_optimizer never steps"),
    "layer_forgotten": ("updates", "2.weight"),
    "network_copied": ("nothing built", "the network Sequential"),
    "optimizer_rebuilt": ("nothing built", "the optimizer SGD"),
    "network_exchanged": ("same objects", "another network"),
    "inputs_overwritten": ("same objects", "other values"),
    "module_not_set": ("replaceable", "set_module()"),
    "optimizer_not_set": ("replaceable", "set_optimizer()"),
    "inputs_do_not_fit": ("interface", "raised TypeError"),
    "data_made_in_iteration": ("draws", "randn_like"),
    "data_made_by_numpy": ("draws", "generator on the host"),
    "dropout_declared_and_not_drawn": ("draws", "none does"),
    "network_shared": ("independence", "share module"),
    "steps_counted_in_class": ("independence", "Model.iterations"),
    "losses_kept": ("memory", "output 0"),
    "batch_of_two": ("batch", "2 rows at a batch of 8"),
    "batch_cut_inside": ("batch", "does not grow"),
    "batch_fixed": ("batch", "of shape (8, 16)"),
    "gradients_pile_up": ("gradients", "0.weight"),
    "file_read": ("files", "open"),
    "sleeps": ("files", "time.sleep (3 x)"),
    "works_in_thread": ("files", "threading.Thread (3 x)"),
    "inference_with_gradients": ("inference", "computes gradients"),
    "inference_in_training_mode": ("inference", "training mode"),
    "inference_leaves_a_trace": ("inference", "changes 0.bias"),
    "optimizer_for_inference": ("inference", "holds the optimizer"),
    "loss_rises": ("loss", "does not fall"),
    "loss_not_a_number": ("loss", "the loss of step 1 is nan"),
    "loss_as_a_number": ("loss", "returns float and no tensor"),
    "loss_with_graph": ("loss", "detached scalar"),
    "differs_each_time": ("determinism", "differ in output 0"),
    "seeds_in_iteration": ("global state", "seeds the generator of torch"),
    "default_dtype_set": ("global state", "the default dtype"),
    "every_other_iteration": ("timed unit", "is other work than iteration 1"),
    "result_kept": ("timed unit", "no operator"),
    "two_steps_in_train": ("stages", "train() gives"),
    "untrained_without_need": ("updates", "weight are trained"),
}
HEALTHY = ("healthy", "healthy_adversaries", "healthy_and_waiting", "healthy_meta_learner")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry((BAD_MODELS,))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def broken_contracts(registry: Registry, name: str) -> dict[str, str]:
    """Contract -> what is said, of all tests of the model."""
    entry = registry.model(name)
    metadata = entry.metadata
    make = import_model(name, str(entry.folder)).Model
    found: dict[str, str] = {}
    for test in metadata.tests:
        case = Case(make, test, "cpu", "tiny", declared=Declared(**declared(metadata, test)))
        found |= {one.contract: " ".join(one.breaches) for one in judge(case) if one.breaches}
    return found


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_breaks_no_contract(registry, name):
    assert broken_contracts(registry, name) == {}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_model_breaks_the_contract_that_is_meant_for_it_and_no_other(registry, name):
    contract, said = PLANTED[name]
    found = broken_contracts(registry, name)
    assert list(found) == [contract], found
    assert said in found[contract]


class Speechless(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("its message cannot be made")


def test_an_error_whose_message_fails_is_told_as_what_it_is_and_the_other_contracts_are_judged(registry):
    make = import_model("healthy", str(registry.model("healthy").folder)).Model

    class Broken(make):
        def eval(self):
            raise Speechless

    verdicts = judge(Case(Broken, "eval", "cpu", "tiny"))
    assert [one.contract for one in verdicts] == [one.name for one in CONTRACTS if "eval" in one.tests]
    told = " ".join([*(text for one in verdicts for text in one.breaches), *(one.not_judged for one in verdicts)])
    assert "raised Speechless" in told and "ended with Speechless" in told and "ValueError" not in told


def test_every_planted_model_is_expected_and_every_contract_has_one():
    assert {folder.name for folder in BAD_MODELS.iterdir() if folder.is_dir()} == {*HEALTHY, *PLANTED}
    assert {contract for contract, _ in PLANTED.values()} == {contract.name for contract in CONTRACTS}
