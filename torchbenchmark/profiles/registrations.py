"""What a source file says that it computes: the functions that it names, the operators that it registers with torch's
library, and the kernels that it puts behind a dispatch stub. Pure, of any text, in one pass each.
"""

import re
from dataclasses import dataclass

_NAMED = re.compile(r"\b([A-Za-z_]\w*)\s*[(),]")
# m.impl("gelu", ...), m.def("mine::gelu(Tensor x) -> Tensor"), m.impl(TORCH_SELECTIVE_NAME("aten::gelu"), ...); in
# Python torch.library.custom_op("mine::gelu", ...), @torch.library.impl(LIBRARY, "gelu").
_REGISTERED = re.compile(
    r"\b(?:def|impl|define|custom_op|triton_op|register_kernel|register_autograd)\s*\(\s*"
    r"(?:[A-Za-z_]\w*\s*,\s*)?(?:TORCH_SELECTIVE_\w+\s*\(\s*)?[\"']((?:\w+::)?\w+)"
)
_LIBRARY = re.compile(r"\b(?:TORCH_LIBRARY\w*\s*\(\s*|Library\s*\(\s*[\"'])(\w+)")
_STUB = re.compile(r"\b(?:ALSO_)?REGISTER_\w*DISPATCH\s*\(\s*(\w+)")
_GLOBAL = re.compile(
    r"\b__global__\b[^;{(]{0,200}?(?:\b\w*(?i:launch_bounds)\w*\s*\([^()]{0,80}\)\s*[^;{(]{0,80}?)?\b(\w+)\s*\("
)


@dataclass(frozen=True)
class Registrations:
    """What stands in one file."""

    named: frozenset[str] = frozenset()  # identifiers that are called, passed or defined
    operators: frozenset[str] = frozenset()  # with the namespace, where the file tells it: mine::gelu
    stubs: frozenset[str] = frozenset()  # gelu_stub, GeluKernel
    kernels: frozenset[str] = frozenset()  # __global__ functions


def registrations_in(text: str) -> Registrations:
    spaces = sorted(set(_LIBRARY.findall(text)))
    operators: set[str] = set()
    for name in _REGISTERED.findall(text):
        operators |= {name} if "::" in name or not spaces else {f"{space}::{name}" for space in spaces}
    return Registrations(
        frozenset(_NAMED.findall(text)),
        frozenset(operators),
        frozenset(_STUB.findall(text)),
        frozenset(_GLOBAL.findall(text)),
    )
