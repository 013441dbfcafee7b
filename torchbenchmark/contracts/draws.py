"""Data is made in setup(). An iteration draws only what its metadata says is part of the work: dropout, sampling."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched_here
from torchbenchmark.contracts.wording import counted, listed

# One drop-out by other names: which one torch calls depends on its version, the device and the kind of attention.
DROPOUT = frozenset(
    {
        *("native_dropout", "bernoulli_", "_fused_dropout", "dropout", "_cudnn_rnn"),
        *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"),
        *("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu"),
        *(
            "_scaled_dot_product_fused_attention_overrideable",
            "_efficient_attention_forward",
            "_flash_attention_forward",
        ),
    }
)

AT_WILL = "?"  # behind the name of an operator that some versions of a library use and others do not


def breaches(case: Case) -> list[str]:
    seen = watched_here(case)
    at_will = {name.removesuffix(AT_WILL) for name in case.declared.draws if name.endswith(AT_WILL)}
    declared = set(case.declared.draws) - {name + AT_WILL for name in at_will}
    allowed = declared | at_will | (DROPOUT if declared & DROPOUT else set())
    found = []
    if surplus := {name: number for name, number in seen.drawn.items() if name not in allowed}:
        found.append(
            f"an iteration draws with {counted(surplus)}; make the data in setup(), or declare it: "
            f"`draws: {{{case.test}: [{', '.join(sorted({*case.declared.draws, *surplus}))}]}}`"
        )
    if seen.drawn_on_host:
        found.append(
            f"an iteration draws with {listed(sorted(seen.drawn_on_host))} on the host; make the data in setup()"
        )
    for name in sorted(declared):
        if name not in seen.drawn and not (name in DROPOUT and seen.drawn.keys() & DROPOUT):
            found.append(
                f"metadata declares that an iteration draws with {name}, and none does; take it out of `draws`"
            )
    return found


CONTRACT = Contract("draws", "an iteration makes no random data but what `draws` declares", breaches)
