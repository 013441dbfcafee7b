"""What differs between two nights beside the numbers: the first question of whoever reads an alert."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from baselines.series import NightSummary

Group = Literal["build", "environment", "measuring", "harness"]


class Difference(BaseModel):
    """One field that changed; None where it is absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: Group
    field: str
    old: str | None
    new: str | None


def differences(old: NightSummary, new: NightSummary) -> list[Difference]:
    """The fields of build, environment, measuring and harness that are not the same in both nights."""
    before, after = _fields(old), _fields(new)
    return [
        Difference(group=group, field=field, old=before.get((group, field)), new=after.get((group, field)))
        for group, field in sorted(before.keys() | after.keys())
        if before.get((group, field)) != after.get((group, field))
    ]


def _fields(night: NightSummary) -> dict[tuple[Group, str], str]:
    # The interpreter's path and the id name the place of the build, not what is in it.
    build = night.build.model_dump(mode="json", exclude={"id", "interpreter"})
    fields: dict[tuple[Group, str], str] = {}
    for group, values in (
        ("build", build),
        ("environment", {"fingerprint": night.environment.fingerprint, **night.environment.facts}),
        ("measuring", night.measuring.model_dump(mode="json")),
        ("harness", {"version": night.harness}),
    ):
        fields.update({(group, name): value for name, value in _flat(values)})
    return fields


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        elif value is not None:
            yield f"{path}{name}", str(value)
