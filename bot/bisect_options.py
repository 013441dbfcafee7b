"""Which options of `bisect` go together, and what follows from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from bot.bisect_settings import DEFAULT_CHANNEL
from bot.errors import BotError
from torchbenchmark.channels import CHANNELS


def channel_named(name: str | None, device: str) -> str:
    chosen = name or DEFAULT_CHANNEL[device]
    kind = CHANNELS.get(chosen)
    if kind is None or (kind.side != "cpu" and device != "cuda"):
        raise BotError(f"--channel {chosen}: {'is no channel' if kind is None else 'needs a GPU'}")
    return chosen


def require_one_comparison(measure: str | None, given: Mapping[str, bool], channel: str | None) -> None:
    """Raises BotError for ways of comparing that are not of --measure or --tests, or are two."""
    chosen = [name for name, wanted in given.items() if wanted]
    if len(chosen) > 1:
        raise BotError(f"{' and '.join(chosen)}: are two ways of comparing; name one")
    for name in chosen:
        if (measure is None) != (name == "--status"):
            raise BotError(f"{name}: is of {'--tests' if name == '--status' else '--measure'}")
    if given["--status"] and channel is not None:
        raise BotError(f"--status and --channel {channel}: are two ways of comparing; name one")


def prior_named(name: str) -> Literal["flat", "paths"]:
    if name == "flat" or name == "paths":
        return name
    raise BotError(f"--prior {name}: is none; there are flat, paths")


def require_of_the_range(
    repo: Path | None,
    dates: bool,
    measure: str | None,
    build: str | None,
    wheels: str | None,
    nightly_repo: Path | None,
    pre: bool,
    run_in: Path | None,
) -> None:
    """Raises BotError for options of another kind of range."""
    releases = repo is None and not dates
    for option, given, fits in (
        ("--build", build is not None, repo is not None and wheels is None),
        ("--wheels", wheels is not None, not releases),
        ("--nightly-repo", nightly_repo is not None, dates),
        ("--pre", pre, releases),
        ("--in", run_in is not None, measure is not None and (repo is None or wheels is not None)),
    ):
        if given and not fits:
            raise BotError(f"{option}: is not of this kind of range; see --help")
    if run_in is not None and not run_in.is_dir():
        raise BotError(f"--in {run_in}: is no folder")


def measuring_options(
    measure: str | None,
    higher_is_better: bool,
    tests: Sequence[str] | None,
    suite: str,
    models: Sequence[Path] | None,
    device: str,
    channel: str | None,
    subject: str | None,
    threads: int | None,
    budget: float | None,
    config: Path | None,
    beyond: float | None,
    compared: Sequence[str],
) -> list[str]:
    """The options that say what is measured, for a further command."""
    words: list[str] = ["--config", str(config)] if config is not None else []
    words += ["--beyond", f"{beyond:g}"] if beyond is not None else []
    words += compared
    if measure is not None:
        return [*words, "--measure", measure, *(["--higher-is-better"] if higher_is_better else [])]
    words += [word for test in tests or () for word in ("--tests", test)]
    words += [word for folder in models or () for word in ("--models", str(folder))]
    words += ["--suite", suite, "--device", device]
    for option, value in (("channel", channel), ("subject", subject), ("threads", threads), ("budget", budget)):
        words += [f"--{option}", str(value)] if value is not None else []
    return words
