"""`torchbench bisect --tests` on repositories whose commits are really compiled and really measured."""

import pytest
from compiled_repository import Branch, CompiledRepository, broken_places
from killed_bisection import Bisection

COMMITS = 200
BRANCHES = (Branch(after=40, merged=52, commits=8), Branch(after=120, merged=131, commits=8))
LENGTH = COMMITS - sum(branch.commits for branch in BRANCHES)
BROKEN = 0.15 * COMMITS / LENGTH  # of the main line: 15 % of all
HELD = 4  # the build that is killed, the second between the ends


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch", reason="models are imported into a build")


@pytest.mark.quiet
@pytest.mark.timeout(480)
def test_one_slow_commit_of_two_hundred_is_found_through_three_kills(tmp_path, record_property):
    culprit = 149
    whole = {*(branch.merged for branch in BRANCHES), culprit - 1, culprit}
    repository = CompiledRepository(tmp_path / "package")
    broken = broken_places(LENGTH, BROKEN, whole=whole, seed=11)  # the search meets one to three, if pairs are quiet
    repository.make(LENGTH, {culprit: 1.08}, broken, BRANCHES)
    assert repository.git("rev-list", "--count", "main") == str(COMMITS)
    (repository.folder / "setup.py").write_text("something of mine")  # a dirty checkout
    before = repository.fingerprint()
    bisection = Bisection(repository, tmp_path)

    broken_off = bisection.killed_when(lambda: len(bisection.pairs_of(1)) >= 2)  # within the pairs of the bad end
    kept = bisection.pairs()
    assert len(kept) >= 10
    broken_off += bisection.killed_when(lambda: len(bisection.commits_that("began")) == HELD, hold_at=HELD)
    assert len(broken_off) == 1  # within a build
    kept += bisection.pairs()
    done = len(bisection.visited)
    broken_off += bisection.killed_when(lambda: len(bisection.visited) > done)  # between two steps
    kept += bisection.pairs()
    code = bisection.ended()

    report, document = bisection.report, bisection.document
    record_property("figure", f"bisect of {COMMITS} compiled commits: {bisection.cost}")
    assert code == 1, bisection.told
    assert report["verdict"] == "culprit"
    assert [one["commits"] for one in report["changes"]] == [[repository.git("rev-parse", f"c{culprit}")]]
    assert report["changes"][0]["change"] == pytest.approx(0.08, abs=0.02)
    made = [one["commit"] for one in document["made"]]
    assert sorted(bisection.commits_that("began")) == sorted([*made, *broken_off])  # no build was repeated
    assert bisection.commits_that("ended") == made
    pairs = bisection.pairs()
    assert all(pair in pairs for pair in kept)  # nor a pair
    assert len({(visit, pair["round"]) for visit, pair in pairs}) == len(pairs) == report["pairs"]
    assert repository.fingerprint() == before


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.timeout(1800)
def test_two_slow_commits_of_two_hundred_are_found_and_shown_again(tmp_path, record_property):
    culprits = {61: 1.12, 137: 1.08}
    repository = CompiledRepository(tmp_path / "package")
    whole = {*(branch.merged for branch in BRANCHES), *(place - before for place in culprits for before in (0, 1))}
    repository.make(LENGTH, culprits, broken_places(LENGTH, BROKEN, whole=whole, seed=11), BRANCHES)
    before = repository.fingerprint()
    bisection = Bisection(repository, tmp_path, closing=6)

    code = bisection.ended()

    report = bisection.report
    record_property("figure", f"bisect of two culprits in {COMMITS} compiled commits: {bisection.cost}")
    assert code == 1, bisection.told
    assert report["verdict"] == "several culprits"
    found = {tuple(one["commits"]): one for one in report["changes"]}
    assert found.keys() == {(repository.git("rev-parse", f"c{place}"),) for place in culprits}
    for place, factor in culprits.items():
        one = found[repository.git("rev-parse", f"c{place}"),]
        assert one["change"] == pytest.approx(factor - 1, abs=0.03)
        parent, revert = one["closing"]
        assert parent["change"] == pytest.approx(factor - 1, abs=0.03)
        assert revert["change"] == pytest.approx(1 / factor - 1, abs=0.03)
        assert parent["interval"][0] > 0 > revert["interval"][1]
    assert repository.fingerprint() == before


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.timeout(900)
def test_ends_that_are_equal_are_called_so_and_nothing_between_them_is_built(tmp_path, record_property):
    """What was slower elsewhere is then not of a commit."""
    repository = CompiledRepository(tmp_path / "package")
    whole = {branch.merged for branch in BRANCHES}
    repository.make(LENGTH, {}, broken_places(LENGTH, BROKEN, whole=whole, seed=13), BRANCHES)
    bisection = Bisection(repository, tmp_path)

    code = bisection.ended()

    report = bisection.report
    record_property("figure", f"bisect of {COMMITS} compiled commits that are equal: {bisection.cost}")
    assert code == 0, bisection.told
    assert report["verdict"] == "not reproduced"
    assert "show no difference beyond" in report["sentence"] or "show no clear difference" in report["sentence"]
    ends = [repository.git("rev-parse", name) for name in ("c0", "main")]
    assert [one["commit"] for one in report["builds"]] == ends
