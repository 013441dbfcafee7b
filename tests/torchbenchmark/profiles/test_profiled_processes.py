"""What a child reports of its profile, on its way into the file of pairs; and its traces."""

import pytest
from pydantic import ValidationError

from torchbenchmark.isolation import ChildOutcome
from torchbenchmark.one_process import process_of
from torchbenchmark.paired.pairs_file import Pair
from torchbenchmark.profiles.process_profile import LONGEST_NAME, MOST_NAMES, ProfiledProcess, profile_of
from torchbenchmark.profiles.traces import Traces, file_name
from torchbenchmark.records import Process, Status

TEST = "test_eval[resnet18-cuda-eager]"
PLAIN = {
    "iterations": 3,
    "wall_s": 0.01,
    "outside_s": 0.004,
    "waiting_s": 0.0,
    "operators": [
        {
            "name": "aten::add\x1b[31m",
            "calls": 2.0,
            "host_s": 0.006,
            "kernels": [{"name": "add\nkernel", "launches": 2.0, "seconds": 1e-5, "is_copy": False}],
        }
    ],
}


def process(profile: object, make_process) -> Process:
    ended = ChildOutcome({"channels": {}, "profile": profile}, "ok", "", "", 1.0)
    like = make_process()
    return process_of(
        ended, round=1, index=0, zygote="z", start_method="fork", started=like.started, device_index=None, gpu=None
    )


def test_a_profile_survives_the_file_and_its_names_are_clean(make_process):
    one = process(PLAIN, make_process)
    assert isinstance(one, ProfiledProcess)
    (operator,) = one.profile.operators
    assert operator.name == "aten::add[31m" and operator.kernels[0].name == "add kernel"
    pair = Pair(test=TEST, round=1, index=0, order=("base", "head"), base=one, head=make_process())
    again = Pair.model_validate_json(pair.model_dump_json())
    assert again == pair and isinstance(again.base, ProfiledProcess) and not isinstance(again.head, ProfiledProcess)


def test_a_file_of_pairs_holds_no_name_or_profile_that_no_child_could_have_left(make_process):
    """`profile --from` reads what somebody else may have written: shortening a name of 30,000 brackets took 20 s."""
    line = process(PLAIN, make_process).model_dump(mode="json")
    (operator,) = line["profile"]["operators"]
    operator["name"] = "<" * 30_000
    read = ProfiledProcess.model_validate(line)
    assert len(read.profile.operators[0].name) == LONGEST_NAME
    operator["kernels"] *= MOST_NAMES
    with pytest.raises(ValidationError, match="a profile with over"):
        ProfiledProcess.model_validate(line)


def test_ordinary_processes_are_written_as_before(make_process):
    assert "profile" not in make_process().model_dump_json()


@pytest.mark.parametrize(
    "profile",
    [
        {**PLAIN, "iterations": 0},
        {**PLAIN, "wall_s": -1.0},
        {**PLAIN, "operators": "many"},
        {**PLAIN, "more": 1},
        [1],
    ],
)
def test_what_is_no_profile_is_an_error_of_the_process(profile, make_process):
    one = process(profile, make_process)
    assert one.status is Status.ERROR and "does not validate" in one.reason


def test_a_profile_has_no_more_names_than_can_be_told():
    operator = PLAIN["operators"][0]
    with pytest.raises((ValueError, ValidationError)):
        profile_of({**PLAIN, "operators": [{**operator, "kernels": operator["kernels"] * MOST_NAMES}]})


def test_one_trace_a_side_is_kept_and_none_that_is_too_large(tmp_path, monkeypatch):
    scratch, kept, said = tmp_path / "scratch", tmp_path / "new" / "traces", []
    scratch.mkdir()
    traces = Traces(kept, scratch, said.append)
    left = scratch / file_name(TEST, "base")
    assert traces.wanted(TEST, "base") == str(left) and left.name == "test_eval-resnet18-cuda-eager-base.json.gz"
    left.write_bytes(b"a trace")
    traces.keep(TEST, "base")
    traces.keep(TEST, "head")  # which left none
    assert [one.name for one in kept.iterdir()] == [left.name] and not left.exists()
    assert traces.wanted(TEST, "base") is None and traces.wanted(TEST, "head") is not None
    monkeypatch.setattr("torchbenchmark.profiles.traces.LARGEST_TRACE", 3)
    large = scratch / file_name(TEST, "head")
    large.write_bytes(b"a trace")
    traces.keep(TEST, "head")
    assert not large.exists() and traces.wanted(TEST, "head") is None and "is not kept" in said[0]


def test_without_a_folder_no_trace_is_asked_for(tmp_path):
    assert Traces(None, tmp_path, print).wanted(TEST, "base") is None
