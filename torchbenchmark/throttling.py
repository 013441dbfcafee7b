"""What is done with a measurement during which the GPU was throttled: it is thrown away once, then kept and marked."""

from collections.abc import Callable

from torchbenchmark import gpu_watch
from torchbenchmark.records import GpuState

REPEATED_SHARE = 0.1  # of a run's processes may be measured again: a GPU that is always hot must not double a night
LEAST_REPEATED = 3

Turn = tuple[int, str, int]  # round, test, index of the process


class Throttling:
    """Decides for one run. `note(text)` tells the user."""

    def __init__(self, processes: int, note: Callable[[str], None]) -> None:
        self.left = max(LEAST_REPEATED, int(REPEATED_SHARE * processes))
        self.note = note
        self.repeated: dict[Turn, list[str]] = {}  # what held the GPU back the first time

    def throws_away(self, turn: Turn, gpu: GpuState | None) -> bool:
        """True, and noted, if this turn is to be measured again later in its round."""
        reasons = gpu_watch.faults(gpu)
        if not reasons or turn in self.repeated or self.left == 0:
            return False
        self.left -= 1
        self.repeated[turn] = reasons
        self.note(f"{turn[1]}: the GPU was throttled ({', '.join(reasons)}): measured again at the end of the round")
        return True

    def marks(self, turn: Turn, gpu: GpuState | None) -> list[str]:
        """What the record of a process says of it."""
        notes = []
        if turn in self.repeated:
            notes.append(f"measured again: the first time the GPU was throttled ({', '.join(self.repeated[turn])})")
        if reasons := gpu_watch.faults(gpu):
            notes.append(f"the GPU was throttled while this was measured ({', '.join(reasons)})")
        return notes
