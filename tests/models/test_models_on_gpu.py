"""The contracts where only a GPU can show them: at the size `full`, with no wait for the device and no copy in an
iteration, and no memory that stays."""

import pytest
import torch
from models.contract_cases import case_of, what_is_broken

from torchbenchmark.registry import Registry

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]


@pytest.mark.parametrize("name", Registry().models)
@pytest.mark.parametrize("test", ["train", "eval"])
@pytest.mark.parametrize("preset", ["tiny", "full"])
def test_a_model_keeps_its_contracts_on_a_gpu(name, test, preset):
    assert what_is_broken(case_of(name, test, "cuda", preset)) == {}
