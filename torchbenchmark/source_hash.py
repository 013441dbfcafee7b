"""A hash over what a model's code does, taken from the sources without importing them: comments, docstrings and layout
do not change it, and it is the same in every version of Python."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from torchbenchmark.errors import BenchmarkError

PACKAGE = Path(__file__).parent
SHARED = ("torchbenchmark.families.", "torchbenchmark.models.")  # where code that models have in common may lie


def source_hash(folder: Path) -> str:
    """Twelve hex digits over the Python files of a model's folder and over those of `SHARED` that they import, directly
    or through one another."""
    digest = hashlib.sha256()
    own = {path: _parse(path) for path in sorted(folder.rglob("*.py"))}
    for path, tree in own.items():
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(_structure(tree))
    shared: dict[Path, ast.Module] = {}
    to_follow = [*own.values()]
    while to_follow:
        for path in _shared_imports(to_follow.pop()):
            if path not in own and path not in shared:
                shared[path] = _parse(path)
                to_follow.append(shared[path])
    for path, tree in sorted(shared.items()):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(_structure(tree))
    return digest.hexdigest()[:12]


def _parse(path: Path) -> ast.Module:
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise BenchmarkError(f"{path}: not valid Python ({error}); mend the model") from error
    _drop_docstrings(tree)
    return tree


def _shared_imports(tree: ast.Module) -> Iterator[Path]:
    """The files of `SHARED` that a module imports by their absolute names, wherever in it the import stands."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith(SHARED):
                path = PACKAGE.joinpath(*name.split(".")[1:])
                yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def _structure(tree: ast.Module) -> bytes:
    return repr(_nested_tuples(tree)).encode()


def _nested_tuples(node: object) -> object:
    """A syntax tree as nested tuples. Unlike `ast.dump` it leaves out empty fields, and so is the same in every version
    of Python: 3.12 added an empty `type_params` to each function, which would have moved every workload."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return (type(node).__name__, *((name, _nested_tuples(value)) for name, value in fields))
    return tuple(_nested_tuples(item) for item in node) if isinstance(node, list) else node


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
