"""Items of lists, tuples and dicts that are attributes of a layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from primgraph.errors import BuildError

# What is searched for layers.
_CONTAINERS = (list, tuple, dict, set, frozenset)


def contents(layer: object, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and items of the containers in attributes of `layer`, and of those within.

    `kind` is the class of layers, which have to be in a container with an order. Containers of a
    layer with `_has_tables` are no parts of it.
    """
    if getattr(layer, "_has_tables", False):
        return
    seen: set[int] = set()
    waiting = [(n, v) for n, v in vars(layer).items() if n not in ("_states", "_sublayers")]
    waiting = [(n, v) for n, v in waiting if isinstance(v, _CONTAINERS)]
    waiting.reverse()
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, set | frozenset):
            if any(isinstance(inner, kind) for inner in item):
                raise BuildError(
                    f"{path!r} of this {type(layer).__name__} has layers in a set, which has "
                    "no order",
                    hint="put them in a list or a pg.nn.LayerList",
                )
        elif not isinstance(item, _CONTAINERS):
            yield path, item
        elif id(item) not in seen:
            seen.add(id(item))
            pairs = item.items() if isinstance(item, dict) else enumerate(item)
            inner = [(f"{path}.{key}", value) for key, value in pairs]
            waiting += reversed(inner)
