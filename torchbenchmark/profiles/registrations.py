"""What a source file says that it computes: the functions that it defines, the operators that it registers with
torch's library, and the kernels that it puts behind a dispatch stub. Pure, of any text, in one pass each.
"""

import re
from dataclasses import dataclass

# TORCH_IMPL_FUNC(gelu_out_cpu), and what begins a line without being indented: Tensor& hardtanh_out(, gelu_cpu(.
_IMPLEMENTED = re.compile(r"\bTORCH_(?:IMPL|META)_FUNC2?\s*\(\s*(\w+)")
_DEFINED = re.compile(r"^(?:[A-Za-z_][\w:<>,&* ]*[ &*])?([A-Za-z_]\w*) *\(", re.MULTILINE)
# m.impl("gelu", ...), m.def("mine::gelu(Tensor x) -> Tensor"), m.impl(TORCH_SELECTIVE_NAME("aten::gelu"), ...); in
# Python torch.library.custom_op("mine::gelu", ...), @torch.library.impl(LIBRARY, "gelu").
_REGISTERED = re.compile(
    r"\b(?:def|impl|define|custom_op|triton_op|register_kernel|register_autograd)\s*\(\s*"
    r"(?:[A-Za-z_]\w*\s*,\s*)?(?:TORCH_SELECTIVE_\w+\s*\(\s*)?[\"']((?:\w+::)?\w+)"
)
_LIBRARY = re.compile(r"\b(?:TORCH_LIBRARY\w*\s*\(\s*|Library\s*\(\s*[\"'])(\w+)")
_STUB = re.compile(r"\b(?:ALSO_)?REGISTER_\w*DISPATCH\s*\(\s*(\w+)")
_BOUNDS = r"(?:\w*(?i:launch_bounds)\w*\s*\([^()]{0,80}\)\s*)?"
_GLOBAL = re.compile(rf"\b__global__\s+{_BOUNDS}(?:static\s+|inline\s+)?void\s+{_BOUNDS}(\w+)\s*\(")


@dataclass(frozen=True)
class Registrations:
    """What stands in one file."""

    defined: frozenset[str] = frozenset()  # functions
    operators: frozenset[str] = frozenset()  # with the namespace, where the file tells it: mine::gelu
    stubs: frozenset[str] = frozenset()  # gelu_stub, GeluKernel
    kernels: frozenset[str] = frozenset()  # __global__ functions


def registrations_in(text: str) -> Registrations:
    spaces = sorted(set(_LIBRARY.findall(text)))
    operators: set[str] = set()
    for name in _REGISTERED.findall(text):
        operators |= {name} if "::" in name or not spaces else {f"{space}::{name}" for space in spaces}
    return Registrations(
        frozenset((*_IMPLEMENTED.findall(text), *_DEFINED.findall(text))),
        frozenset(operators),
        frozenset(_STUB.findall(text)),
        frozenset(_GLOBAL.findall(text)),
    )
