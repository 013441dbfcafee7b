"""What a model promises, one file a contract; needs only the standard library, torch and numpy.

A contract is given a way to build the model and what its metadata declares; it answers with a sentence for each breach.
"""

from torchbenchmark.contracts import (
    batch,
    copies,
    determinism,
    draws,
    files,
    global_state,
    gradients,
    independence,
    inference,
    interface,
    loss,
    memory,
    nothing_built,
    places,
    replaceable,
    same_objects,
    stages,
    timed_unit,
    updates,
    waits,
)
from torchbenchmark.contracts.contract import Contract

# In this order: what a contract presumes comes before it.
CONTRACTS: tuple[Contract, ...] = tuple(
    module.CONTRACT
    for module in (
        *(interface, places, independence, memory, global_state),
        *(nothing_built, same_objects, replaceable, batch, timed_unit),
        *(files, draws, copies, waits),
        *(updates, gradients, loss, determinism, stages, inference),
    )
)
