"""YAML that people write, read safely and checked against a schema; an error names the file and the line or key."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from torchbenchmark.errors import BenchmarkError, SentinelError
from torchbenchmark.validation import describe, found, key_path

Schema = TypeVar("Schema", bound=BaseModel)

_MERGE_TAG = "tag:yaml.org,2002:merge"  # of the key `<<`


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is an error instead of a silent overwrite, and a value that is not
    what its form or tag says (the date 2026-13-45) is an error of YAML with its line."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE_TAG:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain value", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError) as cause:
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"no valid {kind}", node.start_mark) from cause


def load_yaml(path: Path, error: type[SentinelError] = BenchmarkError) -> Any:
    """The plain content of a YAML file. Raises `error` naming the file, and the line where YAML knows it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path}: cannot be read: {_brief(cause)}") from cause
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.reader.ReaderError as cause:
        line = text.count("\n", 0, cause.position) + 1
        raise error(f"{path}:{line}: not valid YAML: the character {chr(cause.character)!a} is not allowed") from cause
    except yaml.MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise error(f"{where}: not valid YAML: {cause.problem or cause.context}{_cure(text, mark)}") from cause
    except RecursionError as cause:
        raise error(f"{path}: not valid YAML: nested too deeply") from cause


def read_yaml(path: Path, schema: type[Schema], error: type[SentinelError] = BenchmarkError) -> Schema:
    """The YAML file as an instance of `schema`. Raises `error` naming file and key."""
    content = load_yaml(path, error)
    if not isinstance(content, dict):
        what = "an empty file" if content is None else found(content)
        raise error(f"{path}: expected keys with values at the top, found {what}")
    try:
        return schema.model_validate(content)
    except ValidationError as cause:
        line = line_of(path, key_path(cause.errors(include_url=False)[0]))
        raise error(f"{path}: {first_problem(cause, schema)}{f' (line {line})' if line else ''}") from cause


def line_of(path: Path, key: Sequence[str | int]) -> int | None:
    """The line of a key in a YAML file, or of the innermost one around it that is there; None if there is none."""
    node, line = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader), None
    for part in key:
        if isinstance(node, yaml.MappingNode):
            entry = next((pair for pair in node.value if pair[0].value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            entry = (node.value[part], node.value[part])
        else:
            entry = None
        if entry is None:
            break
        line, node = entry[0].start_mark.line + 1, entry[1]
    return line


def first_problem(invalid: ValidationError, schema: type[BaseModel] | None = None) -> str:
    """One line for a pydantic error: the key, what is wrong, and how many more there are. With the schema, an unknown
    key is told with those that it may have been meant for."""
    problems = invalid.errors(include_url=False)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{describe(problems[0], schema)}{more}"


def _cure(text: str, mark: yaml.Mark | None) -> str:
    """What to write instead, where YAML stopped at a character that begins no plain text."""
    there = text[mark.index : mark.index + 1] if mark else ""
    if there in ("@", "`", "%"):
        return "; put the text in quotes"
    return "; indent with blanks, not with tabs" if there == "\t" else ""


def _brief(cause: Exception) -> str:
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
