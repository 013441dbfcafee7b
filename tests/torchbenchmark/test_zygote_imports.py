"""Whether the zygotes of a run import torch's compiler: by the whole suite of a run, by the tests of pairs."""

from pathlib import Path

import pytest

from torchbenchmark.environment import Interpreter
from torchbenchmark.grid import GridOptions
from torchbenchmark.paired.measurement import PairsRequest, plan_pairs
from torchbenchmark.paired.sides import Side
from torchbenchmark.planning import RunRequest, plan_run
from torchbenchmark.records import Build
from torchbenchmark.registry import Registry, load_suite

TRAIN, EVAL = (f"test_{test}[dlrm-cpu-eager-tiny]" for test in ("train", "eval"))


@pytest.fixture
def interpreter() -> Interpreter:
    build = Build(id="2.9.0-0000000", subject="torch", version="2.9.0", python="3.11", interpreter="/usr/bin/python3")
    return Interpreter(build, {}, {"torch": "2.9.0", "numpy": "2.0.0"}, ())


def request(folder: Path, tests: str, **options: object) -> RunRequest:
    path = folder / "suite.yaml"
    path.write_text(f"name: one\ndescription: One model.\nmodels: [dlrm]\ntests: {tests}\npreset: tiny\n")
    return RunRequest(suite=load_suite(str(path)), device="cpu", threads=1, **options)


@pytest.mark.parametrize(
    ("tests", "options", "imported"),
    [
        ("[train, eval]", {}, True),
        ("[train, eval]", {"selection": (EVAL,)}, True),
        ("[train, eval]", {"options": GridOptions(tests=("eval",))}, True),
        ("[eval]", {}, False),
        ("[eval]", {"options": GridOptions(backends=("jit",))}, True),
    ],
)
def test_a_run_imports_it_where_any_test_of_its_suite_does_whichever_are_measured(
    tests, options, imported, interpreter, tmp_path
):
    header = plan_run(request(tmp_path, tests, **options), interpreter, Registry())
    assert header.measuring.dynamo is imported
    same = plan_run(request(tmp_path, "[train, eval]"), interpreter, Registry()).measuring.settings
    assert header.measuring.settings == same, "runs of one build are held against each other whatever this is"


@pytest.mark.parametrize(("test", "imported"), [(TRAIN, True), (EVAL, False)])
def test_pairs_import_it_where_one_of_their_own_tests_does(test, imported, interpreter, tmp_path):
    run = request(tmp_path, "[train, eval]", selection=(test,))
    header = plan_pairs(
        PairsRequest(run, Side("one"), Side("other")), {"base": interpreter, "head": interpreter}, Registry()
    )
    assert header.measuring.dynamo is imported
