"""Elements of an array in one row: `x.flat`, for reading and for assignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.dims import Dim
from primgraph.operators.handle import Handle
from primgraph.operators.numpy_arguments import call_named, may_change


@final
class FlatElements:
    """Elements of an array in row-major order, as NumPy's `x.flat`.

    What is read is a copy. `x.flat[index] = values` repeats the values if there are fewer than
    places. NumPy's functions take it as a vector.

    >>> x = pg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.flat[1:3]
    tensor([2., 3.])
    >>> x.flat[::3] = 0.0
    >>> x
    tensor([[0., 2.],
            [3., 0.]])
    """

    __slots__ = ("_base", "_index")

    def __init__(self, base: Any) -> None:
        self._base = base
        self._index = 0

    @property
    def base(self) -> Any:
        """The array."""
        return self._base

    @property
    def index(self) -> int:
        """Number of elements that `next` has returned."""
        return self._index

    @property
    def coords(self) -> tuple[int, ...]:
        """Index of the element that `next` returns next."""
        found = np.unravel_index(self._index, self._base.shape)
        return tuple(int(i) for i in found)

    def copy(self) -> Any:
        """Return all elements as a vector."""
        return self[:]

    def __len__(self) -> int:
        size: int = self._base.size
        if isinstance(size, Dim):
            raise ArgumentError(
                f"the number of elements of {self._base.type} is not known yet",
                hint="x.size is a size that the run tells",
            )
        return size

    def __getitem__(self, index: Any) -> Any:
        found = call_named("getitem", call_named("ravel", self._base), index)
        return found.copy() if may_change(found) and found.ndim else found

    def __setitem__(self, index: Any, value: Any) -> None:
        value = value[:] if isinstance(value, FlatElements) else value
        if isinstance(index, Handle) and index.dtype.kind == "b":
            self._base[call_named("reshape", index, self._base.shape)] = value
        elif isinstance(index, Handle) or (
            isinstance(self._base.size, Dim) and not isinstance(index, slice)
        ):
            np.put(self._base, index, value)
        else:
            places = np.arange(len(self))[index]
            if places.size and np.size(value) == 0:
                raise ArgumentError(f"x.flat[...] of {self._base.type} takes at least one value")
            np.put(self._base, places, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __next__(self) -> Any:
        if self._index >= len(self):
            raise StopIteration
        self._index += 1
        return self[self._index - 1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self[:].__array__(dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function with vectors in the place of such elements."""
        return func(*_as_vectors(args), **{name: _as_vectors(v) for name, v in kwargs.items()})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_as_vectors(inputs), **kwargs)

    def __repr__(self) -> str:
        return f"<elements of {self._base.type} in one row>"


def _as_vectors(given: Any) -> Any:
    if isinstance(given, FlatElements):
        return given[:]
    if isinstance(given, list | tuple):
        return type(given)([_as_vectors(item) for item in given])
    return given
