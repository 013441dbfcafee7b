"""A mistake in a YAML file in plain words: the file, the key, what was expected and what was found."""

import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.yaml_files import read_yaml


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Bed(_Strict):
    flower: str
    rows: int = 1
    place: Literal["front", "back"] = "front"


class Garden(_Strict):
    name: Annotated[str, Field(min_length=1, max_length=8)]
    models: Annotated[tuple[str, ...], Field(min_length=1, max_length=3)] = ("rose",)
    rounds: Annotated[int, Field(ge=1, le=9)] = 1
    budget: Annotated[float, Field(gt=0, lt=5, allow_inf_nan=False, strict=True)] = 1.0
    fenced: bool = False
    shed: Path | None = None
    beds: tuple[Bed, ...] = ()
    main: Bed | None = None
    by_side: dict[Literal["north", "south"], tuple[Bed, ...]] = {}
    owner: Annotated[str, Field(pattern="^[a-z]+/[a-z]+$")] = "a/b"
    gate: str = "old"

    @field_validator("gate")
    @classmethod
    def _is_there(cls, gate: str) -> str:
        if gate == "none":
            raise ValueError("a garden needs a gate")
        return gate

    @model_validator(mode="after")
    def _fits(self) -> "Garden":
        if self.fenced and self.gate == "open":
            raise ValueError("both `fenced` and an open `gate`: keep one")
        return self


def told_with_line(folder: Path, text: str) -> str:
    path = folder / "garden.yaml"
    path.write_text(text)
    with pytest.raises(BenchmarkError) as caught:
        read_yaml(path, Garden)
    return str(caught.value).removeprefix(f"{path}: ")


def told(folder: Path, text: str) -> str:
    """What is told of a mistake, without the line that it is in."""
    return re.sub(r" \(line \d+\)$", "", told_with_line(folder, text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: a\n\nrounds: 0\n", 3),
        ("name: a\nbeds:\n  - flower: a\n  - flower: b\n    rows: many\n", 5),
        ("name: a\nbeds:\n  - rows: 1\n", 3),
        ("name: a\nweeds: 3\n", 2),
        ("rounds: 2\n", None),
    ],
)
def test_the_line_of_the_key_is_told_or_that_of_the_innermost_around_it(tmp_path, text, line):
    said = told_with_line(tmp_path, text)
    assert said.endswith(f" (line {line})") if line else "(line" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: resnet18", "key models: expected a list, found the text 'resnet18'; write [resnet18]"),
        ("models: 'a, b'", "key models: expected a list, found the text 'a, b'"),
        ("models: 3", "key models: expected a list, found the number 3"),
        ("models:", "key models: expected a list, found nothing"),
        ("models: {a: 1}", "key models: expected a list, found keys with values"),
        ("models: []", "key models: expected at least 1 entry, found an empty list"),
        ("models: [a, b, c, d]", "key models: expected at most 3 entries, found 4"),
        ("models: [a, 3.1]", "key models.1: expected text, found the number 3.1; put it in quotes"),
        ("gate: no", "key gate: expected text, found false; put it in quotes"),
        ("gate: [a]", "key gate: expected text, found a list"),
        ('rounds: "three"', "key rounds: expected a whole number, found the text 'three'"),
        ("rounds: 2.5", "key rounds: expected a whole number, found the number 2.5"),
        ("rounds: []", "key rounds: expected a whole number, found an empty list"),
        ("rounds: 0", "key rounds: expected a number of at least 1, found the number 0"),
        ("rounds: 10", "key rounds: expected a number of at most 9, found the number 10"),
        ("budget: 0", "key budget: expected a number above 0, found the number 0"),
        ("budget: 5", "key budget: expected a number below 5, found the number 5"),
        ("budget: .nan", "key budget: expected a finite number, found the number nan"),
        (
            "budget: 1e-05",
            "key budget: expected a number, found the text '1e-05'; "
            "write numbers without quotes and, in YAML, with a dot: 1.0e-05",
        ),
        ("fenced: perhaps", "key fenced: expected true or false, found the text 'perhaps'"),
        ("fenced: [1]", "key fenced: expected true or false, found a list"),
        ("shed: 5", "key shed: expected a path, found the number 5"),
        ("main: rose", "key main: expected keys with values, found the text 'rose'"),
        ("main: {}", "key main.flower: is missing"),
        ("by_side: [a]", "key by_side: expected keys with values, found a list"),
        ("by_side: {nroth: []}", "key by_side.nroth: expected north or south, found the text 'nroth'; "
         "did you mean north?"),
        ("main: {flower: rose, place: bcak}", "key main.place: expected front or back, found the text 'bcak'; "
         "did you mean back?"),
        ("main: {flower: rose, place: roof}", "key main.place: expected front or back, found the text 'roof'"),
        ("owner: nobody", "key owner: expected the form ^[a-z]+/[a-z]+$, found the text 'nobody'"),
        ("gate: none", "key gate: a garden needs a gate"),
        ("fenced: true\ngate: open", "both `fenced` and an open `gate`: keep one"),
        ("model: [a]", "unknown key model; did you mean models?"),
        ("xyz: 1", "unknown key xyz; known: name, models, rounds, budget, fenced, shed, beds, main, by_side, owner, "
         "gate"),
        ("main: {flower: rose, row: 2}", "unknown key main.row; did you mean rows?"),
        ("beds: [{flower: a}, {flower: b, flowre: c}]", "unknown key beds.1.flowre; did you mean flower?"),
        ("by_side: {north: [{flower: a, row: 1}]}", "unknown key by_side.north.0.row; did you mean rows?"),
        ("5: a", "key 5: expected text as the key, found the number 5"),
        ("rounds: 0\nmodel: [a]", "key rounds: expected a number of at least 1, found the number 0 (and 1 more)"),
    ],
)  # fmt: skip
def test_what_was_expected_and_what_was_found_is_told_by_its_key(tmp_path: Path, text: str, words: str) -> None:
    assert told(tmp_path, f"name: a\n{text}\n") == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: ''", "key name: expected a text of at least 1 character, found an empty text"),
        ("name: overlong name", "key name: expected a text of at most 8 characters, found the text 'overlong name'"),
        ("models: [a]", "key name: is missing"),
    ],
)  # fmt: skip
def test_a_text_of_the_wrong_length_and_a_missing_key_are_told(tmp_path: Path, text: str, words: str) -> None:
    assert told(tmp_path, f"{text}\n") == words


def test_a_long_or_broken_text_is_told_on_one_short_line(tmp_path: Path) -> None:
    words = told(tmp_path, f'name: a\nrounds: "{"x" * 500}"\n')
    assert len(words) < 120 and words.endswith("…")
    assert "\n" not in told(tmp_path, 'name: a\nrounds: "one\\ntwo"\n')


def test_credentials_in_an_address_are_not_shown(tmp_path: Path) -> None:
    words = told(tmp_path, "name: a\nowner: https://me:secret@example.org\n")
    assert "secret" not in words and "an address with credentials" in words
