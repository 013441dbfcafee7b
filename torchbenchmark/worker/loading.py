"""Finds the Model class of a model folder, built-in or a user's, by path."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_BUILT_IN = Path(__file__).resolve().parents[1] / "models"


def import_model(name: str, folder: str) -> ModuleType:
    """The module of the model `name` in `folder`; imported once a process."""
    if Path(folder).resolve().parent == _BUILT_IN:
        return importlib.import_module(f"torchbenchmark.models.{name}")
    full_name = f"torchbenchmark_extra_models.{name}"
    if full_name in sys.modules:
        return sys.modules[full_name]
    spec = importlib.util.spec_from_file_location(
        full_name, Path(folder) / "__init__.py", submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder}: not a model folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[full_name]
        raise
    return module
