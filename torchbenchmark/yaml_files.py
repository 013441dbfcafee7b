"""YAML that people write, read safely and checked against a schema; an error names the file and the line or key."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from torchbenchmark.errors import BenchmarkError, SentinelError

Schema = TypeVar("Schema", bound=BaseModel)


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is an error instead of a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain value", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path, error: type[SentinelError] = BenchmarkError) -> Any:
    """The plain content of a YAML file. Raises `error` naming the file, and the line where YAML knows it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path}: cannot be read: {_brief(cause)}") from cause
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise error(f"{where}: not valid YAML: {getattr(cause, 'problem', None) or cause}") from cause


def read_yaml(path: Path, schema: type[Schema], error: type[SentinelError] = BenchmarkError) -> Schema:
    """The YAML file as an instance of `schema`. Raises `error` naming file and key."""
    content = load_yaml(path, error)
    if not isinstance(content, dict):
        raise error(f"{path}: expected a mapping of keys to values at the top, found {type(content).__name__}")
    try:
        return schema.model_validate(content)
    except ValidationError as cause:
        raise error(f"{path}: {first_problem(cause)}") from cause


def first_problem(invalid: ValidationError) -> str:
    """One line for a pydantic error: the key, what is wrong, and how many more there are."""
    problems = invalid.errors(include_url=False, include_input=False)
    first = problems[0]
    key = ".".join(str(part) for part in first["loc"]) or "(top)"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"key {key}: {first['msg'][0].lower()}{first['msg'][1:]}{more}"


def _brief(cause: Exception) -> str:
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
