"""What pydantic finds wrong with a content, in the words of a person who wrote it: expected, found, what to write."""

import difflib
import types
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from torchbenchmark.foreign_text import one_line

_LONGEST_SHOWN = 60  # characters of a value
# In the place of what is wrong: that a key itself is, and the tags by which schemas tell forms of a value apart.
_MARKS = ("[key]", "[keys]", "[list]", "[name]")

_WHOLE, _NUMBER, _TRUTH, _KEYS = "a whole number", "a number", "true or false", "keys with values"
_KINDS = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "string_type": "text",
    "path_type": "a path",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": _KEYS,
    "mapping_type": _KEYS,
    "model_type": _KEYS,
    "model_attributes_type": _KEYS,
    "dataclass_type": _KEYS,
    "dataclass_exact_type": _KEYS,
    "invalid_key": "text as the key",
}
_BOUNDS: dict[str, tuple[str, str]] = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("of at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("of at most", "le"),
}
_LENGTHS: dict[str, tuple[str, str, str, str]] = {
    "too_short": ("at least", "min_length", "entry", "entries"),
    "too_long": ("at most", "max_length", "entry", "entries"),
    "string_too_short": ("a text of at least", "min_length", "character", "characters"),
    "string_too_long": ("a text of at most", "max_length", "character", "characters"),
}


def describe(problem: ErrorDetails, schema: type[BaseModel] | None = None) -> str:
    """One line for a problem: its key, what was expected there and what was found. With the schema, the keys that an
    unknown one may have been meant for."""
    path = key_path(problem)
    key = ".".join(str(part) for part in path)
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key}{_keys_meant(schema, path)}"
    if problem["type"] == "missing":
        return f"key {key}: is missing"
    said = _said(problem)
    return f"key {key}: {said}" if key else said


def key_path(problem: ErrorDetails) -> tuple[int | str, ...]:
    """The keys and indices that lead to what is wrong, without the marks that stand among them."""
    return tuple(part for part in problem["loc"] if part not in _MARKS)


def found(value: object) -> str:
    """A value as it is told. An address with credentials is not shown: an error goes into logs."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {_shortened(repr(value))}"
    if isinstance(value, date):
        return f"the date {value}"
    if isinstance(value, str):
        if "@" in value and "://" in value:
            return "an address with credentials"
        return f"the text {_shortened(repr(one_line(value)))}" if value else "an empty text"
    if isinstance(value, Mapping):
        return _KEYS if value else "an empty mapping"
    if isinstance(value, Sequence):
        return "a list" if value else "an empty list"
    return type(value).__name__


def _said(problem: ErrorDetails) -> str:
    kind, value, limits = problem["type"], problem.get("input"), problem.get("ctx", {})
    if kind in _KINDS:
        return f"expected {_KINDS[kind]}, found {found(value)}{_hint(_KINDS[kind], value)}"
    if kind in _BOUNDS:
        word, limit = _BOUNDS[kind]
        return f"expected a number {word} {limits[limit]:g}, found {found(value)}"
    if kind in ("literal_error", "enum"):
        choice = str(limits["expected"]).replace("'", "")
        return f"expected {choice}, found {found(value)}{_choice_meant(choice, value)}"
    if kind in _LENGTHS:
        words, limit, one, many = _LENGTHS[kind]
        length = limits[limit]
        return f"expected {words} {length} {one if length == 1 else many}, found {_length(value)}"
    if kind == "string_pattern_mismatch":
        return f"expected the form {limits['pattern']}, found {found(value)}"
    if kind == "value_error":
        return str(limits["error"])
    return f"{problem['msg'][0].lower()}{problem['msg'][1:]}"


def _hint(wanted: str, value: object) -> str:
    """What to write instead, where that can be known."""
    if wanted == "a list" and isinstance(value, str) and value and _is_plain(value):
        return f"; write [{value}]"
    if wanted == "text" and isinstance(value, int | float | date):
        return "; put it in quotes"
    if wanted in (_WHOLE, _NUMBER) and isinstance(value, str) and _is_number(value):
        return "; write numbers without quotes and, in YAML, with a dot: 1.0e-05"
    return ""


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST_SHOWN and text.isprintable() and not any(mark in text for mark in "[]{},:#'\"@")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _length(value: object) -> str:
    """A text or an empty list as it is; of a list with entries only how many they are."""
    return found(value) if isinstance(value, str) or not isinstance(value, Sequence) or not value else str(len(value))


def _choice_meant(choice: str, value: object) -> str:
    close = difflib.get_close_matches(str(value), choice.replace(" or ", ", ").split(", "), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _keys_meant(schema: type[BaseModel] | None, path: tuple[int | str, ...]) -> str:
    model = _schema_at(schema, path[:-1])
    if model is None:
        return ""
    known = [field.alias or name for name, field in model.model_fields.items()]
    close = difflib.get_close_matches(str(path[-1]), known, n=3)
    return f"; did you mean {', '.join(close)}?" if close else f"; known: {', '.join(known)}"


def _schema_at(schema: Any, path: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model of the mapping at a path of keys and indices; None where it is not one model alone."""
    here = schema
    for step in path:
        here = _entry_of(_unwrapped(here), step)
    here = _unwrapped(here)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _entry_of(kind: Any, step: int | str) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        return fields.get(str(step))
    arguments = [one for one in get_args(kind) if one is not Ellipsis]
    return arguments[-1] if arguments else None


def _unwrapped(kind: Any) -> Any:
    """The annotation without its metadata, and without the None that stands for an absent value; of several, the one
    that has keys."""
    if get_origin(kind) is Annotated:
        return _unwrapped(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        others = [_unwrapped(one) for one in get_args(kind) if one is not type(None)]
        with_keys = [one for one in others if isinstance(one, type) and issubclass(one, BaseModel)]
        return next(iter(others if len(others) == 1 else with_keys if len(with_keys) == 1 else ()), None)
    return kind


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
