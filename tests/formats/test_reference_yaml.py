"""The flat reference YAML: reading, writing, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.formats import Provenance, format_reference, read_latencies, read_measurements, write_reference

ALEXNET = "test_train[alexnet-cpu-eager]"
YOLO = "test_eval[yolov3-cuda-jit]"

SECONDS = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False)


def save(folder: Path, text: str) -> Path:
    path = folder / "reference.yaml"
    path.write_text(text)
    return path


def test_comments_in_the_head_are_passed_over(tmp_path: Path) -> None:
    path = save(tmp_path, f"# from a nightly\n\n{ALEXNET}:\n  norm: 1.5\n{YOLO}: {{norm: 2}}\n")
    assert read_latencies(path) == {ALEXNET: 1.5, YOLO: 2.0}


def test_the_provenance_of_a_reference_is_its_file_name(tmp_path: Path) -> None:
    path = save(tmp_path, f"{ALEXNET}: {{norm: 2.0}}\n")
    assert read_measurements(path).provenance == Provenance("reference.yaml")


@given(
    latencies=st.dictionaries(st.sampled_from([ALEXNET, YOLO, "test_eval[hf_T5-cpu-eager-tiny]"]), SECONDS, min_size=1)
)
def test_what_is_written_is_read_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, latencies: dict[str, float]
) -> None:
    path = tmp_path_factory.mktemp("reference") / "reference.yaml"
    write_reference(path, latencies, [])
    assert read_latencies(path) == latencies


def test_entries_are_sorted_by_test_id_and_the_head_names_every_origin() -> None:
    text = format_reference(
        {ALEXNET: 1e-05, YOLO: 2.0},
        [Provenance("cpu.jsonl", "torch 2.9.0", "2026-01-02", "xeon-x8"), Provenance("cuda.json")],
    )
    lines = text.splitlines()
    assert lines[1] == "# Origin: cpu.jsonl; build torch 2.9.0; measured 2026-01-02; class xeon-x8"
    assert lines[2] == "# Origin: cuda.json"
    assert lines[3:] == [f"{YOLO}:", "  norm: 2.0", f"{ALEXNET}:", "  norm: 1.0e-05"]


def test_the_head_says_the_machine_the_versions_and_the_command_of_each_origin() -> None:
    told = Provenance("cuda.jsonl", machine="driver 580", versions="cuda 13.0", command="torchbench run --suite v1\n")
    head = [line for line in format_reference({ALEXNET: 1.0}, [told]).splitlines() if line.startswith("#")]
    assert head[1:] == [
        "# Origin: cuda.jsonl",
        "# Machine: driver 580",
        "# Versions: cuda 13.0",
        "# Command: torchbench run --suite v1?",
    ]


def test_a_reference_made_of_a_reference_goes_on_saying_what_that_was_made_of(tmp_path: Path) -> None:
    told = Provenance("cuda.jsonl", "torch 2.9.0", machine="driver 580", command="torchbench run --suite v1")
    write_reference(tmp_path / "first.yaml", {ALEXNET: 1.0}, [told])
    first = read_measurements(tmp_path / "first.yaml").provenance
    write_reference(tmp_path / "second.yaml", {ALEXNET: 1.0, YOLO: 2.0}, [first, Provenance("more.jsonl")])
    second = read_measurements(tmp_path / "second.yaml").provenance
    assert second.head == (
        "Origin: cuda.jsonl; build torch 2.9.0",
        "Machine: driver 580",
        "Command: torchbench run --suite v1",
        "Origin: more.jsonl",
    )


@pytest.mark.parametrize("before", ["\ufeff", "\n\n", "---\n", "%YAML 1.1\n---\n", "  "])
def test_a_head_is_found_however_the_file_begins_and_whatever_blanks_it_holds(tmp_path: Path, before: str) -> None:
    path = save(tmp_path, f"{before}# Origin: mine\n\n  # Machine: a T4\n{ALEXNET}: {{norm: 1.5}}\n# Origin: no head\n")
    assert read_measurements(path).provenance.head == ("Origin: mine", "Machine: a T4")


def test_what_another_reference_says_of_itself_stands_below_its_name(tmp_path: Path) -> None:
    path = save(tmp_path, f"# By hand,\n#\n#   on a T4.\n{ALEXNET}: {{norm: 1.5}}\n# not of the head\n")
    head = format_reference({ALEXNET: 1.5}, [read_measurements(path).provenance]).splitlines()[1:4]
    assert head == ["# Origin: reference.yaml", "# By hand,", "# on a T4."]


@pytest.mark.parametrize("name", ["a\nb: 1", "a\x07", "a\udcff", "a\u2028b: 1"])
def test_a_hostile_file_name_cannot_break_out_of_its_comment(tmp_path: Path, name: str) -> None:
    path = tmp_path / "reference.yaml"
    write_reference(path, {ALEXNET: 1.0}, [Provenance(name)])
    assert read_latencies(path) == {ALEXNET: 1.0}


def test_a_reference_that_cannot_be_written_is_one_line_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"no_such_folder/out\.yaml: cannot be written"):
        write_reference(tmp_path / "no_such_folder" / "out.yaml", {ALEXNET: 1.0}, [])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{ALEXNET}: {{norm: .nan}}", r"key test_train\[alexnet-cpu-eager\]\.norm: nan seconds"),
        (f"{ALEXNET}: {{norm: .inf}}", r"\.norm: inf seconds"),
        (f"{ALEXNET}: {{norm: 0}}", r"\.norm: 0 seconds"),
        (f"{ALEXNET}: {{norm: -0.5}}", r"\.norm: -0\.5 seconds"),
        (f"{ALEXNET}: {{norm: true}}", r"\.norm: expected seconds as a number, found True"),
        (f"{ALEXNET}: {{norm: }}", r"\.norm: expected seconds as a number, found None"),
        (f"{ALEXNET}: {{norm: fast}}", r"\.norm: expected seconds as a number, found 'fast'"),
        (f"{ALEXNET}: {{norm: 1e-05}}", r"found '1e-05' \(text; write numbers .* 1\.0e-05\)"),
        (f"{ALEXNET}: 0.5", r"expected exactly {norm: seconds}"),
        (f"{ALEXNET}: {{norm: 1.0, stable: true}}", r"expected exactly {norm: seconds}"),
        (f"{ALEXNET}: {{median: 1.0}}", r"expected exactly {norm: seconds}"),
        (f"{ALEXNET}: {{norm: 1.0}}\n{ALEXNET}: {{norm: 2.0}}", r":2: .*stands twice"),
        ("stable_threshold: 0.07", r"key stable_threshold: 'stable_threshold' is not a test id"),
        ("7: {norm: 1.0}", r"key 7: a test id must be text"),
        ("- 1\n- 2", r"nothing torchbench can read"),
        ("just a sentence", r"nothing torchbench can read"),
        ("# only a comment", r"no entry in it"),
        (f"{ALEXNET}: {{norm: 1.0", r":1: not valid YAML"),
        (f"{ALEXNET}: !!python/object/apply:os.getcwd []", r"not valid YAML"),
    ],
)
def test_a_bad_reference_is_refused_and_the_place_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"reference\.yaml.*{complaint}"):
        read_latencies(save(tmp_path, text))


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_refused_and_told_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "nothing.jsonl"
    path.write_bytes(content)
    with pytest.raises(BenchmarkError, match=r"nothing\.jsonl: empty; expected records of torchbench"):
        read_latencies(path)


def test_an_absent_file_a_folder_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "picture.png"
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    for path in (tmp_path / "absent.json", tmp_path, binary):
        with pytest.raises(BenchmarkError, match=f"{path.name}: cannot be read"):
            read_latencies(path)
