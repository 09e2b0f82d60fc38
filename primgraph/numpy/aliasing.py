"""Arrays of a traced function that share elements, as views and their bases do in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError
from primgraph.ir.dims import Dim
from primgraph.operators.call import called
from primgraph.operators.handle import Handle
from primgraph.operators.index.dynamic_slices import has_variable_bounds
from primgraph.operators.variable import Variable, handles
from primgraph.operators.view_graphs import Arguments, ViewGraph, write_through

# Functions that return views of their first argument where NumPy's do.
VIEWS = frozenset((
    "array_split", "astype", "atleast_1d", "atleast_2d", "atleast_3d",
    "broadcast_arrays", "broadcast_to", "diag", "diagonal", "dsplit", "einsum", "expand_dims",
    "flip", "fliplr", "flipud", "getitem", "hsplit", "imag", "matrix_transpose", "meshgrid",
    "moveaxis", "ravel", "real", "reshape", "rollaxis", "rot90", "sliding_window_view", "split",
    "squeeze", "swapaxes", "transpose", "unstack", "vsplit",
))  # fmt: skip
# Those whose result number i is a view of argument number i.
_OF_EACH = frozenset(("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"))
# Those that copy where the elements do not lie in memory in the order of the result.
_MAY_COPY = frozenset(("ravel", "reshape"))
# Those whose results NumPy marks as read-only.
_READ_ONLY = frozenset(("broadcast_to", "diag", "diagonal", "sliding_window_view"))
# Those that keep the axes of the memory of their argument in their order.
_IN_ORDER = VIEWS - {
    "diag", "diagonal", "einsum", "matrix_transpose", "moveaxis", "rollaxis", "rot90", "swapaxes",
    "transpose",
}  # fmt: skip
# Functions, beside NumPy's ufuncs, whose results lie in C order if all arguments do.
_FRESH_IN_ORDER = frozenset((
    "abs", "array", "asarray", "assign", "astype", "broadcast_to", "clip", "concatenate", "cumprod",
    "cumsum", "diff", "divide", "dot", "eye", "flatten", "full_like", "max", "mean", "min",
    "nan_to_num", "ones_like", "outer", "pad", "repeat", "reshape", "ravel", "round", "set_slice",
    "sort", "stack", "std", "sum", "tile", "tril", "triu", "var", "vstack", "where", "zeros_like",
))  # fmt: skip
# Those that return arrays without axes, where others return NumPy's numbers.
ARRAYS_WITHOUT_AXES = (VIEWS - {"einsum", "getitem"}) | {
    "array", "asarray", "assign", "full_like", "ones_like", "select", "where", "zeros_like",
}  # fmt: skip


@final
class Family:
    """An array, its views, and the number of times that one of them was assigned to.

    `changed` is the line of the last assignment. `outer` is an array that this family may share
    elements with, and the version of its family when the two were last the same: whether NumPy
    copies there depends on a memory layout that is not known. `broken` is the line of an
    assignment that may have changed this family.
    """

    __slots__ = ("broken", "changed", "outer", "version")

    def __init__(self) -> None:
        self.version = 0
        self.changed: Any = None
        self.broken: Any = None
        self.outer: tuple[Family, int] | None = None

    def change(self, place: Any) -> None:
        """Note an assignment to one of the arrays."""
        self.version += 1
        self.changed = place
        outer, self.outer = self.outer, None
        while outer is not None:
            family, _ = outer
            family.broken = place
            family.version += 1
            outer, family.outer = family.outer, None

    def require_known(self) -> None:
        """Raise `ArgumentError` where the elements depend on whether NumPy copied."""
        place, family = self.broken, self
        while place is None and family.outer is not None:
            family, seen = family.outer
            if family.version != seen:
                place = family.broken or family.changed
        if place is not None:
            raise ArgumentError(
                "an array is used after an array was assigned to that may share its elements: "
                "whether NumPy copied them depends on a memory layout that is not known here",
                origin=[f"assigned to at {place}   {place.text}".rstrip()],
                hint="y.reshape(shape).copy() and y.ravel().copy() share no elements",
            )


@final
@dataclass(frozen=True)
class Link:
    """A view of `base`: result `number` of `function(*args, **options)`.

    The base is `args[hole]` or `options[hole]`, where these have None.
    """

    base: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    hole: int | str
    number: int | None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def _fill_hole(self, base: Any, adopt: Callable[[Any], Any] = lambda v: v) -> Arguments:
        args = [_map_variables(a, adopt) for a in self.args]
        options = {n: _map_variables(a, adopt) for n, a in self.options.items()}
        if isinstance(self.hole, int):
            args[self.hole] = base
        else:
            options[self.hole] = base
        return args, options

    def again(self, base: Any) -> Any:
        """Return the view of a base that has changed."""
        args, options = self._fill_hole(base)
        found = called[self.function](*args, **options)
        return found if self.number is None else found[self.number]

    @property
    def index(self) -> Any:
        """The index of `base[index]`; None for other functions."""
        if self.name != "getitem":
            return None
        return self.args[1] if len(self.args) > 1 else self.options["index"]

    @cached_property
    def graph(self) -> ViewGraph | None:
        """The view as a graph; None if it is not made of equations that show elements."""
        function = called[self.function]
        return ViewGraph.trace_view(function, self._fill_hole, self.base.type, self.number or 0)

    def part(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Return the same view of an array of NumPy's; None if that is not known."""
        if self.name != "getitem":
            return None if self.graph is None else self.graph.part(array)
        # Which element an integer chooses makes no difference to strides.
        entries = tuple([0 if isinstance(e, Handle) else e for e in _entries_of(self.index)])
        if any(map(has_variable_bounds, entries)):
            return None
        found: np.ndarray[Any, Any] = array[entries]
        return found

    def copies(self, layout: np.ndarray[Any, Any]) -> bool | None:
        """Return whether NumPy copies the elements of an array; None if that is not known."""
        if self.name == "ravel":
            is_turned = "F" in (*self.args[1:], *self.options.values())
            part: np.ndarray[Any, Any] | None = np.ravel(layout, "F" if is_turned else "C")
        else:
            part = self.part(layout)
        return None if part is None else part.size > 0 and not np.may_share_memory(part, layout)

    @property
    def may_copy(self) -> bool:
        """Whether NumPy may return a copy, which depends on the memory layout of the base."""
        return self.name in _MAY_COPY

    @property
    def keeps_order(self) -> bool:
        """Whether the axes of the view lie in memory in their order if those of the base do."""
        orders = [v for v in (*self.args, *self.options.values()) if isinstance(v, str)]
        return self.name in _IN_ORDER and all(order == "C" for order in orders)

    @property
    def read_only(self) -> str:
        """The reason why NumPy lets nobody write to the view; empty if it does."""
        if self.name in _READ_ONLY or (self.name == "imag" and not self.base.type.is_complex):
            return (
                f"assignment destination is read-only, as NumPy's {self.name.strip('_')} returns it"
            )
        return ""

    @property
    def refusal(self) -> str:
        """The reason why the view cannot be written to; empty if it can be."""
        if self.read_only:
            return self.read_only
        if self.name != "getitem" and self.graph is None:
            return f"an assignment to what {self.name} returns may not reach the array it shows"
        return ""

    def write(self, base: Variable, new: Variable) -> Variable:
        """Return the base after `new` was written to the view, other than by an index."""
        found: Variable = write_through(self.graph, base, new)
        return found


def view_of(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    number: int | None,
    arrays: type[Handle],
) -> Link | None:
    """Return how result `number` of a call is a view of an argument; None if it is none."""
    name = function.__name__
    if name not in VIEWS:
        return None
    hole = _hole(name, args, options, number, arrays)
    base = None if hole is None else args[hole] if isinstance(hole, int) else options[hole]
    if hole is None or not isinstance(base, arrays):
        return None
    others = [None if i == hole else freeze_arrays(a) for i, a in enumerate(args)]
    named = {n: None if n == hole else freeze_arrays(a) for n, a in options.items()}
    link = Link(base, function, tuple(others), named, hole, number)
    return link if _gives_view(link) else None


def _hole(
    name: str,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    number: int | None,
    arrays: type[Handle],
) -> int | str | None:
    """Return the place of the argument of which a result is a view."""
    if name == "einsum":
        # Only a single operand can have a view: after its labels, or before them.
        place = int(bool(args) and isinstance(args[0], str))
        is_alone = place < len(args) <= 3 - place and isinstance(args[place], Handle)
        return place if is_alone else None
    place = (number or 0) if name in _OF_EACH else 0
    if args:
        return place if place < len(args) else None
    return next((n for n, a in options.items() if isinstance(a, arrays)), None)


def _gives_view(link: Link) -> bool:
    """Whether NumPy gives a view for these arguments, as far as no memory layout matters."""
    name, base = link.name, link.base
    if name == "getitem":
        return is_basic(link.index, base.ndim)
    if name == "diag":
        return bool(base.ndim == 2)
    if name == "meshgrid":
        return link.options.get("copy") is False
    if name == "astype":
        dtype = link.args[1] if len(link.args) > 1 else link.options.get("dtype")
        return link.options.get("copy") is False and np.dtype(dtype) == base.dtype
    if name == "einsum":
        args = list(link.args)
        if handles(args):
            return False
        args[args.index(None)] = unset = np.empty((2,) * base.ndim, np.int8)
        return bool(np.may_share_memory(np.einsum(*args), unset))
    return True


class OrderedArray(Protocol):
    """An array of which it is known whether it lies in memory in C order."""

    @property
    def is_in_order(self) -> bool: ...


def is_new_in_order(name: str, operands: Sequence[OrderedArray], ndim: int) -> bool:
    """Whether a new array that a function returns lies in memory in C order, if that is known.

    NumPy's elementwise functions keep the order of their operands.
    """
    if ndim < 2:
        return True
    known = name in _FRESH_IN_ORDER or isinstance(getattr(np, name, None), np.ufunc)
    return known and all(array.is_in_order for array in operands)


def is_same_place(one: Any, other: Any) -> bool:
    """Whether two basic indices are equal."""
    return repr(_entries_of(one)) == repr(_entries_of(other))


def _entries_of(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def is_basic(index: Any, ndim: int) -> bool:
    """Whether NumPy gives a view: not of places in index arrays, nor of single elements.

    A variable without axes counts as an integer, as `np.argmax` returns one.
    """
    entries = _entries_of(index)
    numbers = 0
    for entry in entries:
        if entry is None or entry is Ellipsis or isinstance(entry, slice):
            continue
        if isinstance(entry, bool | np.bool_) or not _is_number(entry):
            return False
        numbers += 1
    return numbers < ndim or any(entry is None or entry is Ellipsis for entry in entries)


def _is_number(entry: Any) -> bool:
    if isinstance(entry, Handle):
        return entry.ndim == 0 and entry.dtype.kind in "iu"
    return isinstance(entry, int | np.integer | Dim)


def freeze_arrays(given: Any) -> Any:
    """Return an argument in which arrays that may be assigned to have the values of now."""
    return _map_variables(given, lambda v: Variable(v.recorder, v.value))


def _map_variables(given: Any, change: Callable[[Any], Any]) -> Any:
    """Return `given` with other variables, also in tuples, lists and slices."""
    if isinstance(given, Variable):
        return change(given)
    if type(given) in (list, tuple):
        return type(given)([_map_variables(item, change) for item in given])
    if isinstance(given, slice):
        return slice(*[_map_variables(n, change) for n in (given.start, given.stop, given.step)])
    return given
