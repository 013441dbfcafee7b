"""Makes `import torchvision` possible where its compiled operators do not match the torch build.

timm and transformers import torchvision; a torchvision built for another torch fails with "operator torchvision::nms
does not exist". Only then are the schemas declared here and the import tried again: models that need no real
torchvision operator work, and a call of `nms` fails with a clear error. Standard library and torch only.
"""

import importlib
import importlib.util
import sys

_kept_library = None  # a torch.library.Library withdraws its declarations when it is collected


def ensure_torchvision_importable() -> None:
    """Import torchvision if it is installed, declaring its missing schemas if that is what its import fails on."""
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
        return
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
    _declare_missing_operators()
    importlib.import_module("torchvision")


def _declare_missing_operators() -> None:
    global _kept_library
    import torch

    for name in [name for name in sys.modules if name == "torchvision" or name.startswith("torchvision.")]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl(operator, _unavailable, "CompositeExplicitAutograd")
    _kept_library = library


def _unavailable(*_: object) -> None:
    raise RuntimeError("torchvision's operators do not match this torch build; install the matching torchvision")


if __name__ == "__main__":  # `torchbench install` asks whether the operators match: 0, or 3 if they had to be declared
    ensure_torchvision_importable()
    sys.exit(0 if _kept_library is None else 3)
