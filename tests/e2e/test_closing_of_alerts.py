"""Before an alert closes: after three good nights of a build in which the slow operator is mended, pairs of the last
good build and that one, really measured, say that the change is gone."""

import pytest
from nights import Nights
from pipeline import write_suite
from slow_build import make_slow_build

OPERATOR = "embedding_bag"  # of dlrm


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_mended_operator_closes_its_issue_by_pairs_of_the_last_good_build_and_the_mended_one(tmp_path):
    nights = Nights(tmp_path, suite=str(write_suite(tmp_path, ["dlrm"])), rounds=2, budget_s=0.02)
    assert nights.run().exit_code == 0
    slow = make_slow_build(tmp_path / "slow", operator=OPERATOR, training=80, inference=80)
    assert nights.run(slow).exit_code == 1
    assert nights.run(slow).exit_code == 1
    (issue,) = nights.issues
    mended = make_slow_build(tmp_path / "mended", operator=OPERATOR, training=0, inference=0)
    for _ in range(2):
        assert nights.run(mended).summary["report"]["confirmation"]["closings"] == []
    last = nights.run(mended)
    assert last.exit_code == 0, last.output
    (closing,) = last.summary["report"]["confirmation"]["closings"]
    (asked,) = closing["asked"]
    assert asked["answer"] == "gone" and 6 <= asked["pairs"] <= 24, last.output
    assert f"and gone by {asked['pairs']} pairs" in issue.read_text()
    assert not (tmp_path / "work" / "confirm").exists()
