"""docs/suite.md is what the metadata of the models says today."""

import subprocess
import sys
from pathlib import Path

import yaml

from torchbenchmark.registry import Registry, load_suite, suite_names
from torchbenchmark.suite_page import COMMAND, PAGE, suite_page

ROOT = Path(__file__).parents[1]


def rows(page: str) -> dict[str, list[str]]:
    """The cells of each row whose first cell is a name, by that name."""
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_page_of_the_models_is_not_stale():
    assert PAGE.read_text(encoding="utf-8") == suite_page(), f"docs/suite.md is stale; renew it: {COMMAND}"


def test_the_page_has_a_row_for_every_model_and_every_suite():
    assert list(rows(suite_page())) == [*suite_names(), *sorted(Registry().models, key=place)]
    assert rows(suite_page())["smoke"][1] == str(len(load_suite("smoke").models))


def place(name: str) -> tuple[str, str, str]:
    about = Registry().model(name).metadata
    return about.category, about.domain, name.lower()


def test_a_row_has_what_the_metadata_and_the_source_say(tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "class Model:\n"
        "    PRESETS = {\n"
        "        'head': Preset(train_batch=4, eval_batch=8, shape={}),\n"
        "        'tiny': Preset(train_batch=2 * 1, eval_batch=1, shape={}),\n"
        "    }\n"
    )
    about = {
        "description": "A network | of ours (Me, 2026)",
        "category": "CHESS",
        "domain": "OPENINGS",
        "workload_version": "1",
        "devices": ["cuda"],
        "presets": ["head", "tiny"],
        "tier": "medium",
        "requires": ["timm>=1.0"],
        "gpu_batches": {"NVIDIA A100": {"eval": 512}},
        "differs_from_v1": ["It plays.", "It wins."],
    }
    (folder / "metadata.yaml").write_text(yaml.safe_dump(about))
    page = suite_page(Registry((tmp_path,)))
    assert "\n## Chess: openings\n" in page
    assert rows(page)["mine"] == [
        "A network \\| of ours (Me, 2026). Needs timm>=1.0.",
        "train, eval",
        "cuda",
        "`head`: train 4, eval 8<br>`head` on NVIDIA A100: eval 512<br>`tiny`: train its own, eval 1",
        "medium",
        "It plays.<br>It wins.",
    ]


def test_the_page_is_made_without_torch_or_a_model():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from torchbenchmark.suite_page import suite_page\n"
            "suite_page()\n"
            "print([name for name in sys.modules if name in ('torch', 'timm') or 'torchbenchmark.models.' in name])",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
