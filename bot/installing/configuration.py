"""The text of a first `.github/torchbench.yml`."""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from torchbenchmark.environment import normalised_name

STORE = "$TORCHBENCH_STORE"
NIGHTLIES_OF_TORCH = {
    "cuda": "https://download.pytorch.org/whl/nightly/cu130",
    "cpu": "https://download.pytorch.org/whl/nightly/cpu",
}
# What the models of the suites need beside the subject, as the bot is tested with it.
REQUIREMENTS = ("numpy==2.4.6", "timm==1.0.31", "transformers==5.24.0")
# The same for a commit of torch, whose version those that ask for a torch of their own would not accept.
BESIDE_A_COMMIT = ("numpy==2.4.6", "transformers==5.24.0", "pillow==13.0.0")
AS_THEY_ARE = ("timm==1.0.31", "torchvision==0.28.0")
BESIDE_TORCH = "torchvision"  # which timm imports, and which fits its own torch only


@dataclass(frozen=True)
class Choices:
    """What may be chosen on the command line; the rest has its defaults, or is edited afterwards."""

    subject: str = "torch"
    index: str | None = None  # of nightly wheels of the subject
    python: str | None = None  # interpreter of the measuring machines, instead of the index
    command: str | None = None  # a shell line that builds a commit of it
    store: str = STORE
    suite: str = "v1"
    device: str = "cuda"
    runner: tuple[str, ...] = ("self-hosted", "gpu")


def configuration(choices: Choices) -> str:
    """The YAML, with a comment to each part; docs/configuration.md describes every key."""
    parts = [
        _HEAD,
        f"suite: {_plain(choices.suite)}\ndevice: {_plain(choices.device)}\nsubject: {_plain(choices.subject)}\n",
        _build(choices),
        _builds(choices),
        f"{_STORE}store: {_plain(choices.store)}\ngithub: $GITHUB_REPOSITORY # where the workflows run\n",
        _POLICY,
        _FILE,
        f"{_RUNNERS}runners:\n  measuring: {_plain(list(choices.runner))}\n",
        f"{_PULL_REQUESTS}  runner: {_plain(list(choices.runner))}\n",
        _OWNERS,
    ]
    return "\n".join(part for part in parts if part)


def _plain(value: object) -> str:
    """A value on one line of YAML, in quotes where it needs them."""
    return yaml.safe_dump(value, default_flow_style=True, width=2**20, allow_unicode=True).removesuffix("...\n").strip()


def _build(choices: Choices) -> str:
    said = ""
    if choices.python is not None or choices.index is None:
        said = (
            "# Measured every night: this interpreter of the measuring machine, with the subject in it. Instead,\n"
            "# `build` installs the newest wheels of an index first (docs/nightly.md).\n"
            f"python: {_plain(choices.python or 'python3')}\n"
        )
    if choices.index is None:
        return said
    packages = [choices.subject, *([BESIDE_TORCH] if choices.subject == "torch" else [])]
    return said + (
        "# Measured every night: the newest wheels of this index that are of one date.\n"
        "build:\n"
        f"  index: {_plain(choices.index)}\n"
        f"  packages: {_plain(packages)}\n"
        '  python: "3.12" # which the measuring machines have\n'
        f"  requirements: {_plain(_beside(choices.subject, REQUIREMENTS))}\n"
    )


def _beside(subject: str, requirements: Sequence[str]) -> list[str]:
    """Without the subject, of which the version that is measured is not pinned."""
    return [one for one in requirements if one.partition("==")[0] != normalised_name(subject)]


def _builds(choices: Choices) -> str:
    """How `/benchmark` and a bisection build a commit."""
    lines = [
        "# How a commit becomes wheels, for /benchmark and bisections, and what comes beside (docs/builds.md).",
        "builds:",
    ]
    if choices.subject == "torch":
        lines.append(f"  requirements: {_plain(list(BESIDE_A_COMMIT))}")
        lines.append(f"  without_dependencies: {_plain(list(AS_THEY_ARE))}")
    else:
        lines.append(f"  requirements: {_plain(_beside(choices.subject, REQUIREMENTS))}")
    if choices.command is not None:
        lines += ["  git:", f"    command: {_plain(choices.command)}"]
    return "\n".join(lines) + "\n"


_HEAD = """\
# What torchbench measures here, where it keeps it, and whom it tells. Checked with its lines:
#     torchbench check .github/torchbench.yml
# docs/configuration.md of the bot describes every key.
"""
_STORE = "# A folder is for trying out; $NAME is a variable of the environment.\n"
_POLICY = """\
# What is called slower at once: a name, a path, or the keys themselves. Smaller changes are screened for and confirmed.
policy: default
"""
_FILE = """\
# What becomes an issue, and when: `confirmed` that night, `persistent` on the second, `never`.
file:
  failing: confirmed
  severe: persistent
  regression: persistent
  improvement: never
"""
_RUNNERS = (
    "# Labels of the machines that measure. `second`: others of the same class, which are asked in the same night.\n"
)
_PULL_REQUESTS = """\
# /benchmark in a comment on a pull request: who may beside those with write access, and how much of a machine it takes.
pull_requests:
  teams: [] # organisation/team
  budget_minutes: 60
  most_budget_minutes: 240
  most_tests: 120
"""
_OWNERS = """\
owners: [] # mentioned in an issue, in quotes: "@organisation/team"
"""
