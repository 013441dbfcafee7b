"""Where category and domain of a model come from."""

from pathlib import Path

import pytest

from score.errors import ScoreError
from score.taxonomy import Domain, Taxonomy, published_taxonomy
from torchbenchmark.registry import Registry

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "v1_score"


def registry_with(folder: Path, name: str) -> Registry:
    model = folder / name
    model.mkdir()
    (model / "__init__.py").write_text("")
    (model / "metadata.yaml").write_text(
        "{description: d, category: SPEECH, domain: SYNTHESIS, workload_version: '1'}\n"
    )
    return Registry([folder])


def test_the_published_taxonomy_was_carried_over_for_all_51_models() -> None:
    original = SHARED / "taxonomy.csv"
    if not original.is_file():
        pytest.skip(f"the original lies beside the repository, and {original} is absent")
    rows = [line.split(",") for line in original.read_text().splitlines()[1:]]
    assert len(rows) == 51
    taxonomy = published_taxonomy()
    assert [taxonomy.domain_of(model) for model, _, _ in rows] == [Domain(*grouping) for _, *grouping in rows]


def test_a_model_that_is_not_published_is_grouped_by_its_own_metadata(tmp_path: Path) -> None:
    taxonomy = Taxonomy({}, lambda: registry_with(tmp_path, "my_tts"))
    assert taxonomy.domain_of("my_tts") == Domain("SPEECH", "SYNTHESIS")


def test_the_published_grouping_wins_over_the_metadata(tmp_path: Path) -> None:
    published = {"my_tts": Domain("OTHER", "OTHER_TASKS")}
    taxonomy = Taxonomy(published, lambda: registry_with(tmp_path, "my_tts"))
    assert taxonomy.domain_of("my_tts") == published["my_tts"]


def test_a_model_that_nobody_knows_is_an_error_that_names_it() -> None:
    with pytest.raises(ScoreError, match="model never_heard_of has no category and domain"):
        published_taxonomy().domain_of("never_heard_of")
