"""JSON that other programs wrote, looked into with errors that name file and key."""

import json
from pathlib import Path
from typing import Any

from baselines.errors import BaselineError


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror}; check the name") from error


def parse(text: str, where: str, expected: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{where}: no JSON ({error}); it is damaged or cut off: expected {expected}") from error


def member(container: Any, key: str, kind: type, where: str) -> Any:
    """container[key], which has to be there and of that kind."""
    if not isinstance(container, dict) or not isinstance(container.get(key), kind):
        what = {dict: "an object", list: "a list", str: "a text"}[kind]
        raise BaselineError(f"{where}: key {key}: expected {what}; is this file of another --format?")
    return container[key]


def number(value: Any, where: str) -> float | None:
    """A number, also as a text; None for null."""
    if value is None:
        return None
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise BaselineError(f"{where}: {str(value)[:80]!r} is no number")
