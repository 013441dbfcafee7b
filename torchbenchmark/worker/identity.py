"""Tells what the build's interpreter holds, as one JSON object: run by path in a process of its own, so that asking
torch for its devices and libraries cannot spoil a zygote. Standard library and torch only.
"""

import gc
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import site
import sys
from pathlib import Path

HARNESS_DISTRIBUTION = "torchbench_sentinel"


def distributions() -> dict[str, str]:
    """Installed distributions: normalised name -> version."""
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name and distribution.version:  # what is left of one that was removed by halves has none
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return found


def startup_code() -> dict[str, str]:
    """.pth files with a line that runs code when the interpreter starts -> hash of the file, or of all of that name."""
    found = {}
    for folder in (*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])):
        for path in sorted(Path(folder).glob("*.pth")):
            if HARNESS_DISTRIBUTION in path.name:
                continue  # our own editable install: it is the harness, not the build
            content = path.read_bytes()
            if any(line.startswith((b"import ", b"import\t")) for line in content.splitlines()):
                found.setdefault(path.name, hashlib.sha256()).update(content)
    return {name: digest.hexdigest()[:12] for name, digest in found.items()}


def torch_libraries() -> dict[str, str]:
    """The libraries that torch brings, as it reports them."""
    import torch

    libraries = {
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if hasattr(torch._C, "_nccl_version") else None,
        "cxx11_abi": torch.compiled_with_cxx11_abi(),
    }
    for line in torch.__config__.show().splitlines():
        for name, pattern in (("mkl", r"oneAPI Math Kernel Library Version (\S+)"), ("onednn", r"MKL-DNN v(\S+)")):
            if match := re.search(pattern, line):
                libraries[name] = match[1]
    return {name: str(value) for name, value in libraries.items() if value is not None}


def devices() -> list[dict[str, object]]:
    import torch

    if not torch.cuda.is_available():
        return []
    return [
        {"name": properties.name, "memory_bytes": properties.total_memory}
        for properties in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    ]


def main() -> None:
    subject = sys.argv[1]
    gc.disable()  # this process lives for one answer
    answer: dict[str, object] = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "interpreter": sys.executable,
        "distributions": distributions(),
        "startup_code": startup_code(),
        "commit": None,
        "libraries": {},
        "devices": [],
        "problem": None,
    }
    try:
        import torch

        answer["libraries"] = torch_libraries()
        answer["devices"] = devices()
        version = importlib.import_module(f"{subject}.version") if subject != "torch" else torch.version
        commit = getattr(version, "git_version", None)
        answer["commit"] = commit if isinstance(commit, str) and commit != "Unknown" else None
    except ImportError as error:
        if "torch" not in sys.modules:
            answer["problem"] = f"{type(error).__name__}: {error}"
    with os.fdopen(int(sys.argv[2]), "w") as out:
        json.dump(answer, out)
    os._exit(0)  # without taking torch apart


if __name__ == "__main__":
    main()
