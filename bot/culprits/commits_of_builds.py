"""The commit of a night's build in a repository: what the build says of itself, or what its version says."""

import re
from collections.abc import Iterator
from pathlib import Path

from bot.bisection.git_range import commit_in, subject_in
from bot.errors import BotError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.records import Build

# `2.14.0a0+git1a2b3c4` of PyTorch's own builds, `1.2.dev3+g1a2b3c4` of setuptools-scm.
_IN_VERSION = re.compile(r"\+(?:git|g)([0-9a-f]{7,40})(?:$|[.])")
# A commit of PyTorch's branch `nightly` names the commit of main that it was made of.
_OF_MAIN = re.compile(r"nightly release \(([0-9a-f]{40})\)")


def commit_of(build: Build, repository: Path, end: str) -> str:
    """The commit of a build. Raises BotError, which names what was looked for, if the repository has none of it."""
    candidates = list(_candidates(build))
    for candidate in candidates:
        if (found := commit_in(repository, candidate)) is None:
            continue
        if (main := _OF_MAIN.search(subject_in(repository, found))) is None:
            return found
        if (found := commit_in(repository, main[1])) is not None:
            return found
        candidates.append(main[1])
    what = f"the {end} end is {build.subject} {one_line(build.version)}"
    looked_for = ", ".join(map(one_line, candidates))
    raise BotError(
        f"{what}, and {repository} has none of {looked_for}: is it the repository of {build.subject}, and fetched "
        f"(of a nightly of PyTorch, with its branch `nightly`)? Else name the commit with --{end}"
    )


def _candidates(build: Build) -> Iterator[str]:
    if build.commit:
        yield build.commit
    if (named := _IN_VERSION.search(build.version)) is not None:
        yield named[1]
    public = build.version.partition("+")[0]
    yield f"refs/tags/v{public}"
    yield f"refs/tags/{public}"
