"""Walks over a module and all within: by name, each thing once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def join_path(path: str, name: str) -> str:
    """Return the dotted name of a part."""
    return f"{path}.{name}" if path else name


def walk_modules(
    whole: Any, prefix: str = "", once: bool = True, seen: set[Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and modules, outer ones first; each module one time with `once`."""
    known = set() if seen is None else seen
    waiting: list[tuple[str, Any]] = [(prefix, whole)]
    while waiting:
        path, module = waiting.pop()
        if once:
            if module in known:
                continue
            known.add(module)
        yield path, module
        inner = [(join_path(path, n), m) for n, m in module._modules.items() if m is not None]
        waiting += reversed(inner)


def walk_members(
    whole: Any, table: str, prefix: str = "", recurse: bool = True, once: bool = True
) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and entries of a table of a module, and of those within if `recurse`.

    `table` is "_parameters" or "_buffers". Entries that are None are left out.
    """
    seen: set[int] = set()
    modules = walk_modules(whole, prefix, once) if recurse else iter([(prefix, whole)])
    for path, module in modules:
        for name, item in module.__dict__[table].items():
            if item is None or (once and id(item) in seen):
                continue
            seen.add(id(item))
            yield join_path(path, name), item


def find_path(whole: Any, path: str, what: Callable[[Any, str], Any]) -> Any:
    """Return `what(module, name)` for the module that a dotted path leads to, and its last name.

    Raises `AttributeError` for a name on the way that is no module.
    """
    *names, last = path.split(".")
    module = whole
    for name in names:
        module = require_module(module, name)
    return what(module, last)


def require_module(owner: Any, name: str) -> Any:
    """Return the module of that name in `owner`, or raise `AttributeError`."""
    if not hasattr(owner, name):
        raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
    found = getattr(owner, name)
    if not hasattr(found, "_modules"):
        raise AttributeError(f"`{name}` is not an nn.Module")
    return found


def describe(module: Any) -> str:
    """Return the text of a module: its class, arguments and parts, one to a line."""
    own = module.extra_repr()
    extra = own.split("\n") if own else []
    inner = []
    for name, part in module._modules.items():
        first, *rest = repr(part).split("\n")
        inner.append("\n".join([f"({name}): {first}", *(f"  {line}" for line in rest)]))
    if len(extra) == 1 and not inner:
        return f"{module._get_name()}({extra[0]})"
    lines = [*extra, *inner]
    return f"{module._get_name()}({''.join(f'{chr(10)}  {line}' for line in lines)}" + (
        "\n)" if lines else ")"
    )
