"""`torchbench init`: the files of a repository that installs the bot. `torchbench check`: is its file right?"""

import os
import re
import subprocess
from pathlib import Path
from typing import Annotated, Literal

import typer
import yaml
from pydantic import ValidationError

from bot.config import NightlyConfig, load_config
from bot.errors import BotError
from bot.installing.callers import Bot, callers
from bot.installing.configuration import NIGHTLIES_OF_TORCH, STORE, Choices, configuration
from bot.readiness import NotReady, require_ready, require_store
from torchbenchmark.quantity import counted
from torchbenchmark.registry import Registry, load_suite
from torchbenchmark.terminal import console
from torchbenchmark.yaml_files import first_problem, line_of, load_yaml

CONFIG = Path(".github/torchbench.yml")
_ROOT = Path(__file__).parents[2]
_ON_GITHUB = re.compile(r"(?:https://|ssh://git@|git@)[^/:]+[/:]([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
# What a check takes for the variables that are set on GitHub only.
_PLACEHOLDERS = {"store": "s3://bucket/prefix", "github": "owner/name"}


def register(app: typer.Typer) -> None:
    app.command("init")(init_command)
    app.command("check")(check_command)


def init_command(
    folder: Annotated[Path, typer.Argument(help="The checkout of the repository that installs the bot.")] = Path(),
    repository: Annotated[
        str | None, typer.Option(help="Its OWNER/NAME, for the addresses that are printed (default: its origin).")
    ] = None,
    subject: Annotated[str, typer.Option(help="The package whose speed is in question.")] = "torch",
    build: Annotated[
        list[str] | None,
        typer.Option(help="An index of nightly wheels, or a shell line that builds a commit; may be given twice."),
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="Measure this interpreter of the measuring machines, and no wheels of an index.")
    ] = None,
    store: Annotated[str, typer.Option(help="s3://bucket/prefix; else the variable of the repository.")] = STORE,
    suite: Annotated[str, typer.Option(help="What is measured; `torchbench list` shows what there is.")] = "v1",
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="What it is measured on.")] = "cuda",
    runner: Annotated[str, typer.Option(help="Labels of the measuring machines.")] = "self-hosted,gpu",
    bot: Annotated[
        str | None, typer.Option(help="OWNER/NAME@COMMIT of the bot to call (default: that of this checkout).")
    ] = None,
    enterprise_server: Annotated[
        bool, typer.Option("--enterprise-server", help="For GitHub Enterprise Server, which knows fewer keys.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write .github/torchbench.yml and the workflows that call this bot, and say what remains to be done."""
    if repository is not None and _REPOSITORY.fullmatch(repository) is None:
        raise BotError(f"--repository: expected OWNER/NAME, found {repository!r}")
    index, command = _told_apart(build or [])
    if index is None and python is None and subject == "torch":
        index = NIGHTLIES_OF_TORCH[device]
    labels = tuple(label for label in re.split(r"[,\s]+", runner) if label)
    choices = Choices(subject, index, python, command, store, _from_configuration(suite, folder), device, labels)
    called = _this_checkout() if bot is None else Bot.parse(bot)
    files = {str(CONFIG): configuration(choices), **callers(called, enterprise_server)}
    load_suite(suite)
    _require_valid(files[str(CONFIG)])
    _write(folder, files, force)
    _say_what_is_next(repository or _origin(folder), choices, called)


def check_command(
    config: Annotated[Path, typer.Argument(help="The configuration.")] = CONFIG,
) -> None:
    """Check a configuration: its keys and values, and that what it names is there."""
    if not os.path.lexists(config):
        raise BotError(
            f"{config}: is not there; `torchbench init` writes {CONFIG}, or name another: torchbench check FILE"
        )
    content = load_yaml(config, BotError)
    for key, placeholder in _PLACEHOLDERS.items():
        value = content.get(key) if isinstance(content, dict) else None
        if isinstance(value, str) and value.startswith("$") and not os.environ.get(value[1:]):
            os.environ[value[1:]] = placeholder
            console.print(f"{key}: {value} is not set here, and is not checked", markup=False)
    chosen = load_config(config)
    try:
        require_store(chosen.store)
        require_ready(chosen)
    except NotReady as named:
        line = line_of(config, named.key.split("."))
        where = f"key {named.key} (line {line})" if line else f"key {named.key}, which is not set"
        raise BotError(f"{config}: {where}: {named.problem}") from named
    tests = len(Registry(chosen.models).experiments(load_suite(chosen.suite), [chosen.device]))
    console.print(f"{config}: is right; {counted(tests, 'test')} of {chosen.suite} on {chosen.device}", markup=False)


def _from_configuration(suite: str, folder: Path) -> str:
    """The path of a suite of one's own as the configuration is to have it, which takes paths from where it lies."""
    return os.path.relpath(suite, folder / CONFIG.parent) if suite.endswith((".yaml", ".yml")) else suite


def _told_apart(given: list[str]) -> tuple[str | None, str | None]:
    """The index and the shell line among what `--build` names."""
    indexes = [one for one in given if re.match(r"https?://", one)]
    commands = [one for one in given if one not in indexes]
    if len(indexes) > 1 or len(commands) > 1:
        raise BotError("--build: name one index of wheels (http…) and one shell line at most")
    return next(iter(indexes), None), next(iter(commands), None)


def _require_valid(text: str) -> None:
    """Raises BotError for an option that makes a configuration which would be refused."""
    given = yaml.safe_load(text)
    known = {key: _PLACEHOLDERS[key] for key in _PLACEHOLDERS if str(given[key]).startswith("$")}
    try:
        NightlyConfig.model_validate({**given, **known})
    except ValidationError as error:
        raise BotError(f"this would be no configuration: {first_problem(error, NightlyConfig)}") from error
    if "store" not in known:
        require_store(given["store"])


def _write(folder: Path, files: dict[str, str], force: bool) -> None:
    """All of the files, or none if one is there already."""
    if not folder.is_dir():
        raise BotError(f"{folder}: is no folder; name the checkout of the repository that installs the bot")
    there = [name for name in files if os.path.lexists(folder / name)]
    if there and not force:
        raise BotError(f"{folder}: {', '.join(there)} there already, nothing was written; --force overwrites")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # a link is not written through
        path.write_text(text, encoding="utf-8")
        console.print(f"wrote {path}", markup=False, soft_wrap=True)


def _this_checkout() -> Bot:
    """The bot's repository and commit, if it runs from a clone of GitHub."""
    repository, commit = _origin(_ROOT), _git(_ROOT, "rev-parse", "HEAD") if (_ROOT / ".git").exists() else None
    if repository is None or commit is None:
        raise BotError("this bot is no clone from GitHub: name the one to call with --bot OWNER/NAME@COMMIT")
    if _git(_ROOT, "branch", "--remotes", "--contains", commit) == "":
        raise BotError(f"commit {commit[:12]} of this bot was not pushed; push it, or name another with --bot")
    return Bot(repository, commit)


def _origin(folder: Path) -> str | None:
    """OWNER/NAME of where a clone is from, as it was named or as git's `insteadOf` has it."""
    for asked in (("config", "--get", "remote.origin.url"), ("remote", "get-url", "origin")):
        if (found := _ON_GITHUB.fullmatch(_git(folder, *asked) or "")) is not None:
            return found[1]
    return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def _say_what_is_next(repository: str | None, choices: Choices, bot: Bot) -> None:
    where = repository or "OWNER/NAME"
    variables = ["TORCHBENCH_REGION", "TORCHBENCH_READER_ROLE", "TORCHBENCH_WRITER_ROLE", "TORCHBENCH_IMAGE"]
    if choices.store == STORE:
        variables.insert(0, "TORCHBENCH_STORE=s3://bucket/prefix")
    lines = (
        "",
        "what remains:",
        f"1. look at {CONFIG}, and check it: torchbench check",
        f"2. two roles that {where} may assume, one reading and one writing the store",
        f"3. variables of {where} (Settings, Secrets and variables, Actions): {', '.join(variables)}",
        f"4. a machine as its runner, with the labels {', '.join(choices.runner)}",
        "5. commit and push to the default branch; start `nightly` by hand, or say /benchmark on a pull request",
        f"each step with its commands: docs/install.md of {bot.repository} at {bot.commit[:12]}",
    )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
