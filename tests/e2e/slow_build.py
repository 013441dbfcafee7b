"""A second build for the pipeline tests: an interpreter that uses the first one's packages, but in which one operator
does extra work.

It is a virtual environment with a .pth file that adds the first one's site-packages and installs an import hook. As
soon as torch.nn.functional is imported, the operator (`gelu`, if no other is named) is replaced by one that computes it
several times over. Of the smoke suite, hf_Bert and timm_vision_transformer use gelu, and become about 60 % slower; no
other model does. Only dlrm uses embedding_bag.
"""

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

SLOWED_MODELS = ("hf_Bert", "timm_vision_transformer")

_FINDER = '''
import importlib.machinery
import sys


class FunctionalFinder:
    """Stands before the other finders until torch.nn.functional is looked for."""

    def find_spec(self, name, path, target=None):
        if name != "torch.nn.functional":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def execute_and_slow_down(module):
            execute(module)
            slow_down(module)

        spec.loader.exec_module = execute_and_slow_down
        return spec


sys.meta_path.insert(0, FunctionalFinder())
'''

_REPEATING = """
OPERATOR = {operator!r}
REPEATS_IN_TRAINING, REPEATS_IN_INFERENCE = {training}, {inference}  # gelu is a smaller part of a training step


def slow_down(functional):
    import torch

    original = getattr(functional, OPERATOR)

    def slowed(*arguments, **options):
        repeats = REPEATS_IN_TRAINING if torch.is_grad_enabled() else REPEATS_IN_INFERENCE
        with torch.no_grad():
            for _ in range(repeats):
                original(*arguments, **options)
        return original(*arguments, **options)

    setattr(functional, OPERATOR, slowed)
"""


def make_slow_build(folder: Path, *, operator: str = "gelu", training: int = 70, inference: int = 15) -> Path:
    """Create the build in `folder` and return its interpreter."""
    return make_build(folder, _REPEATING.format(operator=operator, training=training, inference=inference))


def make_build(folder: Path, slow_down: str) -> Path:
    """A build whose torch.nn.functional is given to `slow_down`, of which this is the source, as it is imported."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", query], capture_output=True, text=True, check=True).stdout.strip())
    (packages / "slow_operator.py").write_text(slow_down + _FINDER)
    told_apart = f"# {hashlib.sha256(slow_down.encode()).hexdigest()}"  # what is in a .pth is part of a build's id
    (packages / "overlay.pth").write_text(f"{told_apart}\n{sysconfig.get_path('purelib')}\nimport slow_operator\n")
    return python
