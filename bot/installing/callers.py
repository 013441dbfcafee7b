"""The workflows of a repository that installs the bot: each calls that of the bot of the same name."""

import re
from dataclasses import dataclass
from pathlib import Path

from bot.errors import BotError

TEMPLATES = Path(__file__).parent / "workflows"
NAMES = ("nightly", "watchdog", "bisect", "benchmark", "issue-commands")
_BOT = re.compile(r"([A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})@([0-9a-f]{40})")


@dataclass(frozen=True)
class Bot:
    """The repository of the bot, and the commit of it that is installed."""

    repository: str
    commit: str

    @classmethod
    def parse(cls, text: str) -> "Bot":
        """Of OWNER/NAME@COMMIT. Raises BotError; a branch or a tag could be moved to code that nobody has looked at."""
        if (found := _BOT.fullmatch(text)) is None:
            raise BotError(f"--bot: expected OWNER/NAME@COMMIT with all 40 digits of the commit, found {text!r}")
        return cls(found[1], found[2])


def callers(bot: Bot, enterprise_server: bool = False) -> dict[str, str]:
    """The text of each workflow, by its path in the repository. GitHub Enterprise Server refuses keys that it does not
    know yet."""
    return {f".github/workflows/{name}.yml": _caller(name, bot, enterprise_server) for name in NAMES}


def _caller(name: str, bot: Bot, enterprise_server: bool) -> str:
    text = (TEMPLATES / f"{name}.yml").read_text(encoding="utf-8")
    if enterprise_server:
        text = re.sub(r"^cache-mode: .*\n\n", "", text, flags=re.MULTILINE)
    return text.replace("BOT_REPOSITORY", bot.repository).replace("BOT_COMMIT", bot.commit)
