"""What an instance has taken is given back when it is gone: nothing of it stays in the process."""

import functools
import gc
import sys
import types

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.held import held_by
from torchbenchmark.contracts.wording import listed
from torchbenchmark.model import as_tensors

ITERATIONS = 2


def breaches(case: Case) -> list[str]:
    if case.device == "cuda":
        return _on_gpu(case)
    gc.freeze()  # only what is made from here on is looked at
    try:
        storages = _live(case)
        gc.collect()
        if not all(storage.expired() for storage in storages.values()):
            _clear_caches_of_libraries()
            gc.collect()
        alive = sorted(path for path, storage in storages.items() if not storage.expired())
    finally:
        gc.unfreeze()
    if alive:
        return [
            f"of an instance that is gone there is still in memory: {listed(alive)}; keep nothing of it in the class "
            "or in globals"
        ]
    return []


def _live(case: Case) -> dict[str, StorageWeakRef]:
    """References, to what an instance has after some iterations, that keep nothing alive."""
    model = case.build()
    outputs: tuple[torch.Tensor, ...] = ()
    for _ in range(ITERATIONS):
        outputs = model.invoke()
    held = held_by(model)
    tensors = {
        **held.tensors,
        **{
            f"the gradient of {path}": one.grad
            for path, one in held.tensors.items()
            if one.is_leaf and one.grad is not None
        },
        **{
            f"the state of {path}"[:80]: value
            for path, optimizer in held.optimizers.items()
            for state in optimizer.state.values()
            for value in as_tensors(state)
        },
        **{f"output {number}": one for number, one in enumerate(as_tensors(outputs))},
    }
    return {path: StorageWeakRef(one.untyped_storage()) for path, one in tensors.items() if one.layout == torch.strided}


def _clear_caches_of_libraries() -> None:
    """What functools.lru_cache keeps for a library is bounded, and none of the model's: torch.ao keeps networks so."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.") and isinstance(module, types.ModuleType):
            for value in list(vars(module).values()):
                # Not isinstance(), which asks a deprecated name for its class, and is warned.
                if type(value) is functools._lru_cache_wrapper:
                    value.cache_clear()


def _on_gpu(case: Case) -> list[str]:
    allocated = []
    for _ in range(2):  # what the first one leaves is the libraries' own
        storages = _live(case)
        del storages
        _clear_caches_of_libraries()
        gc.collect()
        torch.cuda.synchronize()
        allocated.append(torch.cuda.memory_allocated())
    if allocated[1] > allocated[0]:
        kept = (allocated[1] - allocated[0]) / 2**20
        return [f"an instance that is gone leaves {kept:.1f} MiB of the GPU allocated; keep nothing of it in the class"]
    return []


CONTRACT = Contract("memory", "all memory of an instance is free when it is gone", breaches, presumes=("independence",))
