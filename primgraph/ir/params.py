"""Parameters of equations: plain hashable data, told apart bit by bit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.types import NAME_OF_DTYPE, TensorType, as_dtype

Params: TypeAlias = tuple[tuple[str, Any], ...]

_INTEGERS = frozenset({int})


@final
class Array:
    """A frozen array: a private read-only copy, equal to another only bit by bit.

    `0.0` and `-0.0` differ, a NaN equals the same NaN, and dtype and shape count.
    """

    __slots__ = ("_hash", "data")

    def __init__(self, data: Any) -> None:
        array = np.array(data, order="C", copy=True)
        array = array.astype(as_dtype(array.dtype), copy=False)
        array.setflags(write=False)
        self.data: np.ndarray[Any, Any] = array
        self._hash = hash((array.dtype.str, array.shape, array.tobytes()))

    @property
    def type(self) -> TensorType:
        return TensorType(self.data.shape, self.data.dtype)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and self._hash == other._hash
            and self.data.dtype == other.data.dtype
            and self.data.shape == other.data.shape
            and self.data.tobytes() == other.data.tobytes()
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Array({self.type})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.data,)


def freeze(value: Any) -> Any:
    """`value` as parameter data: NumPy scalars become Python's, lists become tuples."""
    kind = type(value)
    if kind in (int, bool, str, Array) or value is None:
        return value
    if kind is float:
        # All NaNs are one NaN here, so that text and source can write each parameter exactly.
        return value if value == value else float("nan")
    if kind is tuple or kind is list:
        if _INTEGERS.issuperset(map(type, value)):
            return tuple(value)
        return tuple([freeze(v) for v in value])
    if isinstance(value, np.dtype):
        return value if value in NAME_OF_DTYPE else as_dtype(value)
    if isinstance(value, type):
        return as_dtype(value)
    if isinstance(value, np.generic):
        return freeze(value.item())
    if isinstance(value, np.ndarray):
        return Array(value)
    raise ArgumentError(f"a parameter is plain data, not {kind.__name__} {value!r}")


def freeze_all(params: Iterable[tuple[str, Any]]) -> Params:
    """Named parameters, frozen and sorted by name."""
    return tuple(sorted([(name, freeze(value)) for name, value in params]))


def bits(value: Any) -> Hashable:
    """A key that is equal only for equal bits: 1, 1.0 and True differ, and 0.0 and -0.0."""
    kind = type(value)
    if kind is float:
        return ("float", value if value and value == value else value.hex())
    if kind is bool:
        return ("bool", value)
    if kind is tuple:
        if _INTEGERS.issuperset(map(type, value)):
            return value  # type: ignore[no-any-return]
        return tuple([v if type(v) in (int, str) else bits(v) for v in value])
    if isinstance(value, np.dtype):
        return ("dtype", NAME_OF_DTYPE[value])
    return value if isinstance(value, Hashable) else repr(value)
