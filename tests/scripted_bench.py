"""A bench that answers what a test tells it to, and the times that go with it."""

import math

from baselines.confirming.bench import Ended
from torchbenchmark.records import Status

OTHERS = [f"test_eval[m{number}-cpu-eager]" for number in range(6)]


class Scripted:
    """A machine on which the head of a pair is slower by what `effects` says of its test."""

    runners = 1

    def __init__(self, effects, gone=(), ends=None):
        self.effects, self.gone, self.asked, self.ends = effects, gone, [], ends or {}

    def has(self, build, runner=0):
        return build not in self.gone

    def pairs(self, wanted, rounds, decided, runner=0):
        self.asked.append([(one.test, one.base, one.head) for one in wanted])
        found = [[] for _ in wanted]
        for number in range(rounds):
            done = decided(found)
            for index, one in enumerate(wanted):
                if index not in done:
                    noise = 0.002 * math.sin(7.0 * number + index)
                    found[index].append({"cpu_time": self.effects.get(one.test, 0.0) + noise})
        return found

    def again(self, tests, build, processes):
        raise AssertionError("no environment is suspected here")

    def one_by_one(self, tests, build, processes):
        """How the processes of a build end: `ends` of its last digits, a status or the operators each."""
        self.asked.append([(test, build) for test in tests])
        return {test: [_end(one) for one in self.ends[build[-2:]]] for test in tests}


def _end(one):
    return Ended(one) if isinstance(one, Status) else Ended(Status.OK, values={"operators": float(one)})


def values(level, day):
    return [level * (1 + 0.002 * math.sin(3.0 * day + process)) for process in range(3)]
