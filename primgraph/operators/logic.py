"""Comparisons, logic, and the choice between arrays, element by element."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL, DType, TensorType
from primgraph.operators.call import public
from primgraph.operators.promotion import (
    SCALARS,
    broadcasted,
    common_shape,
    converted,
    described,
    emit,
    lift,
    promoted,
    result_dtype,
    type_of,
    ufunc_dtypes,
    wrap,
)
from primgraph.operators.variable import ArrayLike, Variable
from primgraph.primitives import elementwise, logic
from primgraph.primitives.constants import filled

_UINT64: DType = np.dtype(np.uint64)


def _comparison(
    name: str, ufunc: np.ufunc, op: Primitive, compare: Callable[[Any, Any], bool], doc: str
) -> Callable[[ArrayLike, ArrayLike], Variable]:
    """Declare a comparison; `compare` is the same comparison of two Python numbers."""

    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        for scalar, other in ((x1, x2), (x2, x1)):
            limit = _limit_passed(scalar, other)
            if limit is not None:
                pair = (scalar, limit) if scalar is x1 else (limit, scalar)
                return _constant(compare(*pair), other)
        first, second, _ = ufunc_dtypes(ufunc, x1, x2)
        if first != second:
            return _compare_signs(op, compare, x1, x2, first.kind == "i")
        return emit(op, *promoted(x1, x2, dtype=first, name=name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    The operands are broadcast; integers of different dtypes are compared exactly. The result
    is boolean. Raises `ShapeError` if the shapes do not broadcast.
    """
    return public(function)


def _limit_passed(scalar: Any, other: Any) -> int | None:
    """The limit of the integer dtype of `other` beyond which the Python integer lies."""
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
    return wrap(filled(value, type_of(like).with_dtype(BOOL)))


def _compare_signs(
    op: Primitive,
    compare: Callable[[Any, Any], bool],
    x1: ArrayLike,
    x2: ArrayLike,
    signed_first: bool,
) -> Variable:
    """Compare int64 with uint64: a negative number is less than all, the others fit uint64."""
    shape = common_shape(op.name, x1, x2)
    first, second = (broadcasted(lift(x), shape) for x in (x1, x2))
    signed = first if signed_first else second
    known = compare(-1, 0) if signed_first else compare(0, -1)
    compared = emit(op, converted(first, _UINT64), converted(second, _UINT64))
    zero = wrap(filled(0, signed.type))
    negative = emit(logic.less, signed, zero)
    return emit(logic.select, negative, _constant(known, compared), compared)


equal = _comparison("equal", np.equal, logic.equal, python.eq, "Whether `x1 == x2`.")
not_equal = _comparison(
    "not_equal", np.not_equal, logic.not_equal, python.ne, "Whether `x1 != x2`; true for NaN."
)
greater = _comparison("greater", np.greater, logic.greater, python.gt, "Whether `x1 > x2`.")
greater_equal = _comparison(
    "greater_equal", np.greater_equal, logic.greater_equal, python.ge, "Whether `x1 >= x2`."
)
less = _comparison("less", np.less, logic.less, python.lt, "Whether `x1 < x2`.")
less_equal = _comparison(
    "less_equal", np.less_equal, logic.less_equal, python.le, "Whether `x1 <= x2`."
)


def truth(x: ArrayLike) -> Variable:
    """Whether elements differ from zero; NaN does."""
    value = lift(x)
    return value if value.dtype == BOOL else not_equal(value, 0)


def _logical(name: str, op: Primitive, doc: str) -> Callable[[ArrayLike, ArrayLike], Variable]:
    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        return emit(op, *promoted(truth(x1), truth(x2), name=name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    The operands are broadcast; numbers count as true unless they are zero.
    """
    return public(function)


logical_and = _logical("logical_and", logic.logical_and, "Whether both are true.")
logical_or = _logical("logical_or", logic.logical_or, "Whether at least one is true.")
logical_xor = _logical("logical_xor", logic.logical_xor, "Whether exactly one is true.")


@public
def logical_not(x: ArrayLike) -> Variable:
    """Whether `x` is false; numbers count as true unless they are zero."""
    return emit(logic.logical_not, truth(x))


def _bitwise(name: str, logical: str, op: Primitive) -> Callable[[ArrayLike, ArrayLike], Variable]:
    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        _require_bools(name, logical, x1, x2)
        return emit(op, *promoted(x1, x2, name=name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`{logical}` of booleans only, as the Python operators have it.

    Raises `DTypeError` for integers, whose bits are out of reach.
    """
    return public(function)


def _require_bools(name: str, logical: str, *operands: ArrayLike) -> None:
    if any(type_of(x).dtype != BOOL for x in operands):
        found = " and ".join(described(x) for x in operands)
        raise DTypeError(
            f"{name} takes booleans, not {found}",
            hint=f"bits of integers are not supported; for truth values use pg.{logical}",
        )


bitwise_and = _bitwise("bitwise_and", "logical_and", logic.logical_and)
bitwise_or = _bitwise("bitwise_or", "logical_or", logic.logical_or)
bitwise_xor = _bitwise("bitwise_xor", "logical_xor", logic.logical_xor)


@public
def invert(x: ArrayLike) -> Variable:
    """`~x` of booleans. Raises `DTypeError` for integers, whose bits are out of reach."""
    _require_bools("invert", "logical_not", x)
    return emit(logic.logical_not, lift(x))


@public
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Variable:
    """`x` where `condition` is true, `y` elsewhere; all three are broadcast.

    `x` and `y` are promoted to one dtype. The element that is not chosen takes no part in the
    derivative. Raises `ShapeError` if the shapes do not broadcast.
    """
    dtype = result_dtype(x, y)
    chosen = truth(condition)
    shape = common_shape("where", chosen, x, y)
    first, second = (
        wrap(filled(v, TensorType(shape, dtype)))
        if type(v) in SCALARS
        else broadcasted(lift(v, dtype), shape)
        for v in (x, y)
    )
    return emit(logic.select, broadcasted(chosen, shape), first, second)


@public
def isnan(x: ArrayLike) -> Variable:
    """Whether elements are not a number; false for integers and booleans."""
    value = lift(x)
    return emit(logic.not_equal, value, value)


@public
def isinf(x: ArrayLike) -> Variable:
    """Whether elements are plus or minus infinity; false for integers and booleans."""
    value = lift(x)
    if not value.type.is_float:
        return _constant(False, value)
    return equal(emit(elementwise.abs_, value), float("inf"))


@public
def isfinite(x: ArrayLike) -> Variable:
    """Whether elements are neither infinite nor NaN; true for integers and booleans."""
    value = lift(x)
    if not value.type.is_float:
        return _constant(True, value)
    return less(emit(elementwise.abs_, value), float("inf"))
