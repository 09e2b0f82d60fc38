"""Elementwise comparisons, logic, and selection between arrays."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, UnsupportedDTypeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL, DType, TensorType
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    NUMBERS,
    SCALARS,
    broadcast_to_shape,
    common_shape,
    convert_dtype,
    lift,
    list_operands,
    promote_operands,
    result_dtype,
    type_of,
    ufunc_dtypes,
    wrap,
)
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import bits, elementwise, logic, parts
from primgraph.primitives.constants import filled_constant

_UINT64: DType = np.dtype(np.uint64)


def _comparison(
    name: str,
    ufunc: np.ufunc,
    op: Primitive[Value],
    compare: Callable[[Any, Any], bool],
    doc: str,
    example: str,
) -> Callable[[ArrayLike, ArrayLike], Variable]:
    """Declare a comparison; `compare` is the same comparison of two Python numbers."""

    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        if type(x1) in NUMBERS and type(x2) in NUMBERS:
            return lift(np.array(compare(x1, x2)))
        for scalar, other in ((x1, x2), (x2, x1)):
            limit = _limit_passed(scalar, other)
            if limit is not None:
                pair = (scalar, limit) if scalar is x1 else (limit, scalar)
                return _constant(compare(*pair), other)
        first, second, _ = ufunc_dtypes(ufunc, x1, x2)
        if first != second:
            return _compare_signs(op, compare, x1, x2, first.kind == "i")
        alike = promote_operands(x1, x2, dtype=first, name=name)
        ordered = first.kind == "c" and name not in ("equal", "not_equal")
        return _compare_parts(op, *alike) if ordered else emit(op, *alike)

    function.__name__ = function.__qualname__ = name
    arguments, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    The operands are broadcast; integers of different dtypes are compared exactly, and complex
    numbers by their real parts, or imaginary ones if those are equal. The result is boolean.
    Raises `ShapeError` if the shapes do not broadcast.

    >>> pg.{name}({arguments})
    {result}
    """
    return public(decided_by_types(function))


def _limit_passed(scalar: Any, other: Any) -> int | None:
    """Return the limit of the integer dtype of `other` that the Python integer exceeds, or None."""
    if type(scalar) is not int or type(other) is int:
        return None
    dtype = type_of(other).dtype
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    if scalar > limits.max:
        return int(limits.max)
    return int(limits.min) if scalar < limits.min else None


def _constant(value: bool, like: ArrayLike) -> Variable:
    return wrap(filled_constant(value, type_of(like).with_dtype(BOOL)))


def _compare_signs(
    op: Primitive[Value],
    compare: Callable[[Any, Any], bool],
    x1: ArrayLike,
    x2: ArrayLike,
    signed_first: bool,
) -> Variable:
    """Compare int64 with uint64: a negative number is less than all, others are converted to
    uint64."""
    shape = common_shape(op.name, x1, x2)
    first, second = (broadcast_to_shape(lift(x), shape) for x in (x1, x2))
    signed = first if signed_first else second
    known = compare(-1, 0) if signed_first else compare(0, -1)
    compared = emit(op, convert_dtype(first, _UINT64), convert_dtype(second, _UINT64))
    zero = wrap(filled_constant(0, signed.type))
    negative = emit(logic.less, signed, zero)
    return emit(logic.select, negative, _constant(known, compared), compared)


def _compare_parts(op: Primitive[Value], x1: Variable, x2: Variable) -> Variable:
    """Compare complex numbers by their real parts, or their imaginary parts if those are equal.

    A number with a NaN is neither less nor greater than any.
    """
    real, imaginary = ([emit(part, x) for x in (x1, x2)] for part in (parts.real, parts.imag))
    strict = {logic.less_equal: logic.less, logic.greater_equal: logic.greater}.get(op, op)
    known = emit(logic.logical_and, *[emit(logic.equal, y, y) for y in imaginary])
    apart = emit(logic.logical_and, emit(strict, *real), known)
    tied = emit(logic.logical_and, emit(logic.equal, *real), emit(op, *imaginary))
    return emit(logic.logical_or, apart, tied)


equal = _comparison(
    "equal", np.equal, logic.equal, python.eq, "Return whether `x1 == x2`.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([False,  True, False], dtype=bool)",
)  # fmt: skip
not_equal = _comparison(
    "not_equal",
    np.not_equal,
    logic.not_equal,
    python.ne,
    "Return whether `x1 != x2`; true for NaN.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([ True, False,  True], dtype=bool)",
)
greater = _comparison(
    "greater", np.greater, logic.greater, python.gt, "Return whether `x1 > x2`.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([False, False,  True], dtype=bool)",
)  # fmt: skip
greater_equal = _comparison(
    "greater_equal",
    np.greater_equal,
    logic.greater_equal,
    python.ge,
    "Return whether `x1 >= x2`.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([False,  True,  True], dtype=bool)",
)
less = _comparison(
    "less", np.less, logic.less, python.lt, "Return whether `x1 < x2`.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([ True, False, False], dtype=bool)",
)  # fmt: skip
less_equal = _comparison(
    "less_equal",
    np.less_equal,
    logic.less_equal,
    python.le,
    "Return whether `x1 <= x2`.",
    "[1.0, 2.0, 3.0], 2.0 -> tensor([ True,  True, False], dtype=bool)",
)


def truth(x: ArrayLike) -> Variable:
    """Return whether elements are nonzero; NaN is."""
    value = lift(x)
    return value if value.dtype == BOOL else not_equal(value, 0)


def _logical(
    name: str, op: Primitive[Value], doc: str, example: str
) -> Callable[[ArrayLike, ArrayLike], Variable]:
    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        return emit(op, *promote_operands(truth(x1), truth(x2), name=name))

    function.__name__ = function.__qualname__ = name
    arguments, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    The operands are broadcast; numbers count as true unless they are zero.

    >>> pg.{name}({arguments})
    {result}
    """
    return public(decided_by_types(function))


logical_and = _logical(
    "logical_and", logic.logical_and, "Return whether both are true.",
    "[True, False], [True, True] -> tensor([ True, False], dtype=bool)",
)  # fmt: skip
logical_or = _logical(
    "logical_or", logic.logical_or, "Return whether at least one is true.",
    "[True, False], [True, True] -> tensor([ True,  True], dtype=bool)",
)  # fmt: skip
logical_xor = _logical(
    "logical_xor", logic.logical_xor, "Return whether exactly one is true.",
    "[True, False], [True, True] -> tensor([False,  True], dtype=bool)",
)  # fmt: skip


@public
@decided_by_types
def logical_not(x: ArrayLike) -> Variable:
    """Return whether `x` is false; numbers count as true unless they are zero.

    >>> pg.logical_not([True, False])
    tensor([False,  True], dtype=bool)
    """
    return emit(logic.logical_not, truth(x))


def _bitwise(
    name: str,
    ufunc: np.ufunc,
    op: Primitive[Value],
    logical: Primitive[Value] | None,
    doc: str,
    example: str,
) -> Callable[[ArrayLike, ArrayLike], Variable]:
    """Declare a bitwise function of integers; `logical` is its primitive on booleans."""

    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        dtype = _dtype_of_bits(name, ufunc, x1, x2)
        applied = logical if dtype == BOOL and logical is not None else op
        return emit(applied, *promote_operands(x1, x2, dtype=dtype, name=name))

    function.__name__ = function.__qualname__ = name
    arguments, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    The operands are broadcast, and promoted as `np.{name}` promotes them. No derivative goes
    through. Raises `DTypeError` for floats.

    >>> pg.{name}({arguments})
    {result}
    """
    return public(decided_by_types(function))


def _dtype_of_bits(name: str, ufunc: np.ufunc, *operands: ArrayLike) -> DType:
    """Return the dtype of the result of `ufunc`, which has no loop for floats."""
    try:
        return ufunc_dtypes(ufunc, *operands)[-1]
    except DTypeError:
        raise UnsupportedDTypeError(
            f"{name} takes integers and booleans, not {list_operands(operands)}",
            hint="for truth values use pg.logical_and and its like; integers come by pg.astype",
        ) from None


bitwise_and = _bitwise(
    "bitwise_and", np.bitwise_and, bits.bitwise_and, logic.logical_and,
    "Return the bits that both have; of booleans, whether both are true.",
    "12, 10 -> tensor(8, dtype=int64)",
)  # fmt: skip
bitwise_or = _bitwise(
    "bitwise_or", np.bitwise_or, bits.bitwise_or, logic.logical_or,
    "Return the bits that at least one has; of booleans, whether one is true.",
    "12, 10 -> tensor(14, dtype=int64)",
)  # fmt: skip
bitwise_xor = _bitwise(
    "bitwise_xor", np.bitwise_xor, bits.bitwise_xor, logic.logical_xor,
    "Return the bits that exactly one has; of booleans, whether exactly one is true.",
    "12, 10 -> tensor(6, dtype=int64)",
)  # fmt: skip
left_shift = _bitwise(
    "left_shift", np.left_shift, bits.left_shift, None,
    "Compute `x1 << x2`: the bits of `x1` moved up by `x2` places, zeros moved in.",
    "1, 3 -> tensor(8, dtype=int64)",
)  # fmt: skip
right_shift = _bitwise(
    "right_shift", np.right_shift, bits.right_shift, None,
    "Compute `x1 >> x2`: the bits of `x1` moved down by `x2` places, those of its sign moved in.",
    "8, 3 -> tensor(1, dtype=int64)",
)  # fmt: skip


@public
@decided_by_types
def invert(x: ArrayLike) -> Variable:
    """Compute `~x`: the other bits of integers, the contrary of booleans.

    It has no derivative. Raises `DTypeError` for floats.

    >>> pg.invert([0, 1])
    tensor([-1, -2], dtype=int64)
    """
    dtype = _dtype_of_bits("invert", np.invert, x)
    return emit(logic.logical_not if dtype == BOOL else bits.bitwise_not, lift(x, dtype))


@public
@decided_by_types
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Variable:
    """Select `x` where `condition` is true, else `y`; all three are broadcast.

    `x` and `y` are promoted to one dtype. Elements that are not selected take no part in the
    derivative. Raises `ShapeError` if the shapes do not broadcast.

    >>> pg.where([True, False], [1.0, 2.0], 0.0)
    tensor([1., 0.])
    """
    dtype = result_dtype(x, y)
    chosen = truth(condition)
    shape = common_shape("where", chosen, x, y)
    first, second = (
        wrap(filled_constant(v, TensorType(shape, dtype)))
        if type(v) in SCALARS
        else broadcast_to_shape(lift(v, dtype), shape)
        for v in (x, y)
    )
    return emit(logic.select, broadcast_to_shape(chosen, shape), first, second)


def propagate_nan(value: Variable, x: ArrayLike) -> Variable:
    """Return `value`, which is NaN where `x` is, with NaN derivatives there, too."""
    if not type_of(x).is_float:
        return value
    return emit(logic.unless_nan, value, broadcast_to_shape(lift(x, value.dtype), value.shape))


@public
@decided_by_types
def isnan(x: ArrayLike) -> Variable:
    """Return whether elements are not a number; false for integers and booleans.

    >>> pg.isnan([1.0, np.inf, np.nan])
    tensor([False, False,  True], dtype=bool)
    """
    value = lift(x)
    return emit(logic.not_equal, value, value)


@public
@decided_by_types
def isinf(x: ArrayLike) -> Variable:
    """Return whether elements are plus or minus infinity; false for integers and booleans.

    >>> pg.isinf([1.0, np.inf, np.nan])
    tensor([False,  True, False], dtype=bool)
    """
    value = lift(x)
    if value.type.is_complex:
        return logical_or(*[isinf(emit(part, value)) for part in (parts.real, parts.imag)])
    if not value.type.is_float:
        return _constant(False, value)
    return equal(emit(elementwise.abs_, value), float("inf"))


@public
@decided_by_types
def isfinite(x: ArrayLike) -> Variable:
    """Return whether elements are neither infinite nor NaN; true for integers and booleans.

    >>> pg.isfinite([1.0, np.inf, np.nan])
    tensor([ True, False, False], dtype=bool)
    """
    value = lift(x)
    if value.type.is_complex:
        return logical_and(*[isfinite(emit(part, value)) for part in (parts.real, parts.imag)])
    if not value.type.is_float:
        return _constant(True, value)
    return less(emit(elementwise.abs_, value), float("inf"))
