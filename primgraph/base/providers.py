"""Registry of modules by task, so that imports lead downwards only.

A module that needs a higher module, or a rarely used one, asks for a task such as "pictures".
`primgraph/__init__.py` maps tasks to modules, which are imported when they are first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, final

# The module of each task.
providers: dict[str, str] = {}
# The tasks of files of models, by suffix.
MODELS = {".mlir": "StableHLO files", ".onnx": "ONNX files"}


def provider(task: str) -> ModuleType:
    """Return the module that does `task`, loaded if it is not yet."""
    return import_module(providers[task])


@final
class _LateModule(ModuleType):
    """Stand-in of a module, which imports it when a name of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        # Found names are kept, so that they cost what those of a module do.
        vars(self)[name] = found
        return found


def late(name: str) -> ModuleType:
    """Return the module of that name, or a stand-in which imports it at the first access.

    For modules that many programs never call:

        if TYPE_CHECKING:
            from primgraph.transforms.loops import split_loops
        else:
            split_loops = late("primgraph.transforms.loops.split_loops")
    """
    known = sys.modules.get(name)
    # Another thread may be importing it.
    is_ready = known is not None and not getattr(known.__spec__, "_initializing", False)
    return known if known is not None and is_ready else _LateModule(name)
