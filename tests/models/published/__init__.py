"""What is published of each model, put together from this folder's modules: each has a dict PUBLISHED of a few."""

import importlib
import pkgutil

PUBLISHED = {
    name: facts
    for module in pkgutil.iter_modules(__path__)
    for name, facts in getattr(importlib.import_module(f"{__name__}.{module.name}"), "PUBLISHED", {}).items()
}
