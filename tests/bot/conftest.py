"""GitHub, as far as tests of the bot need it."""

from collections.abc import Iterator

import pytest
from github_servers import GitHub, github, needs_emulator, own_github


@pytest.fixture(params=[pytest.param("emulator", marks=needs_emulator), "fake"])
def hub(request, tmp_path, monkeypatch) -> Iterator[GitHub]:
    """Each server in turn, with this process as the bot. The fake needs nothing installed and is never skipped."""
    start = github if request.param == "emulator" else own_github
    with start(tmp_path) as hub:
        hub.use(monkeypatch)
        yield hub


@pytest.fixture
def pauses(hub, monkeypatch) -> list[float]:
    """What the bot has waited, in seconds of the fake's clock, which goes on by as much at once."""
    from bot.github import client as client_module  # PyGithub, which few tests need

    made: list[float] = []

    def pause(seconds: float) -> None:
        made.append(seconds)
        hub.fake.world.clock.advance(seconds)

    monkeypatch.setattr(client_module.time, "sleep", pause)
    return made
