"""A repository whose commits build a package that a model of the tests uses, how it is built, and the suite of that
model."""

import site
from pathlib import Path

from small_repository import SmallRepository
from test_bisect_by_tests import MAKE_WHEEL, PACKAGE

HERE = Path(__file__).parent
MODELS = HERE / "model_of_package"
TEST = "test_eval[works-cpu-eager-tiny]"
BUILD = "python make_wheel.py"


def package(folder: Path, loops: list[int], broken: int | None = None) -> SmallRepository:
    """Commits c0 ... of a package `worksteps`, whose work is so many steps; `broken` does not build."""
    repository = SmallRepository(folder)
    site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
    (folder / "make_wheel.py").write_text(f"SITE = {site_packages!r}\n{MAKE_WHEEL}")
    for place, steps in enumerate(loops):
        text = PACKAGE.format(loops=steps) + f"# {place}\n" + ("def broken(:\n" if place == broken else "")
        (folder / "worksteps.py").write_text(text)
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", f"c{place}")
        repository.git("tag", f"c{place}")
    return repository


def configuration(folder: Path, **more: str) -> Path:
    """A nightly's configuration and its suite, in a folder with the store beside it."""
    (folder / "works.yaml").write_text(
        "name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\nthreads: 1\n"
    )
    lines = [
        *("suite: works.yaml", f"models: ['{MODELS}']", "subject: worksteps", "store: store", "work: work"),
        *("threads: 1", "budget_s: 0.1", "builds:", "  requirements: []"),
        *(f"  git: {{command: '{BUILD}'}}", *(f"{key}: {value}" for key, value in more.items())),
    ]
    config = folder / "nightly.yaml"
    config.write_text("\n".join(lines) + "\n")
    return config
