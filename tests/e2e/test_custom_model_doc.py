"""docs/custom-model.md, followed to the letter: its files are written, its commands called, and what it says they print
is what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchbenchmark.contracts import CONTRACTS
from torchbenchmark.registry import Metadata

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "custom-model.md"
_BLOCK = re.compile(r"(?:`([\w./-]+)`\n\n|<!-- exit code (\d) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = DOC.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]


def test_every_key_of_the_metadata_has_its_use():
    told = [key for cells in rows("What the metadata is for") for key in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(told) == sorted(Metadata.model_fields)


def test_every_contract_stands_there_with_its_demand_and_a_reason():
    told = [
        (re.findall(r"`([\w ]+)`", name)[0], demand) for name, demand, _ in rows("What the contracts demand, and why")
    ]
    assert told == [(contract.name, contract.demand) for contract in CONTRACTS]


@pytest.mark.long
def test_a_newcomer_gets_from_nothing_to_a_number(tmp_path):
    binaries = tmp_path / "bin"
    binaries.mkdir()
    command = binaries / "torchbench"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bot "$@"\n')
    command.chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    said = ""
    called = 0
    for file, code, language, text in _BLOCK.findall(DOC.read_text()):
        if file:
            (here / file).write_text(text)
        elif language == "sh":
            ended = subprocess.run(
                ["bash", "-euc", text], cwd=here, env=environment, capture_output=True, text=True, check=False
            )
            said = ended.stdout
            assert ended.returncode == int(code or 0), said + ended.stderr
            called += 1
        else:
            assert language == "text", f"a block of {language} without the name of its file"
            for line in text.splitlines():
                assert line in said
    assert called == 6
    assert (here / "results.jsonl").is_file()
