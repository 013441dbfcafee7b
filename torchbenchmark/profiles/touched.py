"""Which operators the paths of a change belong to: by the subject's own list of operators where it has one, else by the
words of folders and files. Pure; what it gives is a hint beside a difference, and no evidence.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

OPERATOR_LIST = "aten/src/ATen/native/native_functions.yaml"  # in the tree of the subject torch
_ENTRY = re.compile(r"^- func: ([A-Za-z0-9_]+)(?:\.\w+)?\(")
_DISPATCH = re.compile(r"^\s+[A-Za-z0-9_, ]+: ([A-Za-z_][A-Za-z0-9_:]*)\s*(?:#.*)?$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_SUFFIXES = ("_backward", "_forward", "_out", "_")
_SHORTEST_WORD = 3
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

    `operator_list`: the text of native_functions.yaml; with it and `sources` (path -> text) a file belongs to the
    operators whose functions it names. A path without a source is matched by its words: those of an operator's name
    must all stand in it, or be one of its words run together (SoftMax.cu: aten::_softmax).
    """
    functions = parse_operator_list(operator_list) if operator_list else {}
    texts = dict(sources or {})
    found: dict[str, tuple[str, ...]] = {}
    for operator in dict.fromkeys(operators):
        root = _root(operator)
        names = functions.get(root, frozenset())
        mine = [path for path in paths if _belongs(path, root, names, texts.get(path))]
        if mine:
            found[operator] = tuple(mine)
    return found


def parse_operator_list(text: str) -> dict[str, frozenset[str]]:
    """By the root of an operator's name the C++ functions that compute it, from native_functions.yaml."""
    found: dict[str, set[str]] = {}
    root, in_dispatch = "", False
    for line in text.splitlines():
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


def _belongs(path: str, root: str, functions: frozenset[str], text: str | None) -> bool:
    if text is not None and functions:
        return any(re.search(rf"\b{re.escape(name)}\b\s*[(),]", text) for name in functions)
    return _named_in(path, root)


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
