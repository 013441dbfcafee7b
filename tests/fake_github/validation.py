"""githubkit's models as the arbiter: an answer that GitHub would not give, and a request that GitHub would half ignore,
are mistakes of the fake or of the code under test."""

import json
from functools import cache
from typing import Any

from githubkit_schemas.latest import models
from pydantic import TypeAdapter, ValidationError

from fake_github.refusals import unreadable


def mistake_in_answer(content: Any, model: Any) -> str | None:
    """What githubkit's model says against an answer."""
    if model is None:
        return None if content is None else "an answer without a model has a body"
    adapter = _adapter(model)
    try:
        value = adapter.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        return _first(error)
    unknown = _unknown(content, adapter.dump_python(value, mode="json", by_alias=True, exclude_unset=True))
    return f"GitHub has no field {unknown[0]} there" if unknown else None


def mistake_in_refusal(content: dict[str, Any]) -> str | None:
    return mistake_in_answer(content, models.ValidationError if "errors" in content else models.BasicError)


def fields_that_github_ignores(body: Any, model: Any) -> list[str]:
    """The fields of a request's body that its model does not know. Refuses, as GitHub does, a body of another shape."""
    adapter = _adapter(model)
    try:
        value = adapter.validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        missing = [problem["loc"][0] for problem in error.errors() if problem["type"] == "missing"]
        if missing:
            raise unreadable(f'"{missing[0]}" wasn\'t supplied.') from error
        raise unreadable(_first(error)) from error
    return _unknown(body, adapter.dump_python(value, mode="json", by_alias=True, exclude_unset=True))


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"For '{'/'.join(str(part) for part in problem['loc'])}': {problem['msg']}"


def _unknown(sent: Any, known: Any, path: str = "") -> list[str]:
    """The fields in `sent` that were lost on the way through the model."""
    if isinstance(sent, dict) and isinstance(known, dict):
        lost = [f"{path}{name}" for name in sent if name not in known]
        return lost + [
            one for name in sent if name in known for one in _unknown(sent[name], known[name], f"{path}{name}.")
        ]
    if isinstance(sent, list) and isinstance(known, list):
        return [one for left, right in zip(sent, known, strict=True) for one in _unknown(left, right, path)]
    return []
