"""`torchbench score` on real files, through the real command line."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from score.cli import register
from score.inputs import find_reference, reference_names
from torchbenchmark.formats import read_latencies
from torchbenchmark.terminal import new_app, run_app

ALEXNET_CPU = "test_eval[alexnet-cpu-eager]"
ALEXNET_CUDA = "test_eval[alexnet-cuda-eager]"
BERT_CUDA = "test_eval[hf_Bert-cuda-eager]"
REFERENCE = {ALEXNET_CPU: 1.0, ALEXNET_CUDA: 0.5, BERT_CUDA: 0.25}

RUN_HEADER = {
    "kind": "run",
    "schema": 1,
    "run": "r1",
    "suite": "core",
    "class": "xeon-x8",
    "device": "cpu",
    "started": "2026-01-02T03:04:05Z",
    "seed": 1,
    "rounds": 1,
    "processes": 1,
    "measuring": {
        "budget_s": 1,
        "warmup_cap_s": 1,
        "min_unit_s": 0.01,
        "min_samples": 3,
        "threads": 1,
        "timeout_s": 60,
    },
    "build": {"id": "b1", "subject": "torch", "version": "2.9.0", "python": "3.11", "interpreter": "/usr/bin/python"},
    "environment": {"fingerprint": "f", "facts": {}},
    "harness": "h",
}
WORKLOAD = {"version": "1", "hash": "abc"}


def pytest_json(path: Path, latencies: dict[str, float]) -> Path:
    entries = [{"name": test, "stats": {"mean": seconds}} for test, seconds in latencies.items()]
    path.write_text(json.dumps({"benchmarks": entries}))
    return path


def records_file(path: Path, test: str, samples: list[float]) -> Path:
    channel = {"unit": "s", "samples": samples, "median": samples[0], "mean": samples[0], "p20": samples[0]}
    process = {
        "round": 0,
        "index": 0,
        "zygote": "z",
        "start_method": "fork",
        "status": "ok",
        "started": "2026-01-02T03:04:05Z",
        "seconds": 1.0,
        "channels": {"latency": channel},
    }
    record = {
        "kind": "record",
        "schema": 1,
        "run": "r1",
        "test": test,
        "workload": WORKLOAD,
        "status": "ok",
        "ended": "2026-01-02T03:05:05Z",
        "processes": [process],
    }
    header = RUN_HEADER | {"plan": [{"test": test, "workload": WORKLOAD}]}
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in (header, record)).encode()))
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return pytest_json(tmp_path / "reference.json", REFERENCE)


@pytest.fixture
def torchbench(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line as the program does: exit code, stdout, stderr."""
    app = new_app("tests")
    app.callback()(lambda: None)  # without it typer takes the only command for the whole program
    register(app)

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leave:
            run_app(app, [str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return leave.value.code, captured.out, captured.err

    return call


def test_a_model_of_ones_own_is_scored_with_the_folder_that_it_is_in(torchbench, tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "__init__.py").touch()
    (tmp_path / "models" / "mine" / "metadata.yaml").write_text(
        "{description: d, category: SPEECH, domain: SYNTHESIS, workload_version: '1'}"
    )
    results = pytest_json(tmp_path / "mine.json", {"test_eval[mine-cpu-eager]": 1.0})
    code, out, _ = torchbench("score", results, "--reference", results, "--json", "--models", tmp_path / "models")
    assert code == 0 and json.loads(out)["total"] == pytest.approx(1000)
    code, _, err = torchbench("score", results, "--reference", results)
    assert code == 2 and "model mine has no category and domain" in err and "--models DIR" in err


def test_a_cpu_and_a_cuda_run_of_different_formats_are_joined(torchbench, reference: Path, tmp_path: Path) -> None:
    cpu = records_file(tmp_path / "cpu.jsonl.gz", ALEXNET_CPU, [1.5, 2.5])
    cuda = pytest_json(tmp_path / "cuda.json", {ALEXNET_CUDA: 0.5, BERT_CUDA: 0.25})
    code, out, _ = torchbench("score", cpu, cuda, "--reference", reference, "--json")
    answer = json.loads(out)
    assert code == 0
    # alexnet weighs half, and its CPU test half of that
    assert answer["total"] == pytest.approx(1000 * 2 ** (-1 / 4), rel=1e-12)
    assert answer["coverage"] == {
        "fraction": 1.0,
        "scored": 3,
        "reference": 3,
        "missing": [],
        "extra": [],
        "jit-without-eager": [],
    }


def test_the_same_test_in_two_files_is_an_error_that_names_both(torchbench, reference: Path, tmp_path: Path) -> None:
    first = pytest_json(tmp_path / "first.json", {ALEXNET_CPU: 1.0})
    second = pytest_json(tmp_path / "second.json", {ALEXNET_CPU: 1.0})
    code, out, err = torchbench("score", first, second, "--reference", reference)
    assert (code, out) == (2, "")
    assert ALEXNET_CPU in err and "first.json" in err and "second.json" in err


def test_the_published_reference_is_found_by_its_name_and_scores_1000(torchbench, tmp_path: Path) -> None:
    code, out, _ = torchbench("score", find_reference("v1.1"), "--reference", "v1.1", "--json", "--strict")
    assert code == 0
    assert json.loads(out)["total"] == 1000.0


@pytest.mark.parametrize("name", reference_names())
def test_a_built_in_reference_scores_1000_against_itself_and_says_where_it_is_from(torchbench, name: str) -> None:
    code, out, _ = torchbench("score", find_reference(name), "--reference", name, "--json", "--strict")
    assert code == 0 and json.loads(out)["total"] == 1000.0
    head = [line for line in find_reference(name).read_text().splitlines() if line.startswith("#")]
    assert len(head) >= 3 and "/" + "tmp" not in " ".join(head)


def test_the_taxonomy_beside_the_references_is_not_a_reference(torchbench, reference: Path) -> None:
    code, _, err = torchbench("score", reference, "--reference", "v1_taxonomy")
    assert code == 2
    assert "v1_taxonomy: no such file" in err and "v1.1" in err


def test_people_read_scores_meaning_coverage_and_the_tests_that_moved_it(
    torchbench, reference: Path, tmp_path: Path
) -> None:
    results = pytest_json(tmp_path / "results.json", {ALEXNET_CUDA: 0.5, BERT_CUDA: 0.3})
    code, out, _ = torchbench("score", results, "--reference", reference, "--explain")
    assert code == 0
    assert "912.87" in out  # sqrt(0.25 / 0.3): two models in two categories
    assert "9.5 % more time" in out
    assert "2 of 3 tests of the reference (66.7%)" in out
    assert f"without a result (1): {ALEXNET_CPU}" in out
    assert [line.split()[0] for line in out.splitlines() if line.strip().startswith("test_")] == [BERT_CUDA]
    assert [line.split()[1:] for line in out.splitlines() if "subscore-cpu-train" in line] == [["no", "test"]]


def test_each_result_of_a_model_that_the_reference_lacks_is_named_and_does_not_count(
    torchbench, reference: Path, tmp_path: Path
) -> None:
    unknown = ["test_eval[maml-cuda-eager]", "test_train[maml-cuda-eager]", "test_eval[of_my_own-cpu-eager]"]
    results = pytest_json(tmp_path / "results.json", REFERENCE | {BERT_CUDA: 0.5} | dict.fromkeys(unknown, 9.0))
    code, out, _ = torchbench("score", results, "--reference", reference, "--strict")
    assert code == 0
    (told,) = [line for line in out.splitlines() if line.startswith("not in the reference, not counted (3): ")]
    assert told.endswith(", ".join(sorted(unknown)))
    code, out, _ = torchbench("score", results, "--reference", reference, "--json")
    answer = json.loads(out)
    assert answer["coverage"]["extra"] == sorted(unknown)
    assert answer["total"] == pytest.approx(1000 * 2 ** (-1 / 2), rel=1e-12)


def test_ids_and_numbers_are_not_cut_on_a_narrow_terminal(
    torchbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("score.cli.console", Console(width=60, highlight=False))
    test = "test_train[attention_is_all_you_need_pytorch-cuda-inductor_cudagraphs-amp_bf16-bs128-evalmode]"
    fast, slow = (pytest_json(tmp_path / f"{s}.json", {test: s}) for s in (1.0, 1.2345678))
    _, out, _ = torchbench("score", slow, "--reference", fast, "--explain")
    (row,) = [line for line in out.splitlines() if line.strip().startswith("test_train[")]
    assert row.split()[:4] == [test, "1", "1.23457", "0.8100"]


def test_explain_in_json_lists_every_test_the_largest_move_first(torchbench, reference: Path, tmp_path: Path) -> None:
    results = pytest_json(tmp_path / "results.json", REFERENCE | {BERT_CUDA: 0.3})
    _, out, _ = torchbench("score", results, "--reference", reference, "--json", "--explain")
    explain = json.loads(out)["explain"]
    assert [entry["test"] for entry in explain] == [BERT_CUDA, ALEXNET_CPU, ALEXNET_CUDA]
    assert explain[0]["points"] == pytest.approx(json.loads(out)["total"] - 1000)


def test_strict_ends_with_2_and_names_what_is_missing(torchbench, reference: Path, tmp_path: Path) -> None:
    results = pytest_json(tmp_path / "results.json", {ALEXNET_CUDA: 0.5})
    code, out, err = torchbench("score", results, "--reference", reference, "--strict", "--json")
    assert (code, out) == (2, "")
    assert ALEXNET_CPU in err and BERT_CUDA in err
    assert err.count("\n") == 1


def test_a_reference_is_made_without_another_and_scores_its_own_results_1000(torchbench, tmp_path: Path) -> None:
    results = records_file(tmp_path / "cpu.jsonl.gz", ALEXNET_CPU, [1.5, 2.5])
    made = tmp_path / "made.yaml"
    code, out, _ = torchbench("score", results, "--make-reference", made)
    assert code == 0
    assert "a reference of 1 tests" in out
    assert "# Origin: cpu.jsonl.gz; build torch 2.9.0; measured 2026-01-02; class xeon-x8\n" in made.read_text()
    assert read_latencies(made) == {ALEXNET_CPU: 2.0}
    _, out, _ = torchbench("score", results, "--reference", made, "--json")
    assert json.loads(out)["total"] == 1000.0


def test_making_a_reference_with_json_prints_one_object(torchbench, reference: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    _, out, _ = torchbench("score", reference, "--make-reference", made, "--json")
    assert json.loads(out) == {"made-reference": {"path": str(made), "tests": 3}}


def test_a_reference_never_overwrites_the_results_it_is_made_of(torchbench, reference: Path) -> None:
    before = reference.read_bytes()
    code, _, err = torchbench("score", reference, "--make-reference", reference)
    assert code == 2
    assert "would overwrite the results" in err
    assert reference.read_bytes() == before


def test_a_score_that_fails_leaves_no_reference_behind(torchbench, reference: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    code, _, _ = torchbench("score", reference, "--reference", "v9.9", "--make-reference", made)
    assert code == 2
    assert not made.exists()


def test_neither_a_reference_nor_one_to_make_is_an_error_that_says_what_to_give(torchbench, reference: Path) -> None:
    code, out, err = torchbench("score", reference)
    assert (code, out) == (2, "")
    assert "--reference" in err and "v1.1" in err and "--make-reference" in err


def test_foreign_results_are_one_line_on_stderr_and_exit_2(torchbench, reference: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"hello": "world"}')
    code, out, err = torchbench("score", foreign, "--reference", reference, "--json")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {foreign}: JSON without a list 'benchmarks'")
    assert err.count("\n") == 1


def test_a_model_without_a_domain_is_an_error_that_names_it(torchbench, tmp_path: Path) -> None:
    results = pytest_json(tmp_path / "results.json", {"test_eval[never_heard_of-cpu-eager]": 1.0})
    code, _, err = torchbench("score", results, "--reference", results)
    assert code == 2
    assert "never_heard_of" in err


def test_the_score_is_computed_without_torch() -> None:
    program = "import sys, score.cli; sys.exit(bool({'torch', 'numpy', 'timm'} & set(sys.modules)))"
    repository = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=repository, check=False).returncode == 0
