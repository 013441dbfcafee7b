"""An iteration reads no file, starts no process, opens no connection: their time is not the build's."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched_here
from torchbenchmark.contracts.wording import counted


def breaches(case: Case) -> list[str]:
    seen = watched_here(case)
    mapped = {name: number for operators in seen.operators for name, number in operators.items() if name == "from_file"}
    if accesses := {**seen.files, **mapped}:
        return [f"an iteration reaches outside the process: {counted(accesses)}; read it in setup()"]
    return []


CONTRACT = Contract("files", "an iteration opens no file, process or connection", breaches)
