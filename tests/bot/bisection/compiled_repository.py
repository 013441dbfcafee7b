"""A repository of a package with an extension in C, made in one go: a main line with merges, commits that do not
compile, and commits from which on the extension takes more steps. Steps follow from each other, so that neither the
other half of a core nor where the code came to lie changes what one costs."""

import os
import random
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from small_repository import IDENTITY, SmallRepository

STEPS = 1_000_000  # about a millisecond
FACTORS = ("FIRST", "SECOND")  # by which two commits may make more of them
# The wheel lets the build see the torch of the interpreter that makes it, as no index may be asked.
SETUP = """import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildExtension(build_ext):
    def run(self):
        super().run()
        Path(self.build_lib, "torch_of_the_tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\\n")


setup(
    name="worksteps",
    version="1.0",
    ext_modules=[Extension("worksteps", ["worksteps.c"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
SOURCE = """#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "flavour.h"
#include "first.h"
#include "second.h"

#define REVISION "{name}"
#define STEPS (long)({steps} * FIRST * SECOND)

static PyObject *work(PyObject *self, PyObject *none)
{{
    unsigned long long number = 88172645463325252ULL;
    for (long step = 0; step < STEPS; step++)
        number = number * 6364136223846793005ULL + 1442695040888963407ULL;
    return PyLong_FromUnsignedLongLong(number);
}}
{error}
static PyMethodDef methods[] = {{
    {{"work", work, METH_NOARGS, "Take the steps."}},
    {{NULL, NULL, 0, NULL}},
}};
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "worksteps", REVISION " " FLAVOUR, -1, methods}};

PyMODINIT_FUNC PyInit_worksteps(void)
{{
    return PyModule_Create(&definition);
}}
"""
ERROR = "static int broken(void) { return not_declared_anywhere; }"
# Builds write that they begin and how they end; the one whose number is in $HOLD_AT waits until it is killed.
BUILD = """echo "began $TORCHBENCH_BUILD_COMMIT" >> "$JOURNAL"
if [ "$(grep -c began "$JOURNAL")" = "$HOLD_AT" ]; then sleep 600; fi
python -W ignore setup.py --quiet bdist_wheel --dist-dir "$TORCHBENCH_BUILD_OUT"
ended=$?
echo "ended $TORCHBENCH_BUILD_COMMIT" >> "$JOURNAL"
exit $ended
"""


@dataclass(frozen=True)
class Branch:
    """Commits that leave the main line after one place and are merged at a later one."""

    after: int
    merged: int
    commits: int


def broken_places(length: int, share: float, *, whole: Collection[int], seed: int) -> set[int]:
    """Places of a main line that do not compile, in runs of two to four. None of `whole` is one."""
    generator = random.Random(seed)
    broken: set[int] = set()
    while len(broken) < round(share * length):
        first = generator.randrange(1, length - 1)
        run = set(range(first, min(first + generator.randint(2, 4), length - 1)))
        if not run & {*whole, *broken}:
            broken |= run
    return broken


class CompiledRepository(SmallRepository):
    """Places 0 ... n of a main line are tagged `c0` ... `cn`, the commits of a branch not at all."""

    def make(
        self, length: int, slower: Mapping[int, float], broken: Collection[int], branches: Sequence[Branch] = ()
    ) -> None:
        """A main line of so many commits, of which one or two take so many times the steps of the one before."""
        self.stream: list[str] = []
        self.marks = 0
        marks: list[int] = []
        tips: dict[int, tuple[Branch, int]] = {}
        factors = dict(zip(slower, FACTORS, strict=False))
        for place in range(length):
            source = SOURCE.format(name=f"c{place}", steps=STEPS, error=ERROR if place in broken else "")
            files = {"worksteps.c": source}
            if place in slower:  # each in a file of its own, so that each can be reverted
                files = _defined(factors[place], slower[place])
            if place == 0:
                files |= {"setup.py": SETUP, "flavour.h": _flavour("plain")}
                files |= {name: text for factor in FACTORS for name, text in _defined(factor, 1.0).items()}
            merged = tips.get(place)
            if merged is not None:
                files["flavour.h"] = _flavour(f"of {place}")
            title = f"c{place}" if merged is None else f"c{place}: a merge"
            marks.append(self._commit_of("main", title, files, marks[-1:], merged and merged[1]))
            self.stream.append(f"reset refs/tags/c{place}\nfrom :{marks[-1]}\n")
            for branch in branches:
                if branch.after == place:
                    tips[branch.merged] = (branch, self._branch(branch, marks[-1]))
        subprocess.run(
            ["git", "fast-import", "--quiet"],
            cwd=self.folder,
            env={**os.environ, **IDENTITY},
            input="".join(self.stream).encode(),
            check=True,
        )
        self.git("reset", "--quiet", "--hard", "main")

    def _branch(self, branch: Branch, mark: int) -> int:
        for number in range(branch.commits):
            name = f"of {branch.merged}, {number}" if number < branch.commits - 1 else f"of {branch.merged}"
            mark = self._commit_of(f"to-{branch.merged}", name, {"flavour.h": _flavour(name)}, [mark], None)
        return mark

    def _commit_of(
        self, branch: str, title: str, files: Mapping[str, str], parent: Sequence[int], merged: int | None
    ) -> int:
        self.marks += 1
        self.stream.append(f"commit refs/heads/{branch}\nmark :{self.marks}\n")
        self.stream.append(f"committer Ada <a@example.org> {1_790_000_000 + 3600 * self.marks} +0000\n{_data(title)}")
        self.stream += [f"from :{one}\n" for one in parent]
        if merged is not None:
            self.stream.append(f"merge :{merged}\n")
        self.stream += [f"M 100644 inline {name}\n{_data(text)}" for name, text in files.items()]
        return self.marks


def _defined(factor: str, value: float) -> dict[str, str]:
    return {f"{factor.lower()}.h": f"#define {factor} {value}\n"}


def _flavour(name: str) -> str:
    return f'#define FLAVOUR "{name}"\n'


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
