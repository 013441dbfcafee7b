"""Labels of a repository. Their names differ by more than case, and are found in any case."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from githubkit_schemas.latest import models

from fake_github.refusals import invalid, not_found, too_long
from fake_github.routing import Reply, Request, Routes
from fake_github.world import node_id

ROUTES = Routes()
PATH = "/repos/{owner}/{repo}/labels"
_COLOR = re.compile(r"[0-9a-fA-F]{6}")
_DEFAULT_COLOR = "ededed"
_LONGEST_NAME, _LONGEST_DESCRIPTION = 50, 100


@dataclass
class Label:
    id: int
    name: str
    color: str = _DEFAULT_COLOR
    description: str | None = None


@ROUTES.add(f"GET {PATH}", needs="issues: read", model=models.Label, paged=True)
def list_labels(request: Request) -> Reply:
    labels = sorted(_labels(request).values(), key=lambda label: label.name.casefold())
    return Reply([_whole(request, label) for label in labels])


@ROUTES.add(f"POST {PATH}", needs="issues: write", body=models.ReposOwnerRepoLabelsPostBody, model=models.Label)
def create_label(request: Request) -> Reply:
    _must_write(request)
    label = Label(request.world.new_id(), "")
    _set(request, label, request.body["name"], request.body)
    _labels(request)[label.id] = label
    return Reply(_whole(request, label), 201)


@ROUTES.add(f"GET {PATH}/{{name}}", needs="issues: read", model=models.Label)
def get_label(request: Request) -> Reply:
    return Reply(_whole(request, _get(request)))


@ROUTES.add(
    f"PATCH {PATH}/{{name}}", needs="issues: write", body=models.ReposOwnerRepoLabelsNamePatchBody, model=models.Label
)
def update_label(request: Request) -> Reply:
    _must_write(request)
    label = _get(request)
    _set(request, label, request.body.get("new_name", label.name), request.body)
    return Reply(_whole(request, label))


def label_named(request: Request, name: str) -> Label | None:
    return next((one for one in _labels(request).values() if one.name.casefold() == name.casefold()), None)


def label_made(request: Request, name: str) -> Label:
    """The label of that name, made if there is none, as GitHub does for an issue that is given it."""
    found = label_named(request, name)
    if found is None:
        found = Label(request.world.new_id(), "")
        _set(request, found, name, {})
        _labels(request)[found.id] = found
    return found


def on_issue(request: Request, label: Label) -> dict[str, Any]:
    """A label as an issue shows it."""
    return {
        "id": label.id,
        "node_id": node_id("Label", label.id),
        "url": f"{request.url}/labels/{quote(label.name, safe='')}",
        "name": label.name,
        "color": label.color,
        "default": False,
        "description": label.description,
    }


def _whole(request: Request, label: Label) -> dict[str, Any]:
    return {**on_issue(request, label), "archived_at": None, "archived_by": None}


def _labels(request: Request) -> dict[int, Label]:
    return request.repository.table(Label)


def _get(request: Request) -> Label:
    label = label_named(request, request.places["name"])
    if label is None:
        raise not_found()
    return label


def _must_write(request: Request) -> None:
    if not request.has_role("write"):
        raise not_found()


def _set(request: Request, label: Label, name: str, changes: dict[str, Any]) -> None:
    """Writes a label, if all of what it is to be is valid."""
    color, description = changes.get("color", label.color), changes.get("description", label.description)
    if not name.strip():
        raise invalid("Label", "name", "missing_field")
    too_long("Label", "name", name, _LONGEST_NAME)
    too_long("Label", "description", description, _LONGEST_DESCRIPTION)
    if not _COLOR.fullmatch(color):
        raise invalid("Label", "color", "invalid")
    if label_named(request, name) not in (None, label):
        raise invalid("Label", "name", "already_exists")
    label.name, label.color, label.description = name, color.lower(), description
