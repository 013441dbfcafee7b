"""Models and suites as their metadata tells of them."""

import hashlib
import re
from pathlib import Path

import pytest
import yaml

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.experiment import Experiment, grid
from torchbenchmark.registry import ModelEntry, Registry, Suite, load_suite, select, suite_names

METADATA = {"description": "d", "category": "OTHER", "domain": "OTHER_TASKS", "workload_version": "1"}
SOURCE = '''"""A model."""

SIZE = 3


class Model:
    """It adds."""

    def invoke(self, x, *, bias=None):
        """One iteration."""
        return x + SIZE  # three


def only_documented():
    """Does nothing."""
'''


def model(root: Path, name: str = "mine", source: str = "", **metadata: object) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(source)
    (folder / "metadata.yaml").write_text(yaml.safe_dump(METADATA | metadata))
    return folder


def hash_of(root: Path, source: str | bytes) -> str:
    folder = model(root / str(len(list(root.iterdir()))))
    (folder / "__init__.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    return ModelEntry(folder).source_hash


def suite(**changes: object) -> Suite:
    return Suite.model_validate({"name": "s", "description": "d", "models": ["resnet18"]} | changes)


def entry(folder: Path) -> ModelEntry:
    return ModelEntry(folder)


# Models


def test_models_of_further_folders_stand_beside_the_built_in_ones(tmp_path: Path) -> None:
    model(tmp_path, "mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("")
    registry = Registry([tmp_path])
    assert set(registry.models) - set(Registry().models) == {"mine"}
    assert registry.model("mine").folder == tmp_path / "mine"


def test_a_model_without_metadata_is_refused_by_its_folder(tmp_path: Path) -> None:
    (model(tmp_path) / "metadata.yaml").unlink()
    with pytest.raises(BenchmarkError, match=rf"^{tmp_path}/mine: a model needs a metadata\.yaml"):
        Registry([tmp_path])


def test_a_folder_of_models_that_is_absent_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=rf"^{tmp_path}/nowhere: no such folder of models"):
        Registry([tmp_path / "nowhere"])


def test_a_name_that_is_taken_by_a_built_in_model_or_another_folder_is_refused(tmp_path: Path) -> None:
    model(tmp_path / "a", "resnet18")
    with pytest.raises(BenchmarkError, match=rf"^{tmp_path}/a/resnet18: a model of the name resnet18 exists already"):
        Registry([tmp_path / "a"])
    model(tmp_path / "b")
    model(tmp_path / "c")
    with pytest.raises(BenchmarkError, match=rf"^{tmp_path}/c/mine: a model of the name mine exists already"):
        Registry([tmp_path / "b", tmp_path / "c"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("description: d\ncategory: [\n", r":3: not valid YAML"),
        ("description: d\ncategory: a\ncategory: b\n", r":3: not valid YAML: key 'category' stands twice"),
        ("description: d\n", r": key category: is missing \(and 2 more\)"),
        ("", r": expected keys with values"),
    ],
)
def test_metadata_that_is_not_sound_is_told_with_file_and_line_or_key(tmp_path: Path, text: str, problem: str) -> None:
    folder = model(tmp_path)
    (folder / "metadata.yaml").write_text(text)
    with pytest.raises(BenchmarkError, match=rf"^{folder}/metadata\.yaml{problem}"):
        _ = entry(folder).metadata


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"colour": "red"}, "unknown key colour; known: description"),
        ({"description": ""}, "key description: expected a text of at least 1 character, found an empty text"),
        ({"workload_version": 1}, "key workload_version: expected text, found the number 1; put it in quotes"),
        ({"tests": ["infer"]}, r"key tests\.0: expected train or eval, found the text 'infer'"),
        ({"tests": ["eval", "eval"]}, "key tests: 'eval' stands twice"),
        ({"devices": ["tpu"]}, r"key devices\.0: expected cpu or cuda, found the text 'tpu'"),
        ({"presets": ["huge"]}, r"key presets\.0: expected full, head or tiny, found the text 'huge'"),
        ({"presets": []}, "key presets: expected at least 1 entry, found an empty list"),
        ({"presets": ["tiny", "tiny"]}, "key presets: 'tiny' stands twice"),
        ({"devices": []}, "key devices: expected at least 1 entry, found an empty list"),
        ({"precisions": ["fp32", "fp32"]}, "key precisions: 'fp32' stands twice"),
        ({"description": "  "}, "key description: expected a text, found only blanks"),
        ({"waits_for_device": {"train": " "}}, r"key waits_for_device\.train: expected a text, found only blanks"),
        ({"untrained": {"queue": "\n"}}, r"key untrained\.queue: expected a text, found only blanks"),
        ({"tolerance": {"rtol": -1}}, r"key tolerance\.rtol: expected a number of at least 0, found the number -1"),
        ({"tolerance": {"rtol": float("inf")}}, r"key tolerance\.rtol: expected a finite number"),
        ({"tolerance": {"atol": True}}, r"key tolerance\.atol: expected a number, found true"),
        ({"gpu_batches": {"--": {"eval": 1}}}, "key gpu_batches: '--' is the name of no GPU"),
        (
            {"gpu_batches": {"NVIDIA A100": {}, "nvidia-a100": {}}},
            "key gpu_batches: 'NVIDIA A100' and 'nvidia-a100' are",
        ),
        ({"not_implemented": [{"test": "train"}]}, r"key not_implemented\.0\.reason: is missing"),
        ({"not_implemented": [{"backend": "warp", "reason": "r"}]}, r"key not_implemented\.0\.backend: .*'warp' is no"),
        ({"not_implemented": [{"precision": "fp8", "reason": "r"}]}, r"key not_implemented\.0\.precision: expected"),
        ({"not_implemented": [{"tset": "train", "reason": "r"}]}, r"unknown key not_implemented\.0\.tset"),
    ],
)
def test_metadata_that_the_schema_refuses_is_told_with_file_and_key(
    tmp_path: Path, metadata: dict, problem: str
) -> None:
    folder = model(tmp_path, **metadata)
    with pytest.raises(BenchmarkError, match=rf"^{folder}/metadata\.yaml: {problem}"):
        _ = entry(folder).metadata


def test_an_unknown_model_is_told_with_those_of_a_similar_name() -> None:
    with pytest.raises(BenchmarkError, match=r"^unknown model 'resnet81'; did you mean resnet18\b"):
        Registry().model("resnet81")


def test_an_unknown_model_that_resembles_none_is_told_with_where_models_are() -> None:
    where = (
        r"`torchbench list` has those that are built in; --models DIR, or the key `models`, adds a folder of others$"
    )
    with pytest.raises(BenchmarkError, match=rf"^unknown model 'qqq'; {where}"):
        Registry().model("qqq")
    theirs = Suite(name="s", description="d", models=("qqq",))
    with pytest.raises(BenchmarkError, match=rf"^unknown model in suite s: 'qqq'; {where}"):
        Registry().experiments(theirs, ["cpu"])


# What a model does


@pytest.mark.parametrize(
    "same",
    [
        SOURCE.replace("# three", "# a number"),
        SOURCE.replace('"""It adds."""', '"""It adds, I say."""'),
        SOURCE.replace('    """It adds."""\n\n', ""),
        SOURCE.replace('"""A model."""\n', ""),
        SOURCE.replace('"""Does nothing."""', "pass"),
        SOURCE.replace("x + SIZE", "(\n            x\n            + SIZE\n        )"),
        SOURCE.replace("\n", "\r\n"),
        "\ufeff" + SOURCE,
    ],
    ids=["comment", "docstring", "no docstring", "no module docstring", "pass", "layout", "CRLF", "byte order mark"],
)
def test_comments_docstrings_and_layout_do_not_move_the_hash(tmp_path: Path, same: str) -> None:
    assert same != SOURCE
    assert hash_of(tmp_path, same) == hash_of(tmp_path, SOURCE)


@pytest.mark.parametrize(
    "other",
    [
        SOURCE.replace("SIZE = 3", "SIZE = 4"),
        SOURCE.replace("SIZE = 3", "SIZE = 3.0"),
        SOURCE.replace("SIZE = 3", "SIZE = '3'"),
        SOURCE.replace("x + SIZE", "SIZE + x"),
        SOURCE.replace("x + SIZE", "x - SIZE"),
        SOURCE.replace("bias=None", "bias=False"),
        SOURCE.replace("bias=None", "bias"),
        SOURCE.replace("self, x, *, bias", "self, x, bias"),
        SOURCE.replace("invoke", "call"),
        SOURCE.replace('"""One iteration."""\n', '"""One iteration."""\n        "a value"\n'),
        SOURCE.replace("SIZE = 3", "SIZE = f'{3!r}'"),
        SOURCE + "SIZE = 4\n",
    ],
)
def test_a_change_of_the_code_moves_the_hash(tmp_path: Path, other: str) -> None:
    assert other != SOURCE
    assert hash_of(tmp_path, other) != hash_of(tmp_path, SOURCE)


def test_the_hash_of_a_source_is_the_same_in_every_version_of_python(tmp_path: Path) -> None:
    # pinned: were it to move with the driver's Python, all workloads would seem to have changed over night
    assert hash_of(tmp_path, SOURCE) == "d7942ce510b6"


def test_a_module_beside_the_init_and_its_name_are_part_of_the_hash(tmp_path: Path) -> None:
    alone, one, same, renamed, deeper = (model(tmp_path / name, source=SOURCE) for name in "abcde")
    (one / "layers.py").write_text("A = 1\n")
    (same / "layers.py").write_text("A = 1  # one\n")
    (renamed / "blocks.py").write_text("A = 1\n")
    (deeper / "parts").mkdir()
    (deeper / "parts" / "layers.py").write_text("A = 1\n")
    hashes = [entry(folder).source_hash for folder in (alone, one, same, renamed, deeper)]
    assert hashes[1] == hashes[2]
    assert len(set(hashes)) == 4


@pytest.mark.parametrize("source", [b"def broken(:\n", b"x = '\xff'\n", b"x = 1\0\n"])
def test_a_model_that_is_not_python_is_told_with_its_file(tmp_path: Path, source: bytes) -> None:
    with pytest.raises(BenchmarkError, match=r"mine/__init__\.py: not valid Python \(.*\); mend the model"):
        hash_of(tmp_path, source)


def test_the_workload_is_another_for_every_experiment_and_version_and_code(tmp_path: Path) -> None:
    experiments = [
        Experiment("mine", test, device, precision=precision, batch_size=batch_size)
        for test in ("train", "eval")
        for device in ("cpu", "cuda")
        for precision in ("fp32", "bf16")
        for batch_size in (None, 8)
    ]
    first = entry(model(tmp_path / "a", source=SOURCE))
    versions, hashes = zip(*(first.workload(experiment) for experiment in experiments), strict=True)
    assert set(versions) == {"1"}
    assert len(set(hashes)) == len(experiments)
    later = entry(model(tmp_path / "b", source=SOURCE, workload_version="2")).workload(experiments[0])
    assert later[0] == "2"
    assert later[1] not in hashes
    assert entry(model(tmp_path / "c", source=SOURCE + "A = 1\n")).workload(experiments[0])[1] not in hashes
    assert entry(model(tmp_path / "d", source=SOURCE)).workload(experiments[0])[1] == hashes[0]


# What a model cannot do


def test_a_test_that_the_metadata_does_not_offer_is_unsupported_with_a_reason(tmp_path: Path) -> None:
    mine = entry(model(tmp_path, tests=["eval"], devices=["cpu"], presets=["tiny"]))
    assert mine.unsupported_reason(Experiment("mine", "eval", "cpu", preset="tiny")) is None
    reasons = [
        mine.unsupported_reason(Experiment("mine", "train", "cpu", preset="tiny")),
        mine.unsupported_reason(Experiment("mine", "eval", "cuda", preset="tiny")),
        mine.unsupported_reason(Experiment("mine", "eval", "cpu")),
    ]
    assert reasons == [
        "mine has no test 'train' (it offers eval)",
        "mine has no device 'cuda' (it offers cpu)",
        "mine has no preset 'full' (it offers tiny)",
    ]


def test_a_rule_of_what_is_not_implemented_holds_where_all_that_it_names_agrees(tmp_path: Path) -> None:
    rule = {"test": "train", "device": "cuda", "preset": "tiny", "reason": "no kernel"}
    mine = entry(model(tmp_path, not_implemented=[rule]))
    hit = [
        (test, device, preset)
        for test in ("train", "eval")
        for device in ("cpu", "cuda")
        for preset in ("full", "tiny")
        if mine.unsupported_reason(Experiment("mine", test, device, preset=preset)) == "no kernel"
    ]
    assert hit == [("train", "cuda", "tiny")]


def test_a_rule_that_names_nothing_but_its_reason_holds_everywhere(tmp_path: Path) -> None:
    mine = entry(model(tmp_path, not_implemented=[{"reason": "no weights"}]))
    assert {mine.unsupported_reason(experiment) for experiment in grid(["mine"], ["train", "eval"], ["cpu"])} == {
        "no weights"
    }


def test_a_rule_may_name_a_backend_and_a_precision(tmp_path: Path) -> None:
    rule = {"backend": "jit", "precision": "bf16", "reason": "not scriptable"}
    mine = entry(model(tmp_path, not_implemented=[rule]))
    hit = [
        (experiment.backend, experiment.precision)
        for experiment in grid(["mine"], ["eval"], ["cpu"], backends=["eager", "jit"], precisions=["fp32", "bf16"])
        if mine.unsupported_reason(experiment) is not None
    ]
    assert hit == [("jit", "bf16")]


def test_a_rule_of_the_whole_grid_holds_for_every_model(tmp_path: Path) -> None:
    mine = entry(model(tmp_path))
    assert "CUDA graphs" in (mine.unsupported_reason(Experiment("mine", "eval", "cpu", "cudagraphs")) or "")


def test_tests_in_fp32_on_cuda_started_a_new_workload_when_tf32_was_turned_off_for_them(tmp_path: Path) -> None:
    """Before, the hash covered version, source and id alone."""
    mine = entry(model(tmp_path))
    moved = []
    for experiment in grid(["mine"], ["eval"], ["cpu", "cuda"], precisions=["fp32", "tf32", "bf16"]):
        before = hashlib.sha256(f"1|{mine.source_hash}|{experiment.id}".encode()).hexdigest()[:12]
        if mine.workload(experiment)[1] != before:
            moved.append(experiment.id)
    assert moved == ["test_eval[mine-cuda-eager]"]


# Suites


def test_every_suite_of_the_package_can_be_loaded_and_planned() -> None:
    assert {"smoke", "v1"} <= set(suite_names())
    for name in suite_names():
        loaded = load_suite(name)
        assert loaded.name == name
        assert Registry().experiments(loaded, ["cpu"])


def test_an_unknown_suite_is_told_with_one_of_a_similar_name() -> None:
    with pytest.raises(BenchmarkError, match=r"^unknown suite 'smok'; did you mean smoke\?$"):
        load_suite("smok")


def test_a_suite_is_loaded_from_a_path_and_told_with_file_and_key_if_it_is_not_sound(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("{name: mine, description: d, models: [resnet18], skip: [{tests: '*', reason: r}]}")
    assert load_suite(str(path)).models == ("resnet18",)
    for text, problem in (
        ("{name: mine, description: d, models: []}", ": key models: "),
        ("{name: mine, description: d, models: [a, b, a]}", ": key models: 'a' stands twice"),
        ("{name: mine, description: d, models: [a], tests: [eval, eval]}", ": key tests: 'eval' stands"),
        ("{name: mine, description: d, models: [a], tests: []}", ": key tests: "),
        ("{name: mine, description: d, models: [a], skip: [{tests: '*'}]}", r": key skip\.0\.reason: is missing"),
        ("{name: mine, description: d, models: [a], presets: tiny}", ": unknown key presets"),
        (
            "{name: mine, description: d, models: [a], backends: [warp]}",
            r": key backends\.0: 'warp' is no",
        ),
        ("{name: mine, description: d, models: [a], backends: [jit, jit]}", ": key backends: 'jit' stands twice"),
        ("{name: mine, description: d, models: [a], precisions: []}", ": key precisions: "),
        ("{name: mine, description: d, models: [a], batch_sizes: [0]}", r": key batch_sizes\.0"),
        ("{name: mine, description: d, models: [a], batch_sizes: [yes]}", r": key batch_sizes\.0"),
        ("{name: mine, description: d, models: [a], tiers: {core: []}}", r": key tiers\.core: "),
        ("name: mine\nmodels: [a\n", ":3: not valid YAML"),
    ):
        path.write_text(text)
        with pytest.raises(BenchmarkError, match=rf"^{path}{problem}"):
            load_suite(str(path))
    with pytest.raises(BenchmarkError, match=r"absent\.yml: cannot be read"):
        load_suite(str(tmp_path / "absent.yml"))


def test_backends_precisions_and_batch_sizes_of_a_suite_multiply_its_plan() -> None:
    wide = suite(tests=["eval"], backends=["eager", "jit"], precisions=["fp32", "bf16"], batch_sizes=["default", 8])
    assert [experiment.id for experiment in Registry().experiments(wide, ["cpu"])] == [
        "test_eval[resnet18-cpu-eager]",
        "test_eval[resnet18-cpu-eager-bs8]",
        "test_eval[resnet18-cpu-eager-bf16]",
        "test_eval[resnet18-cpu-eager-bf16-bs8]",
        "test_eval[resnet18-cpu-jit]",
        "test_eval[resnet18-cpu-jit-bs8]",
        "test_eval[resnet18-cpu-jit-bf16]",
        "test_eval[resnet18-cpu-jit-bf16-bs8]",
    ]


def test_the_plan_of_a_suite_holds_every_combination_in_order(tmp_path: Path) -> None:
    model(tmp_path, tests=["eval"])
    plan = Registry([tmp_path]).experiments(suite(models=["resnet18", "mine"], preset="tiny"), ["cpu"])
    assert [experiment.id for experiment in plan] == [
        "test_train[resnet18-cpu-eager-tiny]",
        "test_eval[resnet18-cpu-eager-tiny]",
        "test_train[mine-cpu-eager-tiny]",  # unsupported, but it gets a record that says so
        "test_eval[mine-cpu-eager-tiny]",
    ]


def test_a_suite_with_an_unknown_model_is_told_with_its_name_and_a_similar_model() -> None:
    with pytest.raises(BenchmarkError, match=r"^unknown model in suite s: 'resnet8'; did you mean resnet18\b"):
        Registry().experiments(suite(models=["dlrm", "resnet8"]), ["cpu"])


@pytest.mark.parametrize(
    ("pattern", "skipped"),
    [
        ("test_train[resnet18-cpu-eager]", ["test_train[resnet18-cpu-eager]"]),
        ("test_train[[]resnet18-cpu-eager]", []),
        ("test_*[dlrm-*]", ["test_train[dlrm-cpu-eager]", "test_eval[dlrm-cpu-eager]"]),
        ("*-cpu-*", None),
        ("resnet18", []),
        ("TEST_TRAIN*", []),
    ],
)
def test_a_rule_to_skip_is_a_glob_over_ids_in_which_brackets_are_brackets(
    pattern: str, skipped: list[str] | None
) -> None:
    rules = suite(skip=[{"tests": pattern, "reason": "known"}, {"tests": "*", "reason": "rest"}])
    experiments = list(grid(["resnet18", "dlrm"], ["train", "eval"], ["cpu"]))
    hit = [experiment.id for experiment in experiments if rules.skip_reason(experiment) == "known"]
    assert hit == ([experiment.id for experiment in experiments] if skipped is None else skipped)
    assert {rules.skip_reason(experiment) for experiment in experiments} <= {"known", "rest"}


def test_without_a_rule_nothing_is_skipped() -> None:
    assert suite().skip_reason(Experiment("resnet18", "eval", "cpu")) is None


# Selection

EXPERIMENTS = list(grid(["resnet18", "resnet50", "dlrm"], ["train", "eval"], ["cpu"]))


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], [experiment.id for experiment in EXPERIMENTS]),
        (["test_eval[dlrm-cpu-eager]"], ["test_eval[dlrm-cpu-eager]"]),
        (["dlrm"], ["test_train[dlrm-cpu-eager]", "test_eval[dlrm-cpu-eager]"]),
        (["test_eval[resnet*]"], ["test_eval[resnet18-cpu-eager]", "test_eval[resnet50-cpu-eager]"]),
        (["resnet[15]*", "*dlrm*"], [experiment.id for experiment in EXPERIMENTS]),
        (["dlrm", "test_train[resnet18-*", "dlrm"], None),
    ],
)
def test_globs_choose_by_id_or_model_and_keep_the_order_of_the_plan(
    patterns: list[str], chosen: list[str] | None
) -> None:
    if chosen is None:
        chosen = ["test_train[resnet18-cpu-eager]", "test_train[dlrm-cpu-eager]", "test_eval[dlrm-cpu-eager]"]
    assert [experiment.id for experiment in select(iter(EXPERIMENTS), patterns)] == chosen


def test_a_glob_that_chooses_nothing_is_an_error_even_beside_one_that_does() -> None:
    expected = "unknown test 'resnet81'; did you mean resnet18"
    with pytest.raises(BenchmarkError, match=f"^{re.escape(expected)}"):
        select(EXPERIMENTS, ["dlrm", "resnet81"])
    with pytest.raises(BenchmarkError, match=r"did you mean test_eval\[resnet18-cpu-eager\]"):
        select(EXPERIMENTS, ["test_eval[resnet18-cpu-eagr]"])
