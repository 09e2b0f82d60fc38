"""Elements chosen by a mask that is a variable, as `x[mask]` gives them.

How many elements there are is known only when the program runs, and shapes are static. So all
elements are computed, and those that the mask leaves out from a chosen one in their place: what
is computed of them is not used, and no error, warning or NaN comes from them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, final

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, BoundsError, ShapeError, UnknownSizeError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL, DType, TensorType
from primgraph.operators.call import appliers, body_being_built, called, taken_in
from primgraph.operators.handle import Handle, add_in_place_operators
from primgraph.operators.lazy_loading import functions
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import (
    Variable,
    as_weak,
    handles,
    map_variables,
    use_variable_class,
)


@final
class MaskedElements(Handle):
    """Elements that a mask chooses, `x[mask]`, whose number is not known while a program is built.

    Functions of each element, such as `np.log` and `+`, take it, also beside numbers and elements
    that the same mask chose; the result may be assigned by `y[mask] = ...`. Sums and the like over
    all elements are variables. Anything else raises `ArgumentError`, and its shape
    `UnknownSizeError`.

    >>> def f(x):
    ...     y = np.zeros_like(x)
    ...     y[x > 0] = np.log(x[x > 0])
    ...     return y
    >>> pg.jit(f)(np.array([1.0, -1.0]))
    array([0., 0.])
    """

    __slots__ = ("array", "mask")

    _called = "an array of elements that a mask chose"
    _is_traced = True

    def __init__(self, array: Variable, mask: Variable) -> None:
        # All elements, with a chosen one wherever the mask is false.
        self.array = array
        self.mask = mask

    @property
    def type(self) -> TensorType:
        """Raise `UnknownSizeError`: the type has the number of elements."""
        raise _unknown_number()

    @property
    def dtype(self) -> DType:
        """NumPy dtype of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """Number of axes: one, as NumPy's `x[mask]` has."""
        return 1

    @property
    def size(self) -> Any:
        """Number of elements, a variable that is promoted like a Python number, as NumPy's is."""
        return as_weak(call_named("sum", self.mask))

    def filled_like(self, number: Any) -> MaskedElements:
        """Return as many elements, each of them a number, in the dtype of that."""
        return MaskedElements(call_named("broadcast_to", number, self.mask.shape), self.mask)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign elements by a mask of such elements, or all of them by `x[...] = value`."""
        if isinstance(index, MaskedElements) and index.dtype == BOOL:
            _common_mask("x[mask] = y", (self, index))
            chosen = call_named("logical_and", self.mask, index.array)
        elif index is Ellipsis or (isinstance(index, slice) and index == slice(None)):
            chosen = self.mask
        else:
            raise unknown_place()
        # What is left out is another element from now on, if the first chosen one has changed.
        found = call_named("set_slice", self.array, chosen, value)
        self.array = choose(found, self.mask).array

    def _change_in_place(self, name: str, other: Any) -> Self:
        """Run `x += y` and its like, which all names of these elements see."""
        self[...] = call_named(name, self, other)
        return self

    def copy(self, order: str = "C") -> Self:
        """Return the same elements, which do not change with these."""
        return type(self)(self.array, self.mask)

    def detach(self) -> Self:
        """Return the same numbers as a constant for differentiation; see `pg.stop_gradient`."""
        return type(self)(self.array.detach(), self.mask)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise _unknown_number()

    def __repr__(self) -> str:
        return f"<elements of {self.array.type} that a mask chooses>"


add_in_place_operators(MaskedElements)


def choose(x: Any, mask: Variable) -> MaskedElements:
    """Return `x[mask]`, for a boolean variable of the shape of `x`.

    Raises `BoundsError` for another shape.
    """
    if x.shape != mask.shape:
        raise BoundsError(
            f"a mask {mask.type} does not fit {x.type}",
            hint="a mask that is a variable has the shape of the array",
        )
    other = call_named("stop_gradient", _first_chosen(x, mask))
    return MaskedElements(call_named("where", mask, x, other), mask)


def _first_chosen(x: Any, mask: Variable) -> Any:
    """Return the first element that a mask chooses, or else 1."""
    one = call_named("ones", (), x.dtype)
    size = mask.type.size
    if size == 0:
        return one
    if isinstance(size, Dim):
        # There may be no element at all.
        x, mask = (
            call_named("concatenate", [call_named("ravel", v), call_named("ones", (1,), v.dtype)])
            for v in (x, mask)
        )
    if mask.ndim == 0:
        return call_named("where", mask, x, one)
    first = call_named("argmax", mask)
    return call_named("where", call_named("take", mask, first), call_named("take", x, first), one)


def apply_to_chosen(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Apply a function, of variables, to arguments with elements that a mask chose."""
    body = body_being_built()
    if body is not None:
        args, kwargs = (_taken_in(body, given) for given in (args, dict(kwargs)))
    name = function.__name__ if str(function.__module__).startswith("primgraph.operators.") else ""
    reductions = provider("reductions of masks")
    known = _BY_PLACE.get(name) or reductions.BY_ALL.get(name)
    if known is not None and not isinstance(args[0], list | tuple):
        return known(*args, **kwargs)
    axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
    if name in reductions.OF_STACKS and isinstance(args[0], list | tuple) and axis == 0:
        # The first axis is that of the list.
        mask = _common_mask(name, args[0])
        found = called[function](*_change(args, _array), **_change(dict(kwargs), _array))
        return map_variables(found, lambda v: MaskedElements(v, mask))
    by_element = _BY_ELEMENT.get(name)
    if by_element is not None:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
        tables = {name: v for name, v in bound.items() if name not in by_element}
        if not any(isinstance(v, MaskedElements) for v in handles(tables.values())):
            mask = _common_mask(function.__name__, [bound[n] for n in by_element if n in bound])
            found = called[function](**_change(dict(bound), _array))
            return MaskedElements(found, mask)
    mask = _common_mask(function.__name__, (*args, *kwargs.values()))
    if not _is_by_element(function, mask, args, kwargs):
        raise ArgumentError(
            f"{function.__name__} does not take elements that a mask chooses: how many there are "
            "is not known before the program runs",
            hint="pg.where(mask, x, 0) keeps the shape of x, and pg.extract(mask, x, size=n) "
            "returns n elements",
        )
    found = called[function](*_change(args, _array), **_change(dict(kwargs), _array))
    return map_variables(found, lambda v: MaskedElements(v, mask))


# Functions that look each element up in tables, or whose equations do not tell that they are of
# each element, with the arguments that have these elements.
_BY_ELEMENT = {
    "digitize": ("x",),
    "hypot": ("x1", "x2"),
    "interp": ("x",),
    "searchsorted": ("v",),
    "take": ("indices",),
}


def _change(given: Any, change: Callable[[MaskedElements], Any]) -> Any:
    """Return `given` with something in place of each `MaskedElements`, in lists and dicts too."""
    if isinstance(given, MaskedElements):
        return change(given)
    if isinstance(given, list | tuple):
        return type(given)([_change(item, change) for item in given])
    if isinstance(given, dict):
        return {name: _change(item, change) for name, item in given.items()}
    return given


def _taken_in(body: Builder, given: Any) -> Any:
    """Return `given` with variables and chosen elements of enclosing programs captured."""

    def take(v: MaskedElements) -> MaskedElements:
        return MaskedElements(*taken_in(body, (v.array, v.mask)))

    return taken_in(body, _change(given, take))


def _array(chosen: MaskedElements) -> Variable:
    return chosen.array


def _common_mask(name: str, given: Sequence[Any]) -> Variable:
    """Return the mask of all chosen elements in `given`; other arrays there have one element."""
    found: Sequence[Handle] = handles(given)
    masks = [v.mask for v in found if isinstance(v, MaskedElements)]
    if any(not _is_same(masks[0], mask) for mask in masks[1:]):
        raise ShapeError(
            f"{name} of elements that two masks choose",
            hint="name the mask once: m = x > 0, then x[m] and y[m]",
        )
    for v in _arrays(given):
        if v.size != 1:
            raise ShapeError(
                f"{name} of elements that a mask chooses and of an array of shape {v.shape}",
                hint="choose the elements of both arrays: x[mask] and y[mask]",
            )
    return masks[0]


def _arrays(given: Any) -> Iterator[Any]:
    """Yield the arrays and variables in `given` that no mask chose, in lists too."""
    for v in given:
        if isinstance(v, list | tuple):
            yield from _arrays(v)
        elif isinstance(v, np.ndarray | Handle) and not isinstance(v, MaskedElements):
            yield v


# The number of equations that two masks are compared by.
_COMPARED = 1000


def _is_same(mask: Variable, other: Variable) -> bool:
    """Return whether two masks are the same value, or computed alike, as `x > 0` twice."""
    builder = mask.recorder
    if builder is not other.recorder or not isinstance(builder, Builder):
        return False
    compared: set[tuple[Value, Value]] = set()
    pairs = [(mask.value, other.value)]
    while pairs:
        a, b = pairs.pop()
        if a is b or (a, b) in compared:
            continue
        e, f = builder.definition(a), builder.definition(b)
        if e is None or f is None or len(compared) == _COMPARED:
            return False
        if (e.op, len(e.inputs)) != (f.op, len(f.inputs)):
            return False
        # Zeros differ by their sign.
        if builder.params.own(e.params) is not builder.params.own(f.params):
            return False
        if getattr(e.op, "random", False):
            return False
        if e.outputs.index(a) != f.outputs.index(b):
            return False
        compared.add((a, b))
        pairs += zip(e.inputs, f.inputs, strict=True)
    return True


def _is_by_element(
    function: Callable[..., Any], mask: Variable, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Return whether each element of what a function returns is computed of one of each operand.

    The equations of the function tell.
    """
    builder = Builder(function.__name__, expands=lambda op: True)
    chosen: list[Value] = []

    def adopt(v: Variable) -> Variable:
        return Variable(builder, builder.input(v.type))

    def take(v: MaskedElements) -> Variable:
        found = adopt(v.array)
        chosen.append(found.value)
        return found

    with builder, use_variable_class(Variable):
        given = _change((tuple(args), dict(kwargs)), take)
        args, kwargs = map_variables(given, lambda v: v if v.recorder is builder else adopt(v))
        found = function(*args, **kwargs)
    results: list[Value] = []
    map_variables(found, lambda v: results.append(v.value))
    graph = builder.part(builder.inputs, results)
    return (
        bool(results)
        and all(v.type.shape == mask.shape for v in results)
        and _keeps_places(graph, set(chosen))
    )


def _keeps_places(graph: Graph, chosen: set[Value]) -> bool:
    """Return whether all that depends on values in `chosen` does so element by element."""
    # Values whose elements are all equal.
    equal = {v for v in graph.inputs if v not in chosen}
    for eqn in graph.body:
        if chosen.isdisjoint(eqn.inputs):
            if _has_equal_elements(eqn, equal):
                equal.update(eqn.outputs)
        elif (_is_elementwise(eqn) or eqn.op.stops) and all(
            v in chosen or v in equal for v in eqn.inputs
        ):
            chosen.update(eqn.outputs)
        else:
            return False
    return all(v in chosen or v in equal for v in graph.outputs)


def _has_equal_elements(eqn: Equation, equal: set[Value]) -> bool:
    if eqn.number is not None or all(v.type.size == 1 for v in eqn.outputs):
        return True
    return (_is_elementwise(eqn) or eqn.op.is_view) and equal.issuperset(eqn.inputs)


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise


# Assignments and indices.


def _getitem(x: Any, index: Any) -> Any:
    """Return elements of chosen ones, by a mask of such elements; or of a vector, by numbers."""
    if not isinstance(x, MaskedElements) and index.dtype.kind in "iu" and np.ndim(x) == 1:
        return call_named("take", x, index)
    if not (isinstance(x, MaskedElements) and isinstance(index, MaskedElements)):
        raise unknown_place()
    _common_mask("x[mask]", (x, index))
    return choose(x.array, call_named("logical_and", x.mask, index.array))


def _unknown_number() -> UnknownSizeError:
    return UnknownSizeError(
        "how many elements a mask chooses is not known before the program runs",
        hint="np.sum(mask) is the number as a variable; pg.extract(mask, x, size=n) returns n "
        "elements, and pg.where(mask, x, 0) keeps the shape of x",
    )


def unknown_place() -> UnknownSizeError:
    return UnknownSizeError(
        "an element of those that a mask chooses has no place of its own: how many there are is "
        "not known before the program runs",
        hint="pg.extract(mask, x, size=n) returns n elements",
    )


def _set_slice(x: Any, index: Any, y: Any) -> Any:
    """Return `x` with chosen elements where they were chosen."""
    if isinstance(x, MaskedElements) or not isinstance(y, MaskedElements):
        raise ArgumentError("elements that a mask chooses do not change: assign to the array")
    if not isinstance(index, Variable) or not _is_same(index, y.mask):
        raise ShapeError(
            "elements that a mask chooses can be assigned by that mask only",
            hint="name the mask once: m = x > 0, then y[m] = f(x[m])",
        )
    if not np.can_cast(y.dtype, x.dtype, "same_kind"):
        return functions["set_slice"](x, index, y.array)
    return call_named("where", y.mask, call_named("astype", y.array, x.dtype), x)


# Functions of all chosen elements, or of their places, by name; see also `masked_reductions`.
_BY_PLACE: Mapping[str, Callable[..., Any]] = {"getitem": _getitem, "set_slice": _set_slice}

appliers[MaskedElements] = apply_to_chosen
