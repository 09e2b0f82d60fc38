"""Registry of modules by task, so that imports lead downwards only.

A module that needs a higher module, or a rarely used one, asks for a task such as "pictures".
`primgraph/__init__.py` maps tasks to modules, which are imported when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

# The module of each task.
providers: dict[str, str] = {}


def provider(task: str) -> ModuleType:
    """Return the module that does `task`, loaded if it is not yet."""
    return import_module(providers[task])
