"""The prior by touched paths: what the table says, what a repository says was touched, and what that saves."""

import pytest
from bisecting import noisy, search, verdict_of
from small_repository import SmallRepository

from bot.bisection.git_range import GitRange
from bot.bisection.paths import HARMLESS, HOT, OTHER, told_of_prior, weight_of_commit, weight_of_path, weights_of


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("aten/src/ATen/native/cuda/SoftMax.cu", HOT),
        ("aten/src/ATen/native/README.md", HARMLESS),
        ("c10/core/CPUAllocator.cpp", HOT),
        ("torch/_inductor/scheduler.py", HOT),
        ("torchvision/csrc/ops/nms.cpp", HOT),
        ("third_party/ideep", HOT),
        ("somewhere/else/kernel.cu", HOT),
        (".ci/docker/ci_commit_pins/triton.txt", HOT),
        (".ci/docker/build.sh", HARMLESS),
        ("test/inductor/test_torchinductor.py", HARMLESS),
        ("docs/source/index.rst", HARMLESS),
        (".github/workflows/pull.yml", HARMLESS),
        ("torch/nn/modules/linear.py", OTHER),
        ("setup.py", OTHER),
    ],
)
def test_a_path_has_the_weight_of_the_first_pattern_that_fits(path, weight):
    assert weight_of_path(path) == weight


def test_a_commit_weighs_as_much_as_the_weightiest_of_its_paths():
    assert weight_of_commit(["docs/a.md", "setup.py"]) == OTHER
    assert weight_of_commit(["tests/test_a.py", "c10/a.h", "setup.py"]) == HOT
    assert weight_of_commit(["README.md", "tests/a.py"]) == HARMLESS
    assert weight_of_commit([]) == HARMLESS
    assert weights_of(["known", "unknown"], {"known": ["a.cu"]}) == (HOT, OTHER)


def test_the_sentence_counts_what_the_prior_has_weighed():
    assert told_of_prior(()) == "prior: flat"
    assert "1 of 4 commits touch code" in told_of_prior((HOT, OTHER, HARMLESS, HARMLESS))
    assert "2 only text" in told_of_prior((HOT, OTHER, HARMLESS, HARMLESS))


def test_a_repository_says_what_each_commit_touched_a_merge_all_that_it_brought_in(tmp_path):
    repository = SmallRepository(tmp_path / "project")

    def commit(tag: str, *paths: str) -> None:
        for path in paths:
            (repository.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (repository.folder / path).write_text(tag)
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "--allow-empty", "-m", tag)
        repository.git("tag", tag)

    commit("c0", "setup.py")
    commit("c1", "docs/ä \t.md")
    repository.git("checkout", "--quiet", "-b", "side")
    commit("b1", "c10/core.h")
    commit("b2", "docs/b.md")
    repository.git("checkout", "--quiet", "main")
    commit("c2")
    repository.git("merge", "--quiet", "--no-ff", "-m", "m", "side")
    repository.git("mv", "c10/core.h", "core.h")
    commit("c4")

    found = GitRange(repository.folder, "c0", "main")
    by_subject = {found.subjects[commit]: paths for commit, paths in found.touched(found.line).items()}

    assert by_subject["c2"] == ()
    assert set(by_subject["m"]) == {"c10/core.h", "docs/b.md"}
    assert set(by_subject["c4"]) == {"c10/core.h", "core.h"}  # from where and to where
    assert set(by_subject) == {"c1", "c2", "m", "c4"}
    assert weights_of(found.line[1:], found.touched(found.line)) == (HARMLESS, HARMLESS, HOT, HOT)
    (branch,) = found.branches(found.line[3])
    assert weights_of(branch[1:], found.touched(branch)) == (HOT, HARMLESS)


def test_a_commit_that_the_table_takes_for_harmless_is_found_all_the_same():
    weights = [HOT if place % 10 == 0 else OTHER for place in range(1, 65)]
    weights[36] = HARMLESS
    verdict, _ = verdict_of(search(64, weights=weights), noisy({37: 0.06}, seed=1))
    assert verdict.kind == "culprit"
    assert verdict.suspects[0].inseparable == ("37",)
