"""The attributing of a bisection on real builds of a package that a model uses, killed on the way."""

import site
from contextlib import ExitStack
from pathlib import Path

import pytest
from small_repository import SmallRepository
from test_bisect_by_tests import MAKE_WHEEL, PACKAGE

from baselines.store import open_store
from bot.bisection import instruments
from bot.bisection.account import Found, change_sentences
from bot.bisection.attributing import Attributing
from bot.bisection.document import Asked, Document
from bot.bisection.git_range import GitRange
from bot.bisection.provided import Provided
from bot.bisection.report import markdown
from bot.bisection.state import Rules, new_search, with_build
from bot.bisection.verdict import Suspects, Verdict
from bot.confirming.bench import TerminalRounds
from torchbenchmark.builds.settings import BuildSettings
from torchbenchmark.paired.pairs_file import read_pairs
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import load_suite

HERE = Path(__file__).parent


def searched(repository: SmallRepository) -> Found:
    """A bisection that has found the last of two commits."""
    good, bad = (repository.git("rev-parse", name) for name in ("c0", "c1"))
    state = new_search([good, bad], Rules(pair_sd=0.01))
    for commit in (good, bad):
        state = with_build(state, commit, ok=True)
    suspects = Suspects((bad,), (bad,), 1.0, "certain", 0.7)
    asked = Asked(good=good, bad=bad, tests=("works",))
    return Found(Document(asked=asked, search=state), Verdict("culprit", (suspects,)), {})


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_builds_of_a_culprit_are_profiled_and_after_a_kill_only_what_is_lacking(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch", reason="models are imported into a build")
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    repository = SmallRepository(tmp_path / "package")
    site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
    for place, loops in enumerate((10_000, 400_000)):
        (repository.folder / "worksteps.py").write_text(PACKAGE.format(loops=loops))
        (repository.folder / "make_wheel.py").write_text(f"SITE = {site_packages!r}\n{MAKE_WHEEL}")
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", f"c{place}")
        repository.git("tag", f"c{place}")
    suite = tmp_path / "works.yaml"
    suite.write_text("name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\n")
    run = RunRequest(
        suite=load_suite(str(suite)),
        device="cpu",
        subject="worksteps",
        threads=1,
        budget_s=0.1,
        model_folders=(HERE / "model_of_package",),
    )
    settings = BuildSettings.model_validate({"requirements": [], "git": {"command": "python make_wheel.py"}})
    store, found = open_store(str(tmp_path / "store")), searched(repository)
    folder = tmp_path / "work"
    commits = GitRange(repository.folder, "c0", "c1")
    with ExitStack() as leases:
        builds = Provided(commits, settings, run.subject, leases)
        instrument = instruments.TestsInstrument(builds, run, "cpu_time", tmp_path / "pairs", TerminalRounds())
        attributing = Attributing(commits, store, instrument, folder, print)
        done = attributing.of(found)
        (said,) = change_sentences(done)
        assert "CPU-side: Python, " in said and " times its time" in said, said  # of forty times the loops
        assert "### What got slower inside" in markdown(done)
        assert len(list(folder.rglob("*.json.gz"))) == len(done.attributed[0].traces) == 2

        (pairs,) = folder.rglob("profiles.jsonl")
        lines = pairs.read_bytes().splitlines(keepends=True)
        assert len(lines) == 7
        pairs.write_bytes(b"".join(lines[:-2]) + lines[-1][:20])  # as a kill leaves it
        (stored,) = store.list("bisections/")
        store.delete(stored)
        capsys.readouterr()
        again = attributing.of(found)
        assert "4 pairs are there from before" in capsys.readouterr().out
        assert pairs.read_bytes().splitlines(keepends=True)[:5] == lines[:5] and len(read_pairs(pairs).pairs) == 6
        assert again.attributed[0].attribution is not None
