"""Which operators the paths of a change belong to. Pure; what it gives is a hint beside a difference, and no evidence.

The rule: a path belongs to an operator

1. if the file registers it with torch's library; or
2. if the subject's list of operators (native_functions.yaml) has it, and the file defines one of the functions that
   compute it, or a kernel whose words are those of its name, also for a dispatch stub (gelu_stub, GeluKernel); or
3. by the words of folders and files: all words of its name stand in the path, or the file is named as they are run
   together (SoftMax.cu: aten::_softmax).

A kernel of the GPU belongs to a file that defines a `__global__` function whose name stands in the kernel's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from torchbenchmark.profiles.registrations import Registrations, registrations_in

OPERATOR_LIST = "aten/src/ATen/native/native_functions.yaml"  # in the tree of the subject torch
LONGEST_LINE = 4000  # characters of the list; what is longer is no entry
_ENTRY = re.compile(r"^- func: ([A-Za-z0-9_]+)(?:\.\w+)?\(")
_DISPATCH = re.compile(r"^\s+[A-Za-z0-9_][A-Za-z0-9_, ]*: ([A-Za-z_][A-Za-z0-9_:]*)\s*(?:#.*)?$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_SUFFIXES = ("_backward", "_forward", "_out", "_")
_SHORTEST_WORD = 3
_OF_KERNELS = frozenset(("stub", "kernel", "fn", "function", "impl", "out", "backward", "cpu", "cuda"))
# Words of paths that say where code lies or what it is written for, and nothing of what it computes.
_PLACES = frozenset(
    re.findall(
        r"\w+",
        "aten src native cuda cpu cudnn mkldnn mkl hip mps xnnpack vulkan kernel kernels ops op impl utils "
        "util helpers common test tests docs torch csrc python include lib core base init layers models "
        "modules functional nn templates the data set get new add is to",
    )
)


def operators_touched(
    paths: Sequence[str],
    operators: Iterable[str],
    operator_list: str = "",
    sources: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, ...]]:
    """The paths that belong to each of `operators` (aten::gelu); operators with none are left out.

    `operator_list`: the text of native_functions.yaml. `sources`: path -> text, of those paths whose text is known.
    """
    functions = parse_operator_list(operator_list) if operator_list else {}
    files = {path: registrations_in(text) for path, text in (sources or {}).items()}
    found: dict[str, tuple[str, ...]] = {}
    for operator in dict.fromkeys(operators):
        mine = [path for path in paths if _belongs(path, operator, functions, files.get(path))]
        if mine:
            found[operator] = tuple(mine)
    return found


def kernels_touched(kernels: Iterable[str], sources: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The paths that define each of `kernels`, named as a profile of the GPU has them; those with none are left out."""
    defined = {path: registrations_in(text).kernels for path, text in sources.items()}
    found: dict[str, tuple[str, ...]] = {}
    for kernel in dict.fromkeys(kernels):
        names = frozenset(re.findall(r"\w+", kernel))
        if mine := tuple(path for path, functions in defined.items() if functions & names):
            found[kernel] = mine
    return found


def parse_operator_list(text: str) -> dict[str, frozenset[str]]:
    """By the root of an operator's name the C++ functions that compute it, from native_functions.yaml."""
    found: dict[str, set[str]] = {}
    root, in_dispatch = "", False
    for line in text.splitlines():
        if len(line) > LONGEST_LINE:
            continue
        if (entry := _ENTRY.match(line)) is not None:
            root, in_dispatch = _root(entry[1]), False
            found.setdefault(root, set()).add(entry[1])
        elif root and line.strip() == "dispatch:":
            in_dispatch = True
        elif in_dispatch and (dispatch := _DISPATCH.match(line)) is not None and line.startswith("    "):
            found[root].add(dispatch[1].rpartition("::")[2])
        elif line.strip() and not line.startswith("    "):
            in_dispatch = False
    return {name: frozenset(functions) for name, functions in found.items()}


def _belongs(path: str, operator: str, functions: Mapping[str, frozenset[str]], file: Registrations | None) -> bool:
    root = _root(operator)
    if file is not None:
        if any(_is_of(registered, operator) for registered in file.operators):
            return True
        if names := functions.get(root):
            kernels = file.stubs | {name for name in file.defined if "kernel" in name.lower()}
            if names & file.defined or any(_kernel_words(kernel) == _words(root) for kernel in kernels):
                return True
    return _named_in(path, root)


def _is_of(registered: str, operator: str) -> bool:
    """mine::gelu_ is of mine::gelu, and not of aten::gelu; the name alone is of either."""
    spaces = [name.rpartition("::")[0] for name in (registered, operator)]
    return _root(registered) == _root(operator) and ("" in spaces or spaces[0] == spaces[1])


def _kernel_words(name: str) -> list[str]:
    return [word for word in _words(name) if word not in _OF_KERNELS]


def _named_in(path: str, root: str) -> bool:
    words = _words(path)
    wanted = [word for word in _words(root) if word not in _PLACES]
    if not wanted or all(len(word) < _SHORTEST_WORD for word in wanted):
        return False
    together = "".join(_words(path.rpartition("/")[2].partition(".")[0]))
    return all(word in words for word in wanted) or "".join(wanted) == together


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _root(operator: str) -> str:
    """aten::_softmax_backward_data -> softmax_backward_data; aten::add_ -> add; GeluBackward0 -> gelu."""
    name = operator.rpartition("::")[2].removeprefix("_")
    if (node := re.fullmatch(r"(\w+?)Backward\d*", name)) is not None:
        name = "_".join(_words(node[1]))
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name.strip("_")
