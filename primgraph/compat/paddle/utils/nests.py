"""Nested lists, tuples and dicts, whose items are in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from primgraph.errors import ArgumentError


def flatten(nest: Any) -> list[Any]:
    """Return the items of nested lists, tuples and dicts.

    >>> paddle.utils.flatten({"b": 1, "a": [2, (3,)]})
    [2, 3, 1]
    """
    if isinstance(nest, dict):
        return [item for key in sorted(nest) for item in flatten(nest[key])]
    if isinstance(nest, list | tuple):
        return [item for part in nest for item in flatten(part)]
    return [nest]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Return items in the nested lists, tuples and dicts of `structure`.

    >>> paddle.utils.pack_sequence_as([1, (2, {"a": 3})], [4, 5, 6])
    [4, (5, {'a': 6})]
    """
    count = len(flatten(structure))
    if len(flat_sequence) != count:
        raise ArgumentError(f"a structure of {count} items, and {len(flat_sequence)} are given")
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, items: Iterator[Any]) -> Any:
    """Return the next items in the form of a structure."""
    if isinstance(structure, dict):
        found = {key: _packed(structure[key], items) for key in sorted(structure)}
        return type(structure)((key, found[key]) for key in structure)
    if isinstance(structure, list | tuple):
        parts = [_packed(part, items) for part in structure]
        is_named = hasattr(structure, "_fields")
        return type(structure)(*parts) if is_named else type(structure)(parts)
    return next(items)


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Apply a function to the items of nested lists, tuples and dicts of one form.

    >>> paddle.utils.map_structure(lambda a, b: a + b, [1, {"a": 2}], [3, {"a": 4}])
    [4, {'a': 6}]
    """
    flat = [flatten(part) for part in structure]
    if len({len(items) for items in flat}) != 1:
        raise ArgumentError("map_structure takes structures of as many items")
    return pack_sequence_as(structure[0], [func(*items) for items in zip(*flat, strict=True)])
