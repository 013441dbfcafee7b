"""The guard mends the import of a torchvision that does not match torch, and leaves a working one alone.

Each case is a process of its own: declared operators cannot be taken back.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# what a torchvision built for another torch does: its library of operators does not load
MISMATCH = """
import torch
def refuse(path):
    raise OSError("undefined symbol")
torch.ops.load_library = refuse
"""
GUARD = """
import torchbenchmark.torchvision_guard as guard
guard.ensure_torchvision_importable()
"""

needs_torchvision = pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
needs_timm = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")


def run(code, *path):
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(entry) for entry in path]!r}\n{code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def printed(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def stand_in(folder, content):
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(content)
    return folder


@needs_torchvision
def test_without_the_guard_a_mismatched_torchvision_cannot_be_imported():
    done = run(MISMATCH + "import torchvision")
    assert done.returncode != 0
    assert "operator torchvision::nms does not exist" in done.stderr


@needs_torchvision
@needs_timm
def test_after_the_guard_timm_imports_beside_a_mismatched_torchvision():
    code = MISMATCH + GUARD + "import timm, torchvision\nprint(timm.create_model('vit_tiny_patch16_224').num_classes)"
    assert printed(run(code)) == "1000"


@needs_torchvision
def test_a_real_operator_of_a_mismatched_torchvision_fails_with_a_clear_error():
    code = MISMATCH + GUARD + "import torchvision\n"
    for call in ("torchvision.ops.nms", "torch.ops.torchvision.nms"):
        code += f"try:\n    {call}(torch.rand(3, 4), torch.rand(3), 0.5)\nexcept RuntimeError as error:\n"
        code += "    print(str(error).replace(chr(10), ' '))\n"
    messages = printed(run(code)).splitlines()
    assert len(messages) == 2
    for message in messages:
        assert "torchvision" in message
        assert "incompatible" in message or "install the matching torchvision" in message


def test_a_torchvision_that_imports_is_left_alone(tmp_path):
    folder = stand_in(tmp_path, "import torch\nlib = torch.library.Library('torchvision', 'DEF')\n")
    code = GUARD + "import torchvision\nprint(guard._kept_library, torchvision.__file__)"
    assert printed(run(code, folder)) == f"None {folder / 'torchvision' / '__init__.py'}"


@needs_torchvision
def test_the_installed_torchvision_is_left_alone_where_it_matches():
    if run("import torchvision").returncode != 0:
        pytest.skip("the installed torchvision does not match this torch")
    code = (
        GUARD
        + "import torch, torchvision\nboxes = torch.tensor([[0., 0., 1., 1.], [0., 0., 1., 1.]])\n"
        + "print(guard._kept_library, torchvision.ops.nms(boxes, torch.tensor([.9, .8]), 0.5).tolist())"
    )
    assert printed(run(code)) == "None [0]"


def test_the_guard_does_nothing_where_torchvision_is_not_installed():
    code = (
        "import importlib.util\nimportlib.util.find_spec = lambda name: None\n"
        + GUARD
        + "print(guard._kept_library, 'torchvision' in sys.modules, 'torch' in sys.modules)"
    )
    assert printed(run(code)) == "None False False"


def test_any_other_failure_of_torchvision_is_not_hidden(tmp_path):
    folder = stand_in(tmp_path, "raise RuntimeError('libcudart is missing')\n")
    done = run(GUARD, folder)
    assert done.returncode != 0
    assert "libcudart is missing" in done.stderr


def test_the_guard_may_be_called_again(tmp_path):
    folder = stand_in(tmp_path, "import torch\ntorch.library.register_fake('torchvision::nms')(lambda *_: None)\n")
    code = (
        GUARD + "kept = guard._kept_library\nguard.ensure_torchvision_importable()\nprint(guard._kept_library is kept)"
    )
    assert printed(run(code, folder)) == "True"
