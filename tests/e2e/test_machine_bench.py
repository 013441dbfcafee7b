"""The bench of this machine: pairs and processes as they are asked for, and none twice after a kill."""

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS, processes_with_variable, write_suite
from slow_build import make_slow_build

from baselines.confirming.bench import PairsWanted
from bot.confirming.bench import MachineBench, OtherClass
from bot.errors import BotError
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.paired.pairs_file import read_pairs
from torchbenchmark.planning import RunRequest
from torchbenchmark.records import Status, read_run
from torchbenchmark.registry import load_suite

DLRM, HEALTHY, RAISES = (f"test_eval[{model}-cpu-eager-tiny]" for model in ("dlrm", "healthy", "raises"))
VALUES_OF_BOTH = {"latency", "cpu_time", "throughput", "operators"}


class TwoBuilds:
    """This interpreter, and one in which dlrm dispatches more operators."""

    def __init__(self, pythons: dict[str, str]) -> None:
        self.pythons = pythons

    def interpreter(self, build: str) -> Path | None:
        return Path(self.pythons[build]) if build in self.pythons else None

    def why_not(self, build: str) -> str:
        return "it was removed"


def bench_in(folder: Path, pythons: dict[str, str]) -> MachineBench:
    request = RunRequest(
        suite=load_suite(str(folder / "suite.yaml")),
        device="cpu",
        threads=1,
        budget_s=0.05,
        model_folders=(MISBEHAVING_MODELS,),
    )
    return MachineBench(request, TwoBuilds(pythons), folder / "asks")


@pytest.fixture(scope="module")
def pythons(tmp_path_factory) -> dict[str, str]:
    slow = make_slow_build(tmp_path_factory.mktemp("slow"), operator="embedding_bag", inference=3)
    return {inspect_interpreter(python).build.id: str(python) for python in (Path(sys.executable), slow)}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # no A/A table of this machine
    write_suite(tmp_path, ["dlrm", "healthy", "raises"])
    return tmp_path


def test_pairs_share_the_rounds_of_their_builds_and_leave_when_they_are_decided(folder, pythons):
    usual, slow = pythons
    bench = bench_in(folder, pythons)
    wanted = [PairsWanted(HEALTHY, usual, slow), PairsWanted(DLRM, usual, slow), PairsWanted(DLRM, usual, usual)]
    asked = []

    def decided(so_far):
        asked.append([len(pairs) for pairs in so_far])
        return {0}

    found = bench.pairs(wanted, 2, decided)
    assert asked == [[1, 1, 0], [1, 2, 0], [1, 2, 1], [1, 2, 2]]
    assert [len(pairs) for pairs in found] == [1, 2, 2]
    assert all(pair.keys() >= VALUES_OF_BOTH and "host_probe" not in pair for pairs in found for pair in pairs)
    assert {pair["operators"] for pair in found[2]} == {0.0}
    assert all(pair["operators"] > math.log(1.01) for pair in found[1])
    first, second = (read_pairs(folder / "asks" / f"001-pairs-{number}.jsonl") for number in (1, 2))
    assert {pair.base.zygote for pair in first.pairs if pair.round == 1} == {first.pairs[0].base.zygote}
    assert {pair.test for pair in second.pairs} == {DLRM}
    assert bench.processes_used == 2 * 5

    lines, first_time = measured_lines(folder), list(asked)
    asked.clear()
    again = bench_in(folder, pythons)
    assert again.pairs(wanted, 2, decided) == found and asked == first_time, "as if it were measured now"
    assert measured_lines(folder) == lines and again.processes_used == 2 * 5

    other = bench_in(folder, pythons)
    with pytest.raises(BotError, match=r"001\.json: was begun before a kill, and asked for something else; remove"):
        other.pairs(wanted[:2], 2, decided)
    file = folder / "asks" / "001-pairs-1.jsonl"
    file.write_text(file.read_text().replace('"class":"cpu-', '"class":"other-cpu-', 1))
    with pytest.raises(BotError, match=r"was begun on class other-cpu-.*; remove .*asks to measure anew"):
        bench_in(folder, pythons).pairs(wanted, 2, decided)


@pytest.mark.long
def test_a_test_that_fails_on_one_side_has_no_pairs_and_no_values(folder, pythons):
    usual, _ = pythons
    bench = bench_in(folder, pythons)
    found = bench.pairs([PairsWanted(RAISES, usual, usual)], 4, lambda so_far: ())
    assert found == [()]
    assert bench.processes_used == 2 * 3, "three failures are believed"
    values = bench.again([RAISES, HEALTHY], usual, 2)
    assert list(values) == [HEALTHY] and values[HEALTHY].keys() >= VALUES_OF_BOTH
    assert {len(series) for series in values[HEALTHY].values()} == {2}
    assert bench.processes_used == 2 * 3 + 2 + 1
    run = read_run(folder / "asks" / "002-run.jsonl")
    (record,) = [record for record in run.records if record.test == HEALTHY]
    assert len({process.zygote for process in record.processes}) == 2


@pytest.mark.long
def test_a_test_that_fails_is_measured_one_by_one_as_often_as_any_other_and_not_twice_after_a_kill(folder, pythons):
    usual, _ = pythons
    bench = bench_in(folder, pythons)
    found = bench.one_by_one([RAISES, HEALTHY], usual, 2)
    assert [(one.status, "on purpose" in one.reason) for one in found[RAISES]] == [(Status.ERROR, True)] * 2
    assert [one.status for one in found[HEALTHY]] == [Status.OK] * 2 and found[RAISES][0].values == {}
    assert len({one.values["operators"] for one in found[HEALTHY]}) == 1
    assert bench.processes_used == 2 * 2
    (folder / "asks" / "001-run-2.jsonl").unlink()  # as if it had been killed before the second
    first = (folder / "asks" / "001-run-1.jsonl").read_bytes()
    again = bench_in(folder, pythons)
    assert [one.status for one in again.one_by_one([RAISES, HEALTHY], usual, 2)[RAISES]] == [Status.ERROR] * 2
    assert (folder / "asks" / "001-run-1.jsonl").read_bytes() == first and again.processes_used == 2 * 2


def test_what_cannot_be_measured_is_told_before_anything_is(folder, pythons):
    usual, _ = pythons
    bench = bench_in(folder, pythons)
    assert bench.has(usual) and not bench.has("2.0-gone")
    twice = [PairsWanted(DLRM, usual, usual)] * 2
    for said, ask in (
        ("runner 1 is asked for", lambda: bench.pairs([], 2, lambda so_far: (), runner=1)),
        ("are asked for twice at once", lambda: bench.pairs(twice, 2, lambda so_far: ())),
        ("build 2.0-gone cannot be measured again: it was removed", lambda: bench.again([DLRM], "2.0-gone", 1)),
    ):
        with pytest.raises(BotError, match=said):
            ask()
    elsewhere = bench_in(folder, pythons)
    elsewhere.machine_class, elsewhere.folder = "cpu-of-the-night", folder / "elsewhere"
    with pytest.raises(OtherClass, match=r"this machine is of class cpu-.*, and the night of class cpu-of-the-night"):
        elsewhere.pairs([PairsWanted(DLRM, usual, usual)], 2, lambda so_far: ())
    assert not [path for name in ("asks", "elsewhere") for path in (folder / name).glob("*.jsonl")]


ROUNDS = 2
ASKS = f"""
import json, sys
from pathlib import Path

sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_machine_bench import DLRM, HEALTHY, ROUNDS, PairsWanted, bench_in

folder, pythons = Path(sys.argv[1]), json.loads(sys.argv[2])
usual, slow = pythons
bench, asked = bench_in(folder, pythons), []

def decided(so_far):
    asked.append([len(pairs) for pairs in so_far])
    return [0] if asked[-1] == [1, 1, 0] else []  # after this round only: a bench remembers who has left

wanted = [PairsWanted(HEALTHY, usual, usual), PairsWanted(DLRM, usual, usual), PairsWanted(DLRM, usual, slow)]
found = bench.pairs(wanted, ROUNDS, decided)
values = bench.again([DLRM], slow, 2)
print(json.dumps({{"asked": asked, "found": found, "values": values, "used": bench.processes_used}}))
"""


def measured_lines(folder: Path) -> list[str]:
    """What stands whole in the files of the asks, headers aside."""
    lines = []
    for path in sorted((folder / "asks").glob("*.jsonl*")):
        if path.is_file():
            lines += path.read_text().split("\n")[:-1]
    return [line for line in lines if json.loads(line)["kind"] in ("pair", "measured")]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_bench_that_is_killed_measures_nothing_twice_and_asks_as_if_it_had_not_been(folder, pythons, kills):
    command = [sys.executable, "-c", ASKS, str(folder), json.dumps(pythons)]
    moments = random.Random()  # any moment must do, so none is chosen
    for _ in range(kills):
        before = measured_lines(folder)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate(timeout=moments.uniform(3.0, 25.0))
            assert process.returncode == 0, errors
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        after = measured_lines(folder)
        pairs = [line for line in before if '"kind":"pair"' in line]
        assert set(pairs) <= set(after), "something that was measured is gone"
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["asked"] == [[1, 1, 0], [1, 2, 0], [1, 2, 1], [1, 2, 2]]
    assert [len(pairs) for pairs in found["found"]] == [1, 2, 2]
    assert {len(series) for series in found["values"][DLRM].values()} == {2}
    assert found["used"] == 2 * (1 + 2 + 2) + 2, "what was measured before a kill counts, and once"
    for run in (folder / "asks").glob("*-pairs-*.jsonl"):
        turns = [(pair.test, pair.round) for pair in read_pairs(run).pairs]
        assert len(turns) == len(set(turns))
        assert processes_with_variable("TORCHBENCH_RUN", read_pairs(run).header.run) == []
