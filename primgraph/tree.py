"""Pytrees: flatten containers of arrays, and rebuild them.

Containers are tuples, lists, dicts and other mappings, named tuples, dataclasses, None (an empty
one), and classes registered by `register`. A pandas DataFrame counts as a dict of its columns.
Everything else is a leaf.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from types import NoneType
from typing import Any, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError
from primgraph.ir.frontend import containers
from primgraph.ir.frontend.containers import Flatten, Tree, Unflatten, open_container, registered
from primgraph.ir.frontend.signature import check_arguments

__all__ = [
    "Structure",
    "count",
    "flatten",
    "leaves",
    "map",
    "paths",
    "register",
    "structure",
    "unflatten",
]

# Classes of leaves that need no further checks.
_PLAIN_LEAVES = frozenset({np.ndarray, np.float64, float, int, bool, str})

# A container nested deeper than this most likely contains itself.
_DEEPEST = 100


@final
@dataclass(frozen=True, slots=True)
class Structure:
    """Containers around leaves, without the leaves; equal for containers of equal structure.

    `kind` is the class of the outermost one, None for a single leaf. `keys` are the keys of its
    `parts`, and `rest` is other data that its class needs to rebuild it.
    """

    kind: type[Any] | None
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()
    rest: Hashable = None

    def __str__(self) -> str:
        """Print as Python would, with a star for each leaf."""
        return self.format_leaves(repeat("*"))

    def format_leaves(self, leaves: Iterator[str]) -> str:
        """Print as Python would, with the next of `leaves` for each leaf."""
        if self.kind is None:
            return next(leaves)
        if self.kind is NoneType:
            return "None"
        texts = [part.format_leaves(leaves) for part in self.parts]
        if self.kind is tuple:
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        if self.kind is list:
            return f"[{', '.join(texts)}]"
        pairs = builtins.list(zip(self.keys, texts, strict=True))
        if self.kind is dict:
            return "{" + ", ".join(f"{key!r}: {text}" for key, text in pairs) + "}"
        return f"{self.kind.__name__}({', '.join(f'{key}={text}' for key, text in pairs)})"


LEAF = Structure(None)


@check_arguments
def register(kind: type[Any], flatten: Flatten, unflatten: Unflatten) -> None:
    """Register class `kind`, without its subclasses, as a container of arrays.

    `flatten(value)` returns the parts, a sequence or a mapping whose keys name the parts in
    messages, and other data, which must be hashable. `unflatten(rest, parts)` builds an object from
    these data and a list of other parts.

    Raises `ArgumentError` for an object that is not a class, and for a class that is a container
    already.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pg.register_container(Pair, lambda p: ((p.a, p.b), None), lambda rest, parts: Pair(*parts))
    >>> pg.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0)).a
    array(3.)
    """
    if kind in registered or issubclass(kind, tuple | list | Mapping | NoneType):
        raise ArgumentError(f"{kind.__name__} is a container already")
    registered[kind] = flatten, unflatten


def flatten(
    value: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], Structure]:
    """Return the leaves of `value` in order, and the containers around them.

    Objects for which `is_leaf` is true are leaves. Raises `ArgumentError` for containers nested
    deeper than 100 levels, such as one that contains itself.
    """
    leaves: list[Any] = []
    return leaves, _flatten_value(value, is_leaf, leaves, 0)


def _flatten_value(
    value: Any, is_leaf: Callable[[Any], bool] | None, leaves: list[Any], depth: int
) -> Structure:
    if depth > _DEEPEST:
        raise ArgumentError(f"containers are nested deeper than {_DEEPEST}, or in themselves")
    found = None if is_leaf is not None and is_leaf(value) else _open_container(value)
    if found is None:
        leaves.append(value)
        return LEAF
    kind, keys, items, rest = found
    parts = tuple([_flatten_value(item, is_leaf, leaves, depth + 1) for item in items])
    return Structure(kind, keys, parts, rest)


def _open_container(
    value: Any,
) -> tuple[type[Any], tuple[Hashable, ...], Sequence[Any], Hashable] | None:
    """Return class, keys, parts and data of a container; None for a leaf."""
    plain = type(value)
    if plain in _PLAIN_LEAVES:
        return None
    if plain is dict:
        return dict, tuple(value), [*value.values()], None
    if plain is list or plain is tuple:
        return plain, tuple(range(len(value))), value, None
    if plain not in registered and isinstance(value, Mapping):
        return dict, tuple(value), [*value.values()], None
    if _is_frame(value):
        columns = tuple(value.columns)
        if len(set(columns)) < len(columns):
            raise ArgumentError(f"columns of a DataFrame have one name: {columns!r:.100}")
        return dict, columns, [value[name].to_numpy() for name in columns], None
    return open_container(value)


def _is_frame(value: Any) -> bool:
    """Return whether `value` is a pandas DataFrame, which counts as a dict of its columns."""
    kind = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return kind is not None and isinstance(value, kind)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Rebuild the containers of `structure` with these leaves.

    Raises `ArgumentError` unless there are exactly as many leaves as in `structure`.
    """
    given = [*leaves]
    wanted = count(structure)
    if len(given) != wanted:
        raise ArgumentError(f"{structure} has {wanted} leaves, and {len(given)} are given")
    return _build_value(structure, iter(given))


def _build_value(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    items = [_build_value(part, leaves) for part in structure.parts]
    if kind is list:
        return items
    if kind is tuple:
        return tuple(items)
    if kind is dict:
        return dict(zip(structure.keys, items, strict=True))
    if kind is NoneType:
        return None
    if kind in registered:
        return registered[kind][1](structure.rest, items)
    if issubclass(kind, tuple):
        return kind(*items)
    return kind(**{str(k): v for k, v in zip(structure.keys, items, strict=True)})


def count(structure: Structure) -> int:
    """Return the number of leaves of a structure."""
    return 1 if structure.kind is None else sum(builtins.map(count, structure.parts))


def leaves(value: Any) -> list[Any]:
    """Return the leaves of `value`, in order."""
    return flatten(value)[0]


def structure(value: Any) -> Structure:
    """Return the containers of `value`, without its leaves."""
    return flatten(value)[1]


def map(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply `function` to each leaf of `value`, and to the leaves of `others` at its position.

    Raises `ArgumentError` if the containers of `others` differ.
    """
    found, built = flatten(value)
    columns = [found]
    for other in others:
        listed, like = flatten(other)
        if like != built:
            raise ArgumentError(f"the containers differ: {built} and {like}")
        columns.append(listed)
    return _build_value(built, iter([function(*row) for row in zip(*columns, strict=True)]))


def paths(value: Any, root: str = "") -> list[str]:
    """Return the path of each leaf, as Python would write it after `root`: `['w'][0].bias`."""
    return paths_of(structure(value), root)


def paths_of(structure: Structure, root: str = "") -> list[str]:
    """Return the path of each leaf of such containers, as Python would write it after `root`."""
    if structure.kind is None:
        return [root]
    found = []
    for key, part in zip(structure.keys, structure.parts, strict=True):
        found += paths_of(part, f"{root}{_access(structure.kind, key)}")
    return found


def _access(kind: type[Any], key: Hashable) -> str:
    named = kind is not dict and isinstance(key, str) and key.isidentifier()
    return f".{key}" if named else f"[{key!r}]"


def form(structure: Structure) -> Tree:
    """The same containers, as the form of a graph has them.

    Raises `ArgumentError` for keys that are neither strings nor integers.
    """
    if structure.kind is None:
        return containers.LEAF
    strange = [k for k in structure.keys if type(k) not in (str, int)]
    if strange:
        raise ArgumentError(f"keys of a dict are strings or integers, not {strange[0]!r:.60}")
    keys = tuple([k for k in structure.keys if isinstance(k, str | int)])
    parts = tuple([form(part) for part in structure.parts])
    return containers.Branch(structure.kind, keys, parts, structure.rest)


def broadcast_prefix(values: Any, structure: Structure, what: str) -> list[Any]:
    """Return one of `values` for each leaf of `structure`; `values` may be a prefix of it.

    A value stands for all leaves below it. Raises `ArgumentError`, about `what`, if the containers
    do not match.
    """
    found: list[Any] = []
    _broadcast_prefix(values, structure, what, "", found)
    return found


def _broadcast_prefix(
    values: Any, structure: Structure, what: str, path: str, found: list[Any]
) -> None:
    opened = None if values is None else _open_container(values)
    if opened is None:
        found += [values] * count(structure)
        return
    kind, keys, items, _ = opened
    fits = kind is structure.kind or {kind, structure.kind} <= {list, tuple}
    if not fits or set(keys) != set(structure.keys) or len(keys) != len(structure.keys):
        raise ArgumentError(
            f"{what}{path} is {Structure(kind, keys, (LEAF,) * len(keys))}, and there is "
            f"{structure} in its place"
        )
    below = dict(zip(keys, items, strict=True))
    for key, part in zip(structure.keys, structure.parts, strict=True):
        _broadcast_prefix(below[key], part, what, f"{path}{_access(kind, key)}", found)


def __dir__() -> list[str]:
    return sorted(__all__)
