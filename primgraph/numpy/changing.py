"""Arrays of a program that may be assigned to, as NumPy's: the handle means another value then.

An array and its views share elements: an assignment to one of them changes all. See `aliasing` on
what counts as a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Self, cast

import numpy as np

from primgraph.base.user_lines import caller
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Recorder, innermost, recording
from primgraph.numpy.aliasing import (
    ARRAYS_WITHOUT_AXES,
    Family,
    Link,
    freeze_arrays,
    is_new_in_order,
    is_same_place,
    view_of,
)
from primgraph.operators.call import body_being_built
from primgraph.operators.handle import Handle, add_in_place_operators, are_numbers_fixed
from primgraph.operators.index.scatter import assign_elements, is_computed
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable, handles, in_manner

# The reason why arrays that a body of a loop or a branch captures are not assigned to in it.
_OF_AROUND = "the body of a loop or a branch cannot assign to an array of the program around it"


class ChangingArray(Variable):
    """A variable that may be assigned to: `y[1:] = x`, `y += 1`. See the module."""

    __slots__ = ("_family", "_is_number", "_seen", "_shown", "is_in_order", "link", "refusal")

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self._family: Family | None = None
        self._seen = 0
        self._shown = value
        # How this is a view of another array; None for an array of its own.
        self.link: Link | None = None
        # The reason why it cannot be assigned to; empty if it can be.
        self.refusal = ""
        # Whether the axes lie in memory in their order, as far as that is known.
        self.is_in_order = True
        super().__init__(recorder, value)
        # Whether NumPy has a number here, for which `s += x` is another one. None for an argument,
        # which is taken as a number while it has no views.
        self._is_number = None if self.ndim == 0 else False

    def captured_by(self, body: Any) -> Variable:
        """Return the array that stands for this one in a body: it cannot be assigned to there."""
        self._require_open()
        found = ChangingArray(body, body.own(self.value))
        found.refusal = _OF_AROUND
        return found

    @property
    def value(self) -> Value:
        """The value that the array is now."""
        family = self._family
        if family is not None and (self._seen != family.version or family.outer is not None):
            self._look_again(family)
        return self._shown

    @value.setter
    def value(self, value: Value) -> None:
        self._shown = value

    def _look_again(self, family: Family) -> None:
        """Show what the array holds after one of its family was assigned to."""
        family.require_known()
        chain = [self]
        while chain[-1].link is not None and chain[-1]._seen != family.version:
            chain.append(chain[-1].link.base)
        for array in reversed(chain):
            if array.link is not None and array._seen != family.version:
                base = array.link.base
                # What it shows is of the program of the base, also where a body is built.
                with recording(base.recorder):
                    shown = array.link.again(Variable(base.recorder, base._shown))
                array._shown = shown.value
            array._seen = family.version

    def change_to(self, found: Variable) -> None:
        """Mean another value from now on, of the same shape, in the dtype that it has.

        What this is a view of, and all other views of that, change with it. Raises `ShapeError`
        and `DTypeError` for a value that it cannot hold, `ArgumentError` for a view that NumPy
        makes read-only, or that shares elements in a way that no assignment goes through.
        """
        refusal = self.refusal
        if body_being_built() not in (None, self.recorder):
            refusal = _OF_AROUND
        if refusal:
            raise ArgumentError(
                refusal, hint="y = x.copy() has elements of its own, which may be assigned to"
            )
        if found.shape != self.shape:
            raise ShapeError(f"{self.type} cannot be changed in place into {found.type}")
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise DTypeError(f"{self.type} cannot hold {found.type}")
        new = _cast_like(found, self)
        family = self._family
        if family is not None:
            # What the arrays held before has to be known, also of those that this is a view of.
            self._look_again(family)
            family.change(caller())
            self._write_back(family, new)
        self._shown = new.value

    def _write_back(self, family: Family, new: Variable) -> None:
        """Let this array hold `new`, and what it is a view of with it."""
        array = self
        while True:
            array._shown, array._seen = new.value, family.version
            if array.link is None:
                return
            base = array.link.base
            before = Variable(base.recorder, base._shown)
            if array.link.name == "getitem":
                new = _assign_element(before, array.link.index, new)
            else:
                new = array.link.write(before, new)
            array = base

    def __setitem__(self, index: Any, value: Any) -> None:
        link = value.link if isinstance(value, ChangingArray) else None
        is_part = link is not None and link.base is self and link.name == "getitem"
        if is_part and link is not None and is_same_place(freeze_arrays(index), link.index):
            # The elements are there already, as Python runs `y[1:-1] += x`.
            return
        self.change_to(_assign_element(Variable(self.recorder, self.value), index, value))

    def _change_in_place(self, name: str, other: Any) -> Self:
        found = functions[name](Variable(self.recorder, self.value), other)
        if self._is_number or (self._is_number is None and self._family is None):
            number = in_manner(type(self), found)
            number._is_number = self._is_number
            return cast("Self", number)
        self.change_to(found)
        return self

    def fill(self, value: Any) -> None:
        """`x[...] = value`; a number, which NumPy's `x.copy()` is too, stays as it is."""
        if not self._is_number:
            self[...] = value

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Arrays keep their shape."""
        raise ArgumentError(
            "x.resize(...) changes the shape of an array, and what is traced keeps it",
            hint="np.resize(x, shape) is a new array",
        )

    def copy(self, order: str = "C") -> ChangingArray:
        """Return the same elements as an array, and a variable, of its own."""
        same = functions["assign"](Variable(self.recorder, self.value))
        found = ChangingArray(self.recorder, same.value)
        found._is_number = self._is_number
        found.is_in_order = order == "C" or self.ndim < 2 or (order == "K" and self.is_in_order)
        return found

    def view(self) -> Any:
        """Return an array that shares all elements with this one."""
        return self[...]

    def conj(self) -> Any:
        """Return the conjugates of complex numbers; an array of real ones is returned itself."""
        return functions["conj"](self) if self.type.is_complex else self

    def conjugate(self) -> Any:
        """Return `x.conj()`."""
        return self.conj()

    def __copy__(self) -> ChangingArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ChangingArray:
        return self.copy()

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return the arguments with the order of the elements in memory, where they ask for it."""
        array = args[0] if args else None
        if function.__name__ not in ("flatten", "ravel", "reshape"):
            return None
        order = args[-1] if isinstance(args[-1], str) else ""
        if not isinstance(array, ChangingArray) or order not in ("A", "K"):
            return None
        return (*args[:-1], _order_of(array, order))

    @classmethod
    def returned(
        cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: Any
    ) -> Any:
        """Return the result of a function, as a view if NumPy would return one."""
        several = isinstance(found, list | tuple)
        given = [v for v in handles((*args, *kwargs.values())) if isinstance(v, ChangingArray)]
        for i, item in enumerate(found if several else [found]):
            if not isinstance(item, ChangingArray) or any(item is v for v in given):
                continue
            link = view_of(function, args, kwargs, i if several else None, ChangingArray)
            if link is None:
                name = function.__name__
                arrays = [v for v in (*args, *kwargs.values()) if isinstance(v, np.ndarray)]
                item.is_in_order = is_new_in_order(name, given, item.ndim) and (
                    item.ndim < 2 or all(v.ndim < 2 or v.flags.c_contiguous for v in arrays)
                )
                item._is_number = item.ndim == 0 and name not in ARRAYS_WITHOUT_AXES
            else:
                item._is_number = False
                item._see(link)
        return found

    def _see(self, link: Link) -> None:
        """Be a view of another array, or may be one."""
        base = link.base
        self.is_in_order = self.ndim < 2 or (link.keeps_order and base.is_in_order)
        is_plain = base.link is None and base.is_in_order and link.keeps_order
        is_copied = base._is_copied_by(link) if link.may_copy and not is_plain else False
        if is_copied:
            self.is_in_order = True
            return
        if base._family is None:
            base._family, base._seen = Family(), 0
        family = base._family
        if is_copied is None:
            self._may_see(family)
            return
        self.refusal = base.refusal or link.refusal
        self._family, self._seen, self.link = family, family.version, link

    def _may_see(self, family: Family) -> None:
        """Share elements with the arrays of a family, or not: that is not known."""
        self._family = Family()
        self._family.outer = family, family.version
        self.is_in_order = False

    def _is_copied_by(self, link: Link) -> bool | None:
        """Return whether NumPy copies for a view of this array; None if that is not known."""
        layout = self._layout()
        return None if layout is None else link.copies(layout)

    def _layout(self) -> np.ndarray[Any, Any] | None:
        """Return an array that lies in memory as NumPy's would; None if that is not known."""
        chain = [self]
        while chain[-1].link is not None:
            chain.append(chain[-1].link.base)
        root = chain.pop()
        if not root.is_in_order or any(isinstance(n, Dim) for n in root.shape):
            return None
        found: np.ndarray[Any, Any] | None = np.empty(root.shape, np.int8)
        for array in reversed(chain):
            if found is not None and array.link is not None:
                found = array.link.part(found)
        return found

    def _laid_out(self, order: str) -> ChangingArray:
        """Return this array if its elements lie in memory in that order, else a copy of it."""
        if order not in ("C", "F") or self.ndim == 0:
            return self
        layout = self._layout()
        if layout is not None:
            flags = layout.flags
            is_so = flags.c_contiguous if order == "C" else flags.f_contiguous
            return self if is_so else self.copy(order)
        found = self.copy(order)
        if self._family is None:
            self._family, self._seen = Family(), 0
        found._may_see(self._family)
        return found


add_in_place_operators(ChangingArray)


def _order_of(array: ChangingArray, order: str) -> str:
    """Return what "A" and "K" mean for an array."""
    layout = array._layout()
    if layout is None:
        raise ArgumentError(
            f"order={order!r} is the order of the elements in memory, which is not known for "
            f"this {array.type}",
            hint="give order='C' or 'F'",
        )
    if order == "A":
        return "F" if layout.flags.fnc else "C"
    pairs = zip(layout.strides, layout.shape, strict=True)
    strides = [abs(step) for step, n in pairs if n > 1]
    if strides == sorted(strides, reverse=True):
        return "C"
    if strides == sorted(strides):
        return "F"
    raise ArgumentError(
        "order='K' is the order of the elements in memory, which is neither that of 'C' "
        f"nor that of 'F' in this {array.type}",
        hint="give order='C' or 'F'",
    )


def _assign_element(x: Variable, index: Any, value: Any) -> Variable:
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
        return _cast_like(functions["where"](rows, part, x), x)
    set_at = assign_elements if is_computed(index) else functions["set_slice"]
    found: Variable = set_at(x, index, value)
    return found


def _cast_like(found: Any, x: Variable) -> Variable:
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
def use_array_kind(kind: Callable[[Any], Any]) -> Iterator[None]:
    """Let what functions make of numbers, to be filled, be of that kind where there is no program.

    It is still NumPy's in functions that change nothing in place.
    """
    before, were_fixed = _made_into.get(), are_numbers_fixed.get()
    try:
        _made_into.set(kind)
        are_numbers_fixed.set(True)
        yield
    finally:
        _made_into.set(before)
        are_numbers_fixed.set(were_fixed)


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


def return_changing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the drop-in whose new array may be assigned variables to."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if function.__name__.startswith("empty") and isinstance(found, np.ndarray):
            found = np.zeros_like(found)
        made = as_changing(found)
        if isinstance(made, ChangingArray):
            given = (*args, *kwargs.values())
            is_turned = any(isinstance(v, str) and v in ("A", "F") for v in given)
            known = all(getattr(v, "is_in_order", True) for v in handles(given))
            made.is_in_order = made.ndim < 2 or (known and not is_turned)
        return made

    return call


def as_changing(found: Any) -> Any:
    """An array that was just made, as one that may be assigned to where a program is being built.

    Arrays of integers, booleans and others than floats stay NumPy's: they are indices and masks.
    """
    if isinstance(found, ChangingArray):
        return found if found.link is None else found.copy()
    if isinstance(found, Variable):
        return _array(found)
    if getattr(found, "_alias", None) is not None:
        return found.clone()
    is_float = isinstance(found, np.ndarray) and found.dtype.kind in "fc"
    if is_float and found.ndim == 0 and innermost.get() is None:
        # Tensors without axes are numbers until NumPy's array is written to.
        return found
    if not is_float or are_fixed.get() or handles((found,)):
        return found
    return writable(found)


def axes_in_memory(array: np.ndarray[Any, Any]) -> list[int]:
    """Return the axes of an array from that with the longest steps in memory to the shortest."""
    return sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))


def writable(array: Any) -> Any:
    """Return a NumPy array as one that may be assigned to: of the program, or a tensor.

    Its axes lie in memory as those of the array do, which decides what is a view of what.
    """
    if array.ndim > 1 and not array.flags.c_contiguous:
        axes = axes_in_memory(array)
        found = writable(np.ascontiguousarray(array.transpose(axes)))
        return found.transpose(np.argsort(axes).tolist())
    if innermost.get() is None:
        made = _made_into.get()
        return array if made is None else made(array)
    return _array(functions["array"](array))


def _array(variable: Variable) -> ChangingArray:
    found = ChangingArray(variable.recorder, variable.value)
    found._is_number = False
    return found
