"""Which tests `torchbench check-models` holds against the contracts, and what it hands over of the metadata."""

import dataclasses

import pytest

from torchbenchmark.check_models import Checked, check_models, declared, plan
from torchbenchmark.check_models import _checked as checked_of
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.isolation import ChildOutcome
from torchbenchmark.records import Status
from torchbenchmark.registry import Metadata, Registry

REGISTRY = Registry()


def ids(names=(), suite=None, device="cpu", preset=None, tests=()):
    return [experiment.id for experiment in plan(REGISTRY, names, suite, device, preset, tests)]


def test_a_model_is_checked_in_both_tests_at_its_size_tiny():
    assert ids(["dlrm"]) == ["test_train[dlrm-cpu-eager-tiny]", "test_eval[dlrm-cpu-eager-tiny]"]


def test_a_model_without_that_size_is_checked_at_its_first(tmp_path):
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "metadata.yaml").write_text(
        'description: d\ncategory: c\ndomain: d\nworkload_version: "1"\npresets: [full]\ntests: [eval]\n'
    )
    (experiment,) = plan(Registry([tmp_path]), ["large"], None, "cpu", None, ())
    assert experiment.id == "test_eval[large-cpu-eager]"


def test_without_names_all_models_are_checked_or_those_of_the_suite_at_its_size():
    assert len(ids()) == sum(len(entry.metadata.tests) for entry in REGISTRY.models.values())
    assert "test_train[dlrm-cpu-eager]" in ids(suite="v1")
    assert ids(["dlrm"], suite="v1", tests=["eval"]) == ["test_eval[dlrm-cpu-eager]"]


def test_the_size_the_device_and_the_kind_of_test_can_be_said():
    assert ids(["dlrm", "dlrm"], device="cuda", preset="full", tests=["train"]) == ["test_train[dlrm-cuda-eager]"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"names": ["dlrn"]}, "unknown model 'dlrn'; did you mean dlrm?"),
        ({"tests": ["infer"]}, "--test 'infer': use train, eval"),
        ({"preset": "huge"}, "--preset 'huge': use full, head, tiny"),
        ({"suite": "no_such_suite"}, "unknown suite 'no_such_suite'"),
    ],
)
def test_what_is_not_known_is_said_with_what_there_is(asked, told):
    with pytest.raises(BenchmarkError, match=told):
        ids(**asked)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"timeout": -1.0}, "--timeout -1: must be more than 0 seconds"),
        ({"timeout": float("nan")}, "--timeout nan: must be more than 0 seconds"),
        ({"memory_limit": -5}, "--memory-limit -5: must be at least 1"),
        ({"memory_limit": 0}, "--memory-limit 0: must be at least 1"),
    ],
)
def test_limits_that_are_none_are_refused(option, told):
    with pytest.raises(BenchmarkError, match=told):
        check_models(["no_such_model"], **option)


def test_all_that_a_contract_may_be_told_is_handed_over():
    pytest.importorskip("torch")
    from torchbenchmark.contracts.contract import Declared

    metadata = Metadata(
        description="d",
        category="c",
        domain="d",
        workload_version="1",
        deterministic=False,
        tolerance={"rtol": 0.5, "atol": 0.25},
        draws={"train": ("randn_like",)},
        waits_for_device={"eval": "it counts"},
        loss_need_not_fall="a game",
        untrained={"a*": "frozen"},
    )
    told = declared(metadata, "train")
    assert set(told) == {field.name for field in dataclasses.fields(Declared)}
    assert Declared(**told) == Declared(
        ("randn_like",), None, "a game", {"a*": "frozen"}, False, 0.5, 0.25, ("full", "tiny")
    )
    assert declared(metadata, "eval")["draws"] == () and declared(metadata, "eval")["waits_for_device"] == "it counts"


VERDICT = {"contract": "files", "demand": "none", "breaches": [], "not_judged": ""}


@pytest.mark.parametrize(
    ("outcome", "fate"),
    [
        ({"status": "ok", "verdicts": [VERDICT]}, "kept"),
        ({"status": "ok", "verdicts": [{**VERDICT, "not_judged": "no GPU"}]}, "kept"),
        ({"status": "ok", "verdicts": [VERDICT, {**VERDICT, "breaches": ["it opens a file"]}]}, "broken"),
        ({"status": "ok", "verdicts": []}, "error"),
        ({"status": "ok", "verdicts": "all kept"}, "error"),
        ({"status": "splendid", "verdicts": [VERDICT]}, "error"),
        ({"status": "unsupported"}, "unsupported"),
        ({"status": "oom"}, "oom"),
    ],
)
def test_what_a_child_says_is_believed_only_where_it_can_be_read(outcome, fate):
    said = ChildOutcome(outcome, outcome["status"], "", "", 1.0)
    assert checked_of("test_eval[dlrm-cpu-eager-tiny]", said).fate == fate


def test_a_crash_is_told_with_its_reason():
    said = ChildOutcome(None, "crash", "ended by signal 11 (SIGSEGV)", "", 1.0)
    assert checked_of("t", said) == Checked("t", (), Status.CRASH, "ended by signal 11 (SIGSEGV)")
