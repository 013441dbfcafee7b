"""What inside the tests of an alert got slower, as it is kept with the alert, and how much a night may profile: the key
`attribute` of the configuration."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class AttributeSettings(BaseModel):
    """See docs/configuration.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tests: Annotated[int, Field(ge=0, le=100)] = 3  # of a night, at most; 0: none
    pairs: Annotated[int, Field(ge=2, le=100)] = 6  # of each


class Inside(BaseModel):
    """Both builds of what was confirmed, profiled by turns; or why that was not done. It is not tried again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    episode: int  # how often the alert had been open before: a relapse is another change
    base: str = ""  # id of the build before
    head: str = ""
    told: tuple[str, ...] = ()  # a sentence a test, plain text
    tables: str = ""  # Markdown, foreign text in code spans
    reason: str = ""  # why there is none
