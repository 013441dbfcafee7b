"""docs/security.md: each threat with what defends against it, and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "security.md").read_text()
THREATS = dict(re.findall(r"^### ([^\n]*)\n(.*?)(?=^##)", DOC, flags=re.MULTILINE | re.DOTALL))


def test_every_threat_of_the_design_has_its_part():
    assert {
        *("Hostile pull request", "Hostile build", "Hostile artifact", "Comment injection", "Forged commit dates"),
        *("Stolen token", "Poisoned cache", "Compromised runner", "Mention storms", "Mistyped configuration"),
    } <= set(THREATS)


@pytest.mark.parametrize("threat", THREATS)
def test_a_threat_is_defended_against_and_that_is_tested(threat):
    text = THREATS[threat]
    assert text.lstrip().startswith("*") and "- Tested: " in text
    paths = re.findall(r"`(tests/[\w/.]+\.py)`", text)
    assert paths and all((ROOT / path).is_file() for path in paths)
    sources = "".join((ROOT / path).read_text() for path in paths)
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
