"""What is built is built once, in setup(): an iteration that builds a network measures its construction."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched_here
from torchbenchmark.contracts.wording import counted


def breaches(case: Case) -> list[str]:
    if built := watched_here(case).built:
        return [f"an iteration builds {counted(built)}; build it once, in setup()"]
    return []


CONTRACT = Contract("nothing built", "an iteration builds no network, no parameter and no optimizer", breaches)
