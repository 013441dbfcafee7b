"""What a model requires, against what an interpreter holds."""

from pathlib import Path

import pytest

from torchbenchmark.errors import BenchmarkError
from torchbenchmark.registry import ModelEntry
from torchbenchmark.requirements import unmet

HELD = {"timm": "1.0.31", "torch": "2.14.0.dev20261127+cpu", "hf-xet": "1.8.0", "odd": "custom-from-source"}


@pytest.mark.parametrize(
    "requirement", ["timm", "timm>=1.0", "timm>=1.0,<2", "Timm==1.0.31", "hf_xet", "HF.xet>1.7", "torch>=2.13", "odd"]
)
def test_what_is_there_meets_a_requirement(requirement: str) -> None:
    assert unmet([requirement], HELD) == ()


@pytest.mark.parametrize(
    ("requirement", "told"),
    [
        ("transformers", "transformers (not installed)"),
        ("transformers>=5.17", "transformers>=5.17 (not installed)"),
        ("timm>=1.1", "timm>=1.1 (1.0.31 is installed)"),
        ("timm<1", "timm<1 (1.0.31 is installed)"),
        ("torch>=2.14", "torch>=2.14 (2.14.0.dev20261127+cpu is installed)"),
        ("odd>=1", "odd>=1 (custom-from-source is installed)"),
    ],
)
def test_what_is_missing_or_of_another_version_is_told(requirement: str, told: str) -> None:
    assert [str(one) for one in unmet(["timm", requirement], HELD)] == [told]


@pytest.mark.parametrize(
    "requirement", ["'>=1.0'", "timm 1.0", "'timm[extra]'", "'timm; python_version > \"3\"'", "''"]
)
def test_metadata_may_require_only_what_can_be_compared(requirement: str, tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_text(
        f'description: A.\ncategory: B\ndomain: C\nworkload_version: "1"\nrequires: [{requirement}]\n'
    )
    with pytest.raises(BenchmarkError, match=r"metadata\.yaml.*requires"):
        _ = ModelEntry(tmp_path).metadata
