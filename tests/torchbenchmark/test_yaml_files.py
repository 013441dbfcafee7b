"""What people write in YAML is either read or refused with file, line or key."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from torchbenchmark.errors import BenchmarkError, SentinelError
from torchbenchmark.yaml_files import load_yaml, read_yaml


class Garden(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    trees: dict[str, int] = {}


class OtherError(SentinelError):
    pass


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "garden.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("name: a\nname: b\n", 2, "key 'name' stands twice"),
        ("name: a\ntrees:\n  oak: 1\n  oak: 2\n", 4, "key 'oak' stands twice"),
        ("name: a\ntrees: [1, 2\n", 3, "expected ',' or ']'"),
        ("name: a\ntrees:\n\toak: 1\n", 3, r"cannot start any token; indent with blanks, not with tabs"),
        ("name: @team\n", 1, r"cannot start any token; put the text in quotes"),
        ("name: `glob`\n", 1, r"cannot start any token; put the text in quotes"),
        ("name: a\n? [x, y]\n: 1\n", 2, "a key must be a plain value"),
        ("name: a\n? !!set {x}\n: 1\n", 2, "a key must be a plain value"),
        ("name: !!python/object/apply:os.system ['true']\n", 1, "could not determine a constructor"),
        ("name: a\ntrees: {oak: 2026-13-45}\n", 2, "no valid timestamp"),
        ("name: a\ntrees: {oak: !!int many}\n", 2, "no valid int"),
        ("name: a\ntrees: {oak: !!bool perhaps}\n", 2, "no valid bool"),
        ("name: a\ntrees: {oak: !!timestamp soon}\n", 2, "no valid timestamp"),
        ("name: a\nat: *nowhere\n", 2, "undefined alias"),
        ("name: a\n---\nname: b\n", 2, "but found another document"),
        ("name: a\ntrees: {oak: '\x07'}\n", 2, r"the character '\\x07' is not allowed"),
    ],
)
def test_text_that_is_not_sound_yaml_is_refused_in_one_line_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    with pytest.raises(BenchmarkError, match=rf"garden\.yaml:{line}: not valid YAML: .*{problem}") as caught:
        load_yaml(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_yaml_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"garden\.yaml: not valid YAML: nested too deeply"):
        load_yaml(written(tmp_path, "[" * 5000))


def test_a_file_that_is_absent_a_folder_or_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"nothing\.yaml: cannot be read: No such file"):
        load_yaml(tmp_path / "nothing.yaml")
    with pytest.raises(BenchmarkError, match="cannot be read: Is a directory"):
        load_yaml(tmp_path)
    with pytest.raises(BenchmarkError, match=r"garden\.yaml: cannot be read: .*utf-8"):
        load_yaml(written(tmp_path, b"name: \xff\n"))


@pytest.mark.parametrize(
    ("text", "found"), [("", "an empty file"), ("- name: a\n", "a list"), ("just words\n", "the text 'just words'")]
)
def test_a_file_without_a_mapping_at_the_top_is_refused(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"garden\.yaml: expected keys with values at the top, found {found}"):
        read_yaml(written(tmp_path, text), Garden)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("trees: {}\n", "key name: is missing"),
        ("name: a\ntress: {}\n", r"unknown key tress; did you mean trees\?"),
        ("name: a\ntrees: {oak: tall}\n", r"key trees\.oak: expected a whole number, found the text 'tall'"),
        ("tress: {}\n", r"key name: is missing \(and 1 more\)"),
        ("name: 2026-01-02\n", "key name: expected text, found the date 2026-01-02; put it in quotes"),
        ("name: a\n5: b\n", "key 5: expected text as the key, found the number 5"),
    ],
)
def test_content_that_the_schema_refuses_is_told_with_its_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"garden\.yaml: {problem}"):
        read_yaml(written(tmp_path, text), Garden)


def test_sound_yaml_is_read_also_with_anchors_merged_and_overridden(tmp_path: Path) -> None:
    path = written(tmp_path, "name: a\ntrees:\n  <<: &some {oak: 1, fir: 2}\n  fir: 3\n")
    assert read_yaml(path, Garden) == Garden(name="a", trees={"oak": 1, "fir": 3})


def test_another_package_gets_errors_of_its_own_type(tmp_path: Path) -> None:
    for text in ("name: [\n", "- a\n", "tress: 1\n"):
        with pytest.raises(OtherError, match=r"garden\.yaml"):
            read_yaml(written(tmp_path, text), Garden, OtherError)
    with pytest.raises(OtherError, match="cannot be read"):
        read_yaml(tmp_path / "nothing.yaml", Garden, OtherError)
