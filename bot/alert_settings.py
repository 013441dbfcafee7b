"""What is done with alerts beside their issues: the keys `alerts` and `notify` of the configuration."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _variable(value: object) -> object:
    """Refused without being repeated: what stands there by mistake may be the address itself."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("say $NAME, the variable of the environment that holds the address; the address is a secret")
    return value


class AlertSettings(BaseModel):
    """See docs/configuration.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    comment_on_culprit: bool = False  # once, on the pull request that brought it


class NotifySettings(BaseModel):
    """See docs/configuration.md. The address is a secret: it is named here, and read where it is used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: Annotated[str, BeforeValidator(_variable)]  # the variable that holds the address
