"""Modules that are asked for by the task they do, so that imports lead downwards only.

A module that needs one above it, or one that few programs need, names a task such as "pictures".
`primgraph/__init__.py` names the module that does it, which is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

# The module of each task.
providers: dict[str, str] = {}


def provider(task: str) -> ModuleType:
    """Return the module that does `task`, loaded if it is not yet."""
    return import_module(providers[task])
