"""On a machine with an NVIDIA GPU: what is planted in a model is what `torchbench profile` names."""

import json
import shutil
import subprocess
import sys

import pytest
from planted_profiles import arguments, wrong

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]


@pytest.mark.timeout(600)
def test_a_slower_kernel_more_launches_and_python_work_are_named_and_equal_sides_tell_nothing(tmp_path):
    command = [sys.executable, "-m", "torchbenchmark", *arguments(tmp_path, "cuda", pairs=4, budget=0.1)]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert wrong(json.loads((tmp_path / "profile.json").read_text()), "cuda") == [], ended.stdout
