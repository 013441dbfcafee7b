"""`torchbench ab`, `compare` and `doctor`, as they are called: real processes, real builds, real files."""

import json
import re
import sys
from pathlib import Path

import pytest
from pipeline import write_suite
from slow_build import make_slow_build

from torchbenchmark.paired.pairs_file import read_pairs
from torchbenchmark.paired.sequential import looks_of
from torchbenchmark.records import Status

MISBEHAVING = Path(__file__).parents[1] / "misbehaving_models"
BREAKS_AT_IMPORT = """
import os

if "BREAK_IMPORT" in os.environ:
    raise RuntimeError("broken on purpose")

from torchbenchmark.models.dlrm import Model as Original


class Model(Original):
    pass
"""


def suite_of(folder: Path, *models: str) -> Path:
    return write_suite(folder, list(models))


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.quiet
@pytest.mark.timeout(600)
def test_the_tests_of_the_slowed_operator_are_slower_and_no_others_are(torchbench, tmp_path):
    slow = make_slow_build(tmp_path / "slow", operator="embedding_bag", inference=80)
    suite = suite_of(tmp_path, "dlrm", "soft_actor_critic")
    ended = torchbench(
        "ab", sys.executable, slow, "--suite", suite, "--pairs", 7, "--seed", 1, "--threads", 1, "--budget", 0.1,
        "--json", "ab.json", "--markdown", "ab.md", XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = json.loads((tmp_path / "ab.json").read_text())
    # On a busy machine one channel of a slowed test may not be decided by seven pairs; a test is slower by any of them.
    slower = {effect["test"] for effect in found["effects"] if effect["verdict"] == "slower"}
    tests = {effect["test"] for effect in found["effects"]}
    assert len(tests) == 2 and slower == {test for test in tests if "dlrm" in test} != set(), ended.stdout
    assert not any(effect["verdict"] == "faster" for effect in found["effects"]), ended.stdout
    changed = {
        count["test"] for count in found["counts"] if count["channel"] == "operators" and count["verdict"] == "changed"
    }
    assert all("dlrm" in test for test in changed)
    assert "no A/A table of this class" in found["prior"] and "no A/A table" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("slower: ")
    text = (tmp_path / "ab.md").read_text()
    assert text.startswith("**`slower: ") and "| `test_eval[dlrm-cpu-eager-tiny]` |" in text
    orders = [pair.order for pair in read_pairs(tmp_path / "pairs.jsonl").pairs]
    assert {("base", "head"), ("head", "base")} == set(orders), "the coin falls on both sides in 14 throws"


@pytest.fixture
def models(tmp_path) -> Path:
    folder = tmp_path / "models" / "breaks_at_import"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(BREAKS_AT_IMPORT)
    source = Path(__file__).parents[2] / "torchbenchmark" / "models" / "dlrm" / "metadata.yaml"
    (folder / "metadata.yaml").write_text(source.read_text())
    return folder.parent


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_fails_on_the_side_of_head_is_loud_and_its_failures_are_measured_three_times(torchbench, tmp_path, models):
    suite = suite_of(tmp_path, "raises", "healthy", "breaks_at_import")
    sides = (f"{sys.executable}@env.WELL_BEHAVED=raises", f"{sys.executable}@env.BREAK_IMPORT=1")
    options = ("--suite", suite, "--models", MISBEHAVING, "--models", models, "--pairs", 5, "--budget", 0.02)
    ended = torchbench("ab", *sides, *options, "--json", "ab.json", XDG_CACHE_HOME=str(tmp_path))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = json.loads((tmp_path / "ab.json").read_text())
    outcomes = {outcome["test"]: outcome for outcome in found["tests"]}
    raises, healthy, broken = (
        outcomes[f"test_eval[{model}-cpu-eager-tiny]"] for model in ("raises", "healthy", "breaks_at_import")
    )
    assert found["verdict"] == raises["verdict"] == broken["verdict"] == "newly failing"
    assert healthy["verdict"] == "ok"
    assert raises["reason"].startswith("head: error in 3 of 3 processes: ") and "on purpose" in raises["reason"]
    assert broken["reason"].startswith("head: error in 3 of 3 processes: ") and "broken on purpose" in broken["reason"]
    assert plain(ended.stdout).endswith(
        "newly failing: test_eval[raises-cpu-eager-tiny], test_eval[breaks_at_import-cpu-eager-tiny]"
    ) or "newly failing: " in plain(ended.stdout)
    pairs = read_pairs(tmp_path / "pairs.jsonl")
    of_raises = pairs.of_test("test_eval[raises-cpu-eager-tiny]")
    assert [pair.head.status for pair in of_raises] == [Status.ERROR] * 3
    assert {pair.base.status for pair in of_raises} == {Status.OK}
    assert len(pairs.of_test("test_eval[healthy-cpu-eager-tiny]")) == 5

    again = torchbench("compare", "pairs.jsonl", XDG_CACHE_HOME=str(tmp_path))
    assert again.returncode == 1
    assert again.stdout.splitlines()[-1] == ended.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_model_that_imports_on_neither_side_is_failing_on_both_and_is_not_called_fixed(torchbench, tmp_path, models):
    suite = suite_of(tmp_path, "breaks_at_import")
    sides = (f"{sys.executable}@env.BREAK_IMPORT=1", f"{sys.executable}@env.BREAK_IMPORT=2")
    ended = torchbench(
        "ab", *sides, "--suite", suite, "--models", models, "--pairs", 5, "--json", "ab.json",
        XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    assert ended.returncode == 2, ended.stdout + ended.stderr
    (outcome,) = json.loads((tmp_path / "ab.json").read_text())["tests"]
    assert outcome["verdict"] == "failing"
    assert outcome["reason"].count("error in 3 of 3 processes: the model does not import") == 2
    pairs = read_pairs(tmp_path / "pairs.jsonl").pairs
    assert [(pair.round, pair.base.status, pair.head.status) for pair in pairs] == [
        (number, Status.ERROR, Status.ERROR) for number in (1, 2, 3)
    ]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_was_asked_for_and_left_out_is_told_wherever_the_comparison_is_read(torchbench, tmp_path):
    suite = suite_of(tmp_path, "dlrm", "resnet18")
    ended = torchbench(
        "ab", sys.executable, f"{sys.executable}@backend=jit", "--suite", suite, "--test", "eval", "--pairs", 2,
        "--budget", 0.02, "--json", "new/ab.json", "--markdown", "new/ab.md", XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    told = "left out: test_eval[dlrm-cpu-eager-tiny]: head: its module is annotated with Sequence"
    assert told in (tmp_path / "new" / "ab.md").read_text()
    assert ended.stdout.count(told) == 2, "before it is measured, and beside the table"
    found = json.loads((tmp_path / "new" / "ab.json").read_text())
    left_out = [test["test"] for test in found["tests"] if test["verdict"] == "left out"]
    assert left_out == ["test_eval[dlrm-cpu-eager-tiny]"]
    assert found["head"]["asked"].endswith("@backend=jit") and found["class"].startswith("cpu-")


BEGUN = ("--models", MISBEHAVING, "--pairs", 2, "--budget", 0.02, "--seed", 5)
SIDES = (sys.executable, sys.executable)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, torchbench_in):
    """A whole comparison: its folder, and the lines of its file."""
    folder = tmp_path_factory.mktemp("begun")
    cache = str(folder)
    whole = torchbench_in(folder, "ab", *SIDES, "--suite", suite_of(folder, "healthy"), *BEGUN, XDG_CACHE_HOME=cache)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    return folder, (folder / "pairs.jsonl").read_bytes().splitlines(keepends=True)


def go_on(begun, torchbench_in, file, *options, sides=SIDES):
    """The command again, with the comparison as `file` has it."""
    folder, _ = begun
    (folder / "pairs.jsonl").write_bytes(file)
    return torchbench_in(folder, "ab", *sides, "--suite", folder / "suite.yaml", *options, XDG_CACHE_HOME=str(folder))


@pytest.mark.timeout(300)
def test_a_comparison_that_was_killed_goes_on_where_it_was(begun, torchbench_in):
    folder, lines = begun
    torn = b"".join(lines[:2]) + lines[2][:40]
    taken = go_on(begun, torchbench_in, torn, *BEGUN)
    assert taken.returncode == 2 and "exists already; go on with --resume" in plain(taken.stderr)
    few = ("--models", MISBEHAVING, "--resume")  # those that are left out are as they were
    ended = go_on(begun, torchbench_in, torn, *few)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    file = folder / "pairs.jsonl"
    assert [(pair.round, pair.index) for pair in read_pairs(file).pairs] == [(1, 0), (2, 0)]
    assert file.read_bytes().startswith(lines[0] + lines[1]), "what was measured stays"
    assert not list(folder.glob("*.scratch")) and not list(folder.glob(".*.lock"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--pairs", 4), "was begun with --pairs 2, this is 4; leave --pairs out"),
        pytest.param(("--seed", 6), "was begun with --seed 5, this is 6; leave --seed out", marks=pytest.mark.long),
        pytest.param(("--budget", 0.03), "was begun with --budget 0.02, this is 0.03", marks=pytest.mark.long),
        pytest.param(("--sequential",), "was begun with --sequential False, this is True", marks=pytest.mark.long),
        pytest.param((), "was begun with head", marks=pytest.mark.long),
    ],
)
def test_a_comparison_goes_on_as_it_was_begun_or_not_at_all(begun, torchbench_in, change, said):
    sides = SIDES if change else (sys.executable, f"{sys.executable}@env.X=1")
    _, lines = begun
    other = go_on(begun, torchbench_in, b"".join(lines[:2]), *BEGUN, *change, "--resume", sides=sides)
    assert other.returncode == 2 and said in plain(other.stderr), other.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        (b'"class":"cpu-', b'"class":"other-cpu-', "was begun on class other-cpu-"),
        pytest.param(b'"fingerprint":"', b'"fingerprint":"0', "was begun on environment 0", marks=pytest.mark.long),
        pytest.param(
            b'"hash":"',
            b'"hash":"0',
            "test_eval[healthy-cpu-eager-tiny] is not the workload it was",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_comparison_goes_on_where_it_was_begun_or_not_at_all(begun, torchbench_in, here, there, said):
    _, lines = begun
    moved = go_on(begun, torchbench_in, lines[0].replace(here, there) + lines[1], *BEGUN, "--resume")
    assert moved.returncode == 2 and said in plain(moved.stderr), moved.stdout + moved.stderr


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_test_that_is_decided_at_a_look_leaves_the_later_rounds(torchbench, tmp_path):
    suite = suite_of(tmp_path, "resnet18")
    ended = torchbench(
        "ab", sys.executable, f"{sys.executable}@batch_size=64", "--suite", suite, "--pairs", 24, "--sequential",
        "--threads", 1, "--budget", 0.1, "--json", "ab.json", XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    pairs = read_pairs(tmp_path / "pairs.jsonl")
    rounds = max(pair.round for pair in pairs.pairs)
    assert rounds in looks_of(24) and rounds < 24
    found = json.loads((tmp_path / "ab.json").read_text())
    assert found["method"].endswith("looked at after 6, 9, 12, 16, 24 pairs")
    assert found["tests"][0]["head_test"] == "test_eval[resnet18-cpu-eager-bs64-tiny]"
    again = torchbench("compare", "pairs.jsonl", XDG_CACHE_HOME=str(tmp_path))
    assert "looked at after 6, 9, 12, 16, 24 pairs" in again.stdout
    assert again.stdout.splitlines()[-1] == ended.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_table_of_an_a_a_study_is_what_ab_judges_by(torchbench, tmp_path):
    suite = suite_of(tmp_path, "dlrm", "soft_actor_critic", "resnet18")
    study = torchbench(
        "doctor", "--aa", "--suite", suite, "--pairs", 3, "--processes", 2, "--threads", 1, "--budget", 0.05,
        XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    assert study.returncode == 0, study.stdout + study.stderr
    assert "every exact count is the same in all processes" in study.stdout
    (written,) = (tmp_path / "torchbench" / "noise").glob("cpu-*.json")
    table = json.loads(written.read_text())
    rows = {(row["test"], row["channel"]) for row in table["series"]}
    assert ("test_eval[dlrm-cpu-eager-tiny]", "cpu_time") in rows
    assert all(
        row["sd_process"] is not None and row["pair_sd"] > 0 for row in table["series"] if row["channel"] == "cpu_time"
    )
    assert all(0 <= row["slope"] <= 0.95 for row in table["channels"] if row["slope"] is not None), "as on the CPU"
    judged = torchbench("compare", "aa.jsonl", XDG_CACHE_HOME=str(tmp_path))
    assert re.search(
        r"variances known before: A/A table of cpu-\S+, \d{4}-\d\d-\d\d, 3 pairs of 3 tests", judged.stdout
    )
    refused = torchbench("doctor", "--aa", "--from", "none.jsonl")
    assert refused.returncode == 2 and "none.jsonl: cannot be read" in plain(refused.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pairs", 5), "--pairs: only with --aa"),
        (("--from", "aa.jsonl"), "--from: only with --aa"),
        (("--aa", "--from", "aa.jsonl", "--tests", "dlrm"), "--tests: not with --from"),
        (("--aa", "--table", f"{__file__}/table.json"), "table.json: cannot be written"),
        (("--aa", "--table", "/dev/null"), "/dev/null: is no plain file"),
    ],
)
def test_the_doctor_ignores_no_option(torchbench, arguments, said):
    ended = torchbench("doctor", *arguments)
    assert ended.returncode == 2 and said in plain(ended.stderr), ended.stdout + ended.stderr
    assert "round 1" not in ended.stdout


def test_the_doctor_says_what_makes_this_machine_noisy(torchbench):
    ended = torchbench("doctor")
    assert ended.returncode == 0, ended.stderr
    assert "host probe" in ended.stdout and "make this machine noisy" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("X", "X@colour=red"), "@colour is no override"),
        (("/no/such/python", "/no/such/python"), "/no/such/python"),
        ((sys.executable, sys.executable, "--level", "1.5"), "--level 1.5"),
        ((sys.executable, sys.executable, "--beyond", "2"), "--beyond 2"),
        ((sys.executable, sys.executable, "--channel", "operators"), "operators: is compared exactly anyway"),
        pytest.param(
            (sys.executable, sys.executable, "--channel", "lateny"), "lateny: is no channel", marks=pytest.mark.long
        ),
        ((sys.executable, sys.executable, "--channel", "gpu_time"), "gpu_time: needs a GPU; those that can be judged"),
        ((sys.executable, sys.executable, "--json", f"{__file__}/ab.json"), "ab.json: cannot be written"),
        ((sys.executable, sys.executable, "--markdown", Path(__file__).parent), "e2e: cannot be written"),
        pytest.param(
            (sys.executable, f"{sys.executable}@backend=cudagraphs"), "CUDA graphs need a GPU", marks=pytest.mark.long
        ),
        ((sys.executable, f"{sys.executable}@precision=fp12"), "head: precision 'fp12' is not one of"),
        pytest.param(
            (f"{sys.executable}@batch_size=0", sys.executable),
            "base: @batch_size=0: a whole number",
            marks=pytest.mark.long,
        ),
        ((sys.executable, sys.executable, "--tests", "no_model"), "no_model"),
        (("git:/no/such/repository", "X", "--out", "/dev/null"), "/dev/null: is no plain file"),
        (("git:/no/such/repository", "X", "--json", "/dev/null/ab.json"), "ab.json: cannot be written"),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_line(torchbench, arguments, said):
    ended = torchbench("ab", *arguments)
    assert ended.returncode == 2, ended.stdout
    assert plain(ended.stderr).count(said) == 1 and len(ended.stderr.strip().splitlines()) <= 3, ended.stderr
    assert "round 1" not in ended.stdout, "it is told before anything is measured"
