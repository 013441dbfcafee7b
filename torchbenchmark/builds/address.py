"""Addresses of package indexes and wheels, which go into plans, logs and errors and must therefore hold no secret."""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

_LONGEST = 1000


def address_of(*schemes: str) -> Callable[[str], str]:
    """A check of an address; it raises ValueError with a message that never repeats the text."""

    def check(text: str) -> str:
        # The text itself stays out of every message: it may hold a password.
        try:
            parts = urlsplit(text)
            host = parts.hostname
            _ = parts.port
        except ValueError as error:
            raise ValueError("is not an address") from error
        if "@" in parts.netloc:
            raise ValueError(
                "holds credentials, which would end up in plans and logs; leave them out and keep them in ~/.netrc, "
                "which pip reads too"
            )
        if parts.query or parts.fragment:
            raise ValueError("has a query or a fragment, which the address of an index has not and a token may be in")
        if parts.scheme not in schemes or (parts.scheme != "file" and not host):
            raise ValueError(f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        if any(not character.isprintable() or character.isspace() for character in text):
            raise ValueError("holds a space or a control character")
        return text.rstrip("/")

    return check


Index = Annotated[str, Field(max_length=_LONGEST), AfterValidator(address_of("https", "http"))]
ExtraIndex = Annotated[str, Field(max_length=_LONGEST), AfterValidator(address_of("https", "http", "file"))]
