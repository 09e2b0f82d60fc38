"""Arrays of a program that may be assigned to, as NumPy's: the handle means another value then.

What is taken of an array by slices or in another shape is a view of it: it shows what the array
holds when it is looked at. Views do not write through: what an assignment to one should have
changed is an error where it is used afterwards, with both lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Self

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Recorder, innermost
from primgraph.operators.handle import Handle
from primgraph.operators.late import functions
from primgraph.operators.placing import is_computed, placed, put
from primgraph.operators.variable import Variable, handles
from primgraph.source import caller

# Functions that give views of their first argument where they do so of NumPy's arrays.
_VIEWS = frozenset((
    "array_split", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diag",
    "diagonal", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "getitem", "hsplit",
    "matrix_transpose", "moveaxis", "ravel", "reshape", "rollaxis", "rot90", "split", "squeeze",
    "swapaxes", "transpose", "unstack", "vsplit",
))  # fmt: skip


class _Family:
    """An array and its views: how often one of them was assigned to."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class ChangingArray(Variable):
    """A variable that may be assigned to: `y[1:] = x`, `y += 1`. See the module."""

    __slots__ = ("_broke", "_broken", "_family", "_index", "_seen", "_shown", "_source")

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self._family: _Family | None = None
        # The array that this is a view of, and what makes it of that.
        self._source: tuple[ChangingArray, Callable[[Any], Any]] | None = None
        self._seen = 0
        # The line that should have changed this array through a view of it.
        self._broken: Any = None
        # The index by which this was taken, and arrays that may not be used since this was changed.
        self._index: Any = None
        self._broke: list[ChangingArray] = []
        self._shown = value
        super().__init__(recorder, value)

    @property
    def value(self) -> Value:
        """The value that the array is now."""
        family = self._family
        if family is not None and self._seen != family.version:
            self._look_again(family)
        return self._shown

    @value.setter
    def value(self, value: Value) -> None:
        self._shown = value

    def _look_again(self, family: _Family) -> None:
        """What the array holds after one of its family was assigned to."""
        chain = [self]
        while chain[-1]._source is not None and chain[-1]._seen != family.version:
            chain.append(chain[-1]._source[0])
        for array in reversed(chain):
            if array._broken is not None:
                place = array._broken
                raise ArgumentError(
                    "an array is used that was to be changed through a view of it, and views do "
                    "not write through",
                    origin=[f"a view of it was assigned to at {place}   {place.text}".rstrip()],
                    hint="assign to the array itself: y[0, 1] = v, not row = y[0]; row[1] = v",
                )
            if array._source is not None and array._seen != family.version:
                base, again = array._source
                array._shown = again(Variable(base.recorder, base._shown)).value
            array._seen = family.version

    def change_to(self, found: Variable) -> None:
        """Mean another value from now on, of the same shape, in the dtype that it has.

        Raises `ShapeError` and `DTypeError` for a value that it cannot hold.
        """
        if found.shape != self.shape:
            raise ShapeError(f"{self.type} cannot be changed in place into {found.type}")
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise DTypeError(f"{self.type} cannot hold {found.type}")
        value = _of_dtype(found, self).value
        family = self._family
        if family is not None:
            # What this is a view of keeps its elements, and may not be used any more.
            array, place = self._source, caller()
            self._broke = []
            while array is not None:
                if array[0]._broken is None:
                    self._broke.append(array[0])
                array[0]._broken = place
                array[0]._seen = -1
                array = array[0]._source
            family.version += 1
            self._seen = family.version
            if self._source is not None:
                # Others of the family read from what is broken; this one goes on by itself.
                self._source, self._family, self._seen = None, None, 0
        self._shown = value

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, ChangingArray) and any(a is self for a in value._broke):
            value._store_back(index)
        plain = Variable(self.recorder, self.value)
        self.change_to(_set(plain, index, value))

    def _store_back(self, index: Any) -> None:
        """Let arrays be used again of which this was a view: it is put where it was taken from.

        That is how Python runs `y[1:-1] += x`.
        """
        if _places(index) == self._index:
            for array in self._broke:
                array._broken = None
            self._broke = []

    def _changed(self, name: str, other: Any) -> Self:
        self.change_to(functions[name](Variable(self.recorder, self.value), other))
        return self

    def __iadd__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("add", other)

    def __isub__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("subtract", other)

    def __imul__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("multiply", other)

    def __itruediv__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("divide", other)

    def __ifloordiv__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("floor_divide", other)

    def __imod__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("remainder", other)

    def __ipow__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("power", other)

    def __imatmul__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("matmul", other)

    def __iand__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("bitwise_and", other)

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("bitwise_or", other)

    def __ixor__(self, other: Any) -> Self:  # type: ignore[misc]
        return self._changed("bitwise_xor", other)

    def fill(self, value: Any) -> None:
        """`x[...] = value`."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Set elements of the array as it is in one row."""
        if not isinstance(indices, Handle):
            indices = functions["asarray"](np.asarray(indices, np.int64).reshape(-1))
        self.change_to(put(Variable(self.recorder, self.value), indices, values))

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Arrays keep their shape."""
        raise ArgumentError(
            "x.resize(...) changes the shape of an array, and what is traced keeps it",
            hint="np.resize(x, shape) is a new array",
        )

    def copy(self, order: str = "C") -> ChangingArray:
        """Return the same elements as an array, and a variable, of its own."""
        same = functions["assign"](Variable(self.recorder, self.value))
        return ChangingArray(self.recorder, same.value)

    def __copy__(self) -> ChangingArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ChangingArray:
        return self.copy()

    @classmethod
    def returned(
        cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: Any
    ) -> Any:
        """What a function has given, as a view where it is one."""
        base = args[0] if args else None
        if isinstance(base, ChangingArray) and function.__name__ in _VIEWS and _is_view(
            function, args, kwargs
        ):  # fmt: skip
            several = isinstance(found, list | tuple)
            for i, item in enumerate(found if several else [found]):
                if isinstance(item, ChangingArray) and item is not base:
                    item._see(base, _again(function, args[1:], kwargs, i if several else None))
                    if function.__name__ == "getitem" and len(args) > 1:
                        item._index = _places(args[1])
        return found

    def _see(self, base: ChangingArray, again: Callable[[Any], Any]) -> None:
        """Be a view of another array."""
        if base._family is None:
            base._family, base._seen = _Family(), 0
        self._family, self._seen, self._source = base._family, base._family.version, (base, again)


def _places(index: Any) -> str:
    """An index of numbers and slices, such that equal ones are known."""
    return repr(index if isinstance(index, tuple) else (index,))


def _again(
    function: Callable[..., Any], rest: tuple[Any, ...], kwargs: dict[str, Any], place: int | None
) -> Callable[[Any], Any]:
    """What makes the view again of a base that has changed."""

    def made(base: Any) -> Any:
        found = functions[function.__name__](base, *rest, **kwargs)
        return found if place is None else found[place]

    return made


def _is_view(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether NumPy would give a view: not of places in index arrays, nor of single elements."""
    if function.__name__ != "getitem":
        return True
    index = args[1] if len(args) > 1 else kwargs.get("index")
    entries = index if isinstance(index, tuple) else (index,)
    if not all(e is None or e is Ellipsis or isinstance(e, int | np.integer | slice)
               for e in entries):  # fmt: skip
        return False
    numbers = sum(isinstance(e, int | np.integer) for e in entries)
    return numbers < args[0].ndim or Ellipsis in entries


def _set(x: Variable, index: Any, value: Any) -> Variable:
    """`x` after `x[index] = value`, where the index may have integer variables."""
    entries = index if isinstance(index, tuple) else (index,)
    first = entries[0] if entries else None
    if isinstance(first, Handle) and first.dtype.kind in "iu" and first.ndim == 0:
        count = x.shape[0]
        place = functions["where"](first < 0, first + count, first)
        here = functions["equal"](functions["arange"](count), place)
        rows = functions["reshape"](here, (count, *(1,) * (x.ndim - 1)))
        if len(entries) == 1:
            part = functions["broadcast_to"](functions["asarray"](value), x.shape[1:])
        else:
            row = functions["take"](x, place, 0)
            part = functions["set_slice"](row, entries[1:], value)
        return _of_dtype(functions["where"](rows, part, x), x)
    set_at = placed if is_computed(index) else functions["set_slice"]
    found: Variable = set_at(x, index, value)
    return found


def _of_dtype(found: Any, x: Variable) -> Variable:
    result: Variable = functions["astype"](found, x.dtype) if found.dtype != x.dtype else found
    return result


# Functions that make arrays which are filled afterwards.
FILLED = frozenset((
    "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones",
    "ones_like", "zeros", "zeros_like",
))  # fmt: skip


# Whether arrays that are made of numbers stay NumPy's, as nothing is changed in place.
are_fixed: ContextVar[bool] = ContextVar("primgraph_arrays_are_fixed", default=False)


# What arrays that are made of numbers become outside of programs; None where they stay NumPy's.
_made_into: ContextVar[Callable[[Any], Any] | None] = ContextVar("primgraph_made", default=None)


@contextmanager
def making(kind: Callable[[Any], Any]) -> Iterator[None]:
    """Let what functions make of numbers, to be filled, be of that kind where there is no program.

    It is still NumPy's in functions that change nothing in place.
    """
    before = _made_into.get()
    try:
        _made_into.set(kind)
        yield
    finally:
        _made_into.set(before)


def with_fixed_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, where arrays that it makes of numbers are NumPy's."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = are_fixed.get()
        try:
            are_fixed.set(True)
            return function(*args, **kwargs)
        finally:
            are_fixed.set(before)

    return call


def filling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the drop-in whose new array may be assigned variables to."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if function.__name__.startswith("empty") and isinstance(found, np.ndarray):
            found = np.zeros_like(found)
        return changing(found)

    return call


def changing(found: Any) -> Any:
    """An array that was just made, as one that may be assigned to where a program is being built.

    Arrays of integers, booleans and others than floats stay NumPy's: they are indices and masks.
    """
    if isinstance(found, ChangingArray):
        return found
    if isinstance(found, Variable):
        return ChangingArray(found.recorder, found.value)
    is_float = isinstance(found, np.ndarray) and found.dtype.kind in "fc"
    if not is_float or are_fixed.get() or handles((found,)):
        return found
    if innermost.get() is None:
        made = _made_into.get()
        return found if made is None else made(found)
    variable: Variable = functions["array"](found)
    return ChangingArray(variable.recorder, variable.value)
