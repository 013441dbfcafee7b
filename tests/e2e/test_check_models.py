"""`torchbench check-models`: models in processes of their own are held against the contracts, and each is told."""

from pathlib import Path

import pytest
from pipeline import MISBEHAVING_MODELS

BAD_MODELS = Path(__file__).parents[1] / "bad_models"


def test_a_broken_contract_is_named_with_what_was_seen_and_what_to_do(torchbench):
    done = torchbench("check-models", "healthy", "data_made_in_iteration", "--models", BAD_MODELS, "--test", "eval")
    assert done.returncode == 1, done.stderr
    healthy, planted, breach, total = done.stdout.splitlines()
    assert healthy == "test_eval[healthy-cpu-eager-tiny]: 16 of 16 contracts kept"
    assert planted == "test_eval[data_made_in_iteration-cpu-eager-tiny]: 15 of 16 contracts kept"
    assert breach.startswith("  draws is broken (an iteration makes no random data but what `draws` declares): ")
    assert "an iteration draws with randn_like (3 x); make the data in setup(), or declare it" in breach
    assert total == "2 tests: 1 kept, 1 broken"


@pytest.mark.long
def test_bad_input_is_one_line_and_exit_code_2(torchbench):
    done = torchbench("check-models", "no_such_model")
    assert done.returncode == 2
    assert "unknown model 'no_such_model'" in done.stderr and done.stdout == ""


@pytest.mark.long
def test_a_model_that_crashes_hangs_or_cannot_do_something_is_told_and_harms_no_other(torchbench):
    names = ("segfaults", "hangs", "raises", "outgrows_limit", "healthy")
    options = ("--models", MISBEHAVING_MODELS, "--test", "train", "--timeout", 25, "--memory-limit", 900)
    done = torchbench("check-models", *names, *options)
    assert done.returncode == 1, done.stderr
    told = done.stdout
    assert "test_train[segfaults-cpu-eager-tiny]: crash, ended by signal 11 (SIGSEGV) in stage " in told
    assert "test_train[hangs-cpu-eager-tiny]: timeout, no result within 25 s" in told
    assert "test_train[outgrows_limit-cpu-eager-tiny]: oom, ended by the runner's memory limit" in told
    assert "the shape is wrong on purpose" in told
    assert "test_train[healthy-cpu-eager-tiny]: 19 of 19 contracts kept" in told
    assert "5 tests: 1 crash, 1 timeout, 1 broken, 1 oom, 1 kept" in told


@pytest.mark.long
def test_what_a_model_does_not_offer_is_unsupported_with_its_reason_and_no_failure(torchbench):
    done = torchbench(
        "check-models", "healthy_and_waiting", "--models", BAD_MODELS, "--test", "train", "--preset", "full"
    )
    assert done.returncode == 0, done.stderr
    assert "unsupported, healthy_and_waiting has no test 'train' (it offers eval)" in done.stdout


@pytest.mark.long
def test_the_models_tests_and_size_may_be_those_of_a_suite(torchbench, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: mine\ndescription: Mine.\nmodels: [dlrm]\ntests: [eval]\npreset: full\n")
    done = torchbench("check-models", "--suite", suite)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["test_eval[dlrm-cpu-eager]: 16 of 16 contracts kept", "1 tests: 1 kept"]
