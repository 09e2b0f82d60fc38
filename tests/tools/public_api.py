"""The public names of primgraph with their parameters, a line each.

`python tests/tools/public_api.py > tests/tools/public_api.txt` writes the list down.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

sys.path[:0] = [str(Path(__file__).parents[2])]

MODULES = [
    "primgraph",
    "primgraph.array_api",
    "primgraph.array_api.fft",
    "primgraph.array_api.linalg",
    "primgraph.compat.paddle",
    "primgraph.compat.paddle.incubate.autograd",
    "primgraph.compat.paddle.nn",
    "primgraph.compat.paddle.nn.functional",
    "primgraph.compat.paddle.nn.initializer",
    "primgraph.compat.paddle.static",
    "primgraph.extend",
    "primgraph.initializers",
    "primgraph.fft",
    "primgraph.linalg",
    "primgraph.nn",
    "primgraph.operators",
    "primgraph.optimizer",
    "primgraph.random",
    "primgraph.special",
    "primgraph.transforms",
    "primgraph.view",
]


def public_api() -> str:
    """A line for each public name of the public modules, and for each member of their classes."""
    seen: dict[int, str] = {}
    return "".join(f"{line}\n" for name in MODULES for line in _module(name, seen))


def _module(name: str, seen: dict[int, str]) -> Iterator[str]:
    module = importlib.import_module(name)
    for short in sorted(_public(module)):
        item = getattr(module, short)
        if inspect.ismodule(item):
            yield f"{name}.{short}: a module"
        elif id(item) in seen and callable(item):
            yield f"{name}.{short} is {seen[id(item)]}"
        else:
            seen[id(item)] = f"{name}.{short}"
            yield from _item(f"{name}.{short}", item)


def _public(module: Any) -> list[str]:
    """The names of `__all__`, or those that the module itself defines."""
    named = getattr(module, "__all__", None)
    if named is not None:
        return [n for n in named if not n.startswith("_")]
    own = vars(module).items()
    name = module.__name__
    return [n for n, v in own if not n.startswith("_") and getattr(v, "__module__", "") == name]


def _item(name: str, item: Any) -> Iterator[str]:
    if get_origin(item) is not None:
        yield f"{name}: a type"
        return
    if not inspect.isclass(item):
        yield f"{name}{_parameters(item)}" if callable(item) else f"{name}: a {type(item).__name__}"
        return
    bases = [b.__name__ for b in item.__mro__[1:-1] if b.__module__.startswith("primgraph")]
    yield f"class {name}{_parameters(item)}" + (f" of {', '.join(bases)}" if bases else "")
    for short in sorted(dir(item)):
        member = inspect.getattr_static(item, short)
        if short.startswith("_") or not _is_ours(item, short):
            continue
        function = getattr(member, "__func__", member)
        called = _parameters(function) if callable(function) else ""
        yield f"    {short}{called}"


def _is_ours(cls: type, member: str) -> bool:
    """Whether the class that has this member is primgraph's, and not Python's."""
    owner = next((c for c in cls.__mro__ if member in vars(c)), object)
    return owner.__module__.startswith("primgraph")


def _parameters(item: Any) -> str:
    """Names, kinds and defaults of what it takes, without types, which Python versions spell."""
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return re.sub(r"<function \S+ at 0x[0-9a-f]+>", "a function", text)


if __name__ == "__main__":
    print(public_api(), end="")
