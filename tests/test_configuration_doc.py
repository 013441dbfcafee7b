"""docs/configuration.md has every key of every file that a person writes, with its default, and no other."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from baselines.policy import Judged, Policy
from bot.alert_settings import AlertSettings, NotifySettings
from bot.bisect_settings import BisectSettings
from bot.config import NightlyConfig
from bot.filing_rules import FilingRules
from bot.inside import AttributeSettings
from bot.pull_request_settings import PullRequestSettings
from bot.runner_settings import RunnerSettings
from torchbenchmark.builds.nightly_index import NightlyBuild
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.registry import Metadata, NotImplementedRule, SkipRule, Suite
from torchbenchmark.yaml_files import read_yaml

DOCS = Path(__file__).parents[1] / "docs"
REQUIRED = "must be there"
SCHEMAS: dict[str, type[BaseModel]] = {
    "The nightly": NightlyConfig,
    "Its build": NightlyBuild,
    "Its canaries": CanarySettings,
    "What is filed": FilingRules,
    "What is profiled": AttributeSettings,
    "What is bisected": BisectSettings,
    "What alerts do beside their issues": AlertSettings,
    "Who else is told": NotifySettings,
    "What pull requests may ask": PullRequestSettings,
    "The runners": RunnerSettings,
    "A policy": Policy,
    "What is judged": Judged,
    "A suite": Suite,
    "What a suite leaves out": SkipRule,
    "The metadata of a model": Metadata,
    "What a model cannot do": NotImplementedRule,
}


def sections() -> dict[str, str]:
    """The text below each heading."""
    parts = re.split(r"^#+ (.*)\n", (DOCS / "configuration.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(heading: str) -> dict[str, str]:
    """The keys of a section's table, and what it says of the default."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", sections()[heading], flags=re.MULTILINE)
    return dict(rows)


def test_every_table_of_the_page_is_of_a_schema():
    with_table = {heading for heading, text in sections().items() if "| key |" in text}
    assert with_table == set(SCHEMAS)


@pytest.mark.parametrize("heading", SCHEMAS)
def test_every_field_is_documented_in_its_order_and_nothing_else_is(heading):
    assert list(documented(heading)) == [field.alias or name for name, field in SCHEMAS[heading].model_fields.items()]
    lines = [line for line in sections()[heading].splitlines() if line.startswith("| `")]
    assert len(lines) == len(documented(heading)), "a row that is not understood, or a key twice"


@pytest.mark.parametrize("heading", SCHEMAS)
def test_the_default_that_the_page_names_is_that_of_the_field(heading):
    said = documented(heading)
    for name, field in SCHEMAS[heading].model_fields.items():
        told = said[field.alias or name]
        if field.is_required():
            assert told == REQUIRED, name
            continue
        default = field.default
        assert told != REQUIRED, name
        if default is None:
            assert told, name  # what happens then, in words
        elif default in ((), {}):
            assert told == "none", name
        elif isinstance(default, BaseModel):
            assert told == "its own defaults", name
        elif default == "":
            assert told == "empty", name
        elif isinstance(default, bool):
            assert told == str(default).lower(), name
        elif isinstance(default, tuple):
            assert told == f"`[{', '.join(default)}]`", name
        else:
            assert told == (f"{default:g}" if isinstance(default, int | float) else f"`{default}`"), name


@pytest.mark.parametrize("heading", ["The nightly", "A policy", "A suite", "The metadata of a model"])
def test_the_example_of_each_file_is_one_that_is_accepted(heading, tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", sections()[heading], flags=re.DOTALL)
    path = tmp_path / "example.yaml"
    path.write_text(example)
    read = read_yaml(path, SCHEMAS[heading])
    assert set(yaml.safe_load(example)) == read.model_fields_set


def test_every_link_to_a_section_of_the_page_leads_to_one():
    anchors = {heading.lower().replace(" ", "-") for heading in sections()}
    linked = {
        anchor
        for path in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
        for target, anchor in re.findall(r"\]\(([\w./]*)#([\w-]+)\)", path.read_text())
        if Path(target).name == "configuration.md" or (not target and path.name == "configuration.md")
    }
    assert linked and linked <= anchors


@pytest.mark.parametrize("path", ["README.md", "docs/nightly.md", "docs/operate.md", "docs/actions.md"])
def test_those_who_configure_something_find_the_page(path):
    assert "configuration.md" in (DOCS.parent / path).read_text()
