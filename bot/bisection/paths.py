"""How likely a commit is to change a speed, by the paths that it touched: the one table of the weighted prior.

The factor is that of the simulations that noisy bisection was designed by: an ownership prior that holds the culprit in
a tenth of the commits with a chance of .7 gives one of these (.7 / .1) / (.3 / .9) = 21 times the odds of another; here
20, as in docs/bisection.md. Text, tests and the workflows of a project get the same factor downwards. Which paths are
which is judgement, by how the repositories of PyTorch, torchvision, timm, transformers and torchao are laid out: no
data was fitted. Nothing is impossible: a file of data can slow a program, and the posterior then still finds it.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

HOT, OTHER, HARMLESS = 20.0, 1.0, 0.05

# The first pattern that fits a path decides. `*` is any text, slashes too.
TABLE: tuple[tuple[str, float], ...] = (
    (".ci/docker/ci_commit_pins/*", HOT),  # which Triton, among others
    # What nothing that is measured runs.
    *(
        (pattern, HARMLESS)
        for pattern in (
            "*.md",
            "*.rst",
            "docs/*",
            "*/docs/*",
            "doc/*",
            "test/*",
            "tests/*",
            "*/test/*",
            "*/tests/*",
            "test_*.py",
            "*/test_*.py",
            "*_test.py",
            "*_test.cpp",
            "examples/*",
            "tutorials/*",
            "notebooks/*",
            ".github/*",
            ".circleci/*",
            ".ci/*",
            ".vscode/*",
            "LICENSE*",
            "CODEOWNERS",
            ".gitignore",
            "*/.gitignore",
            "*.lintrunner.toml",
            "*.pyi",
        )
    ),
    # What computes, dispatches, allocates and compiles; and what brings other people's kernels.
    *(
        (pattern, HOT)
        for pattern in (
            "aten/src/ATen/native/*",
            "aten/src/ATen/cuda/*",
            "aten/src/ATen/cudnn/*",
            "aten/src/ATen/core/*",
            "aten/src/ATen/Parallel*",
            "aten/src/ATen/cpu/*",
            "c10/*",
            "torch/_inductor/*",
            "torch/_dynamo/*",
            "torch/_functorch/*",
            "torch/_decomp/*",
            "torch/_refs/*",
            "torch/csrc/*",
            "third_party/*",
            "csrc/*",
            "*/csrc/*",
            "kernels/*",
            "*/kernels/*",
            "*.cu",
            "*.cuh",
            "*.hip",
            "*.metal",
            "*.triton",
            "*triton*.py",
            "*/ops/*",
            "*/layers/*",
            "*.pyx",
            ".gitmodules",
        )
    ),
)


def weight_of_path(path: str) -> float:
    """By the table; of a path that is not in it, `OTHER`."""
    return next((weight for pattern, weight in TABLE if fnmatchcase(path, pattern)), OTHER)


def weight_of_commit(paths: Sequence[str]) -> float:
    """The largest of its paths: a kernel is no less likely for the test beside it. A commit without a path is as one
    that touches text only."""
    return max(map(weight_of_path, paths), default=HARMLESS)


def weights_of(commits: Sequence[str], touched: Mapping[str, Sequence[str]]) -> tuple[float, ...]:
    """Of the commits after a good end, for the search; of one whose paths are not known, `OTHER`."""
    return tuple(weight_of_commit(touched[one]) if one in touched else OTHER for one in commits)


def told_of_prior(weights: Sequence[float]) -> str:
    """Which prior a search has, in a sentence."""
    if not weights:
        return "prior: flat"
    hot, harmless = (sum(weight == one for weight in weights) for one in (HOT, HARMLESS))
    return (
        f"prior: by touched paths; {hot} of {len(weights)} commits touch code that computes or compiles (weight "
        f"{HOT:g}), {harmless} only text, tests or workflows ({HARMLESS:g})"
    )
