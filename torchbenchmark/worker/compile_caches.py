"""Where this child's compilers keep what they compiled, and whether they may read it: set before the first compilation.

The child was forked from a process that had imported torch, so the switches that torch read from the environment then
are set in its configuration too. The environment is for what reads it later, and for the compilers' own children.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch._functorch.config
import torch._inductor.config

# switch of torch's configuration -> its variable. What one version of torch does not know is left out.
_REMOTE = {
    "fx_graph_remote_cache": "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "autotune_remote_cache": "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE",
    "bundled_autotune_remote_cache": "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE",
    "enable_remote_autograd_cache": "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
}
_LOCAL = {
    "fx_graph_cache": "TORCHINDUCTOR_FX_GRAPH_CACHE",
    "enable_autograd_cache": "TORCHINDUCTOR_AUTOGRAD_CACHE",
}
_DISABLED = ("force_disable_caches", "TORCHINDUCTOR_FORCE_DISABLE_CACHES")


def use_compile_caches(cache: Mapping[str, str]) -> None:
    """Keep everything that is compiled under `cache["folder"]`; call it before the first tensor on the device.

    `cache["mode"]` is "cold" (graphs are compiled whatever the folder holds), "fill" or "warm" (they are read from it).
    No mode asks a remote cache. Headers that Inductor compiles for g++ lie in the temporary folder: it is moved too.
    """
    folder = Path(cache["folder"])
    local = cache["mode"] != "cold"
    for variable, part in (
        ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
        ("TRITON_CACHE_DIR", "triton"),
        ("CUDA_CACHE_PATH", "cuda"),
        ("TMPDIR", "tmp"),
    ):
        (folder / part).mkdir(parents=True, exist_ok=True)
        os.environ[variable] = str(folder / part)
    tempfile.tempdir = os.environ["TMPDIR"]
    for switch, variable in _REMOTE.items():
        _switch(switch, variable, on=False)
    for switch, variable in _LOCAL.items():
        _switch(switch, variable, on=local)
    _switch(*_DISABLED, on=False)


def _switch(switch: str, variable: str, *, on: bool) -> None:
    os.environ[variable] = "1" if on else "0"
    for configuration in (torch._inductor.config, torch._functorch.config):
        if hasattr(configuration, switch):
            setattr(configuration, switch, on)
            if getattr(configuration, switch) is not on:
                raise RuntimeError(
                    f"{variable} is set in the environment of this build's interpreter, and torch obeys nothing else: "
                    "unset it, or compile times would be neither cold nor warm"
                )
