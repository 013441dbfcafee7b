"""An iteration reads no file, starts no process, opens no connection, starts no thread and does
not sleep: their time is not the build's."""

from torchbenchmark.contracts.contract import Case, Contract
from torchbenchmark.contracts.watching import watched_here
from torchbenchmark.contracts.wording import counted


def breaches(case: Case) -> list[str]:
    seen = watched_here(case)
    mapped = {name: number for operators in seen.operators for name, number in operators.items() if name == "from_file"}
    if accesses := {**seen.files, **mapped}:
        return [f"an iteration reaches outside the process: {counted(accesses)}; read it in setup()"]
    if seen.idle:
        return [
            f"an iteration sleeps or works out of sight: {counted(seen.idle)}; do all work in the thread that calls it"
        ]
    return []


CONTRACT = Contract("files", "an iteration opens no file, process, connection or thread, and does not sleep", breaches)
