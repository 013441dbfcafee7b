"""Who is told of what: the key `owners` of the configuration. A mention is written from there alone."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Discriminator, Tag

Owners = tuple[str, ...] | Mapping[str, tuple[str, ...]]
# Of each form it is told what is wrong with it, and not with the other.
OwnersOrGlobs = Annotated[
    Annotated[tuple[str, ...], Tag("[list]")] | Annotated[dict[str, tuple[str, ...]], Tag("[keys]")],
    Discriminator(lambda value: "[keys]" if isinstance(value, Mapping) else "[list]"),
]
ANY = "*"  # the glob of those who own what nobody else does


def owners_of(owners: Owners, models: Iterable[str] = (), paths: Iterable[str] = ()) -> tuple[str, ...]:
    """Those of the models, and of the paths that a culprit touched, each once, in the order of the configuration; where
    no other glob fits those of `*`. A list is of everything."""
    if not isinstance(owners, Mapping):
        return owners
    names = [*models, *paths]
    fitting = [glob for glob in owners if glob != ANY and any(fnmatchcase(name, glob) for name in names)]
    return tuple(dict.fromkeys(owner for glob in fitting or [ANY] for owner in owners.get(glob, ())))
