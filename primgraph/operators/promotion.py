"""Conversion of arguments for strict primitives: lifting, dtype promotion, broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from primgraph.base.user_lines import name_of
from primgraph.defaults import get_default_dtype
from primgraph.errors import (
    ArgumentError,
    DTypeError,
    PrimgraphError,
    ShapeError,
    UnsupportedDTypeError,
)
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.primitive import active_recorder
from primgraph.ir.types import (
    BOOL,
    FLOAT64,
    INT64,
    NAME_OF_DTYPE,
    DType,
    Shape,
    TensorType,
    as_axes,
    as_axis,
    as_dtype,
    broadcast_shapes,
    complex_dtype,
    integer,
    scalar_of,
)
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.variable import Variable, emit, handles, is_weak, weak_type
from primgraph.primitives.constants import constant_op, filled_constant, full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.shapes import broadcast, concat, reshape
from primgraph.sparsity.pattern import is_scipy_sparse

# A bool counts as a scalar, but not as a weak one: it has NumPy's boolean dtype. A symbolic size
# counts as an integer.
NUMBERS = (bool, int, float, complex)
SCALARS = (*NUMBERS, Dim)


def wrap(value: Value) -> Variable:
    """Return a handle on a value of the active recorder."""
    return Variable(active_recorder(), value)


def array_of(x: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Convert `x` to a NumPy array; Python floats take the default dtype unless `dtype` is given.

    Raises `ArgumentError` for objects that are not arrays, `DTypeError` for a dtype that is not
    supported.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise ArgumentError("a masked array has no counterpart", hint="fill it with x.filled(...)")
    if isinstance(x, np.matrix):
        raise ArgumentError(
            "a matrix of np.matrix, whose products are others, has no counterpart",
            hint="np.asarray(x) is an array",
        )
    if dtype is None and _is_python_float(x):
        dtype = complex_dtype(get_default_dtype()) if _has_complex(x) else get_default_dtype()
    try:
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            x = import_module("primgraph.ir.frontend.dlpack").from_protocol(x)
        array = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(f"cannot make an array of {_short_repr(x)}: {error}") from None
    # Reject other objects than numbers: conversions would parse text.
    if array.dtype.kind == "O" or (array.dtype.kind in "SU" and not isinstance(x, np.ndarray)):
        hint = "A @ x is a product, and A.toarray() an array" if is_scipy_sparse(x) else ""
        raise ArgumentError(f"cannot make an array of {_short_repr(x)}", hint=hint)
    found = as_dtype(array.dtype)
    if dtype is not None and found.kind == "c" and dtype.kind not in "bc":
        raise DTypeError(
            f"{_short_repr(x)} is complex, and does not become {dtype}",
            hint="pg.real(z), pg.imag(z), pg.abs(z) say which part is meant",
        )
    wanted = found if dtype is None else dtype
    if array.dtype == wanted:
        return array
    with np.errstate(all="ignore"):
        return array.astype(wanted, copy=False)


def _short_repr(x: Any) -> str:
    text = repr(x)
    return f"{type(x).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _is_python_float(x: Any) -> bool:
    """Return whether all numbers in `x` are Python numbers and at least one is a float."""
    if isinstance(x, list | tuple):
        kinds = [_is_python_float(v) for v in x]
        return any(kinds) and not any(isinstance(v, np.ndarray | np.generic) for v in x)
    return type(x) is float or type(x) is complex


def _has_complex(x: Any) -> bool:
    """Return whether `x` contains a Python complex number."""
    return any(map(_has_complex, x)) if isinstance(x, list | tuple) else type(x) is complex


def lift(x: ArrayLike, dtype: DType | None = None) -> Variable:
    """Return `x` as a handle: handles stay, arrays and numbers become constants.

    Python floats take the default dtype unless `dtype` says otherwise.

    >>> from primgraph.extend import lift
    >>> print(pg.trace(lambda: lift([1.0, 2.0])))
    graph f() {
      %0: f64[2] = constant(value=f64[2]{1.0, 2.0})
      return %0
    }
    """
    if isinstance(x, Variable):
        return x if dtype is None else convert_dtype(x, dtype)
    if isinstance(x, list | tuple) and handles(x):
        return lift(listed_array(x), dtype)
    if type(x) is Dim:
        return wrap(filled_constant(x, TensorType((), INT64 if dtype is None else dtype)))
    array = array_of(x, dtype)
    if dtype is not None and isinstance(x, np.ndarray | np.generic) and x.dtype != dtype:
        _note_given(x.dtype)
    op, params = constant_op(np.ascontiguousarray(array).reshape(array.shape), partial(name_of, x))
    return emit(op, **params)


def _note_given(dtype: DType) -> None:
    """Let the recorder know of an array that has lost its dtype beside a variable."""
    recorder = active_recorder()
    if isinstance(recorder, Builder):
        recorder.given.add(dtype)


def listed_array(items: Sequence[Any]) -> Variable:
    """Convert nested lists with handles in them to one array, like NumPy.

    Raises `ShapeError` for items of different shapes.
    """
    parts = [lift(item) for item in items]
    dtype = result_dtype(*parts)
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise ShapeError(
                f"a list of arrays of one shape is an array, not one of {parts[0].type} and "
                f"{part.type}"
            )
    return join_alike([convert_dtype(v, dtype) for v in parts], 0)


def join_alike(parts: Sequence[Variable], axis: int) -> Variable:
    """Stack arrays of one type along a new axis."""
    shape = parts[0].shape
    expanded = (*shape[:axis], 1, *shape[axis:])
    rows = [emit(reshape, v, shape=expanded) for v in parts]
    return rows[0] if len(rows) == 1 else emit(concat, *rows, axis=axis)


def type_of(x: ArrayLike) -> TensorType:
    """Return the type that `lift` would give to `x`."""
    if isinstance(x, Variable):
        return x.value.type
    if isinstance(x, list | tuple) and handles(x):
        return listed_array(x).type
    if type(x) is Dim:
        return TensorType((), INT64)
    array = x if isinstance(x, np.ndarray) and x.dtype in NAME_OF_DTYPE else array_of(x)
    return TensorType(array.shape, array.dtype)


def describe_operand(x: Any) -> str:
    """Return `x` for a message: its type, or the number or size itself."""
    return repr(x) if type(x) in SCALARS else str(type_of(x))


def list_operands(operands: Iterable[Any]) -> str:
    """Return the operands for a message, joined by `and`."""
    return " and ".join(describe_operand(x) for x in operands)


@contextmanager
def prefix_errors(text: str) -> Iterator[None]:
    """Prefix errors inside with `text`, such as `sum of f64[3]`."""
    try:
        yield
    except PrimgraphError as error:
        raise type(error)(
            f"{text}: {error.message}", origin=error.origin, hint=error.hint
        ) from None


def axes_of(name: str, x: Variable, axis: Axes) -> tuple[int, ...]:
    """Return the sorted axes for `axis`; errors name the function and the type of `x`."""
    with prefix_errors(f"{name} of {x.type}"):
        _require_no_array(name, axis)
        return as_axes(axis, x.ndim)


def axis_of(name: str, x: Variable, axis: Any) -> int:
    """Return the axis for `axis`; errors name the function and the type of `x`."""
    with prefix_errors(f"{name} of {x.type}"):
        _require_no_array(name, axis)
        return as_axis(axis, x.ndim)


# Functions of two arrays that are confused with functions of one array and axes.
_OF_TWO = {
    "max": "pg.maximum(x, y) has the larger elements of two arrays",
    "min": "pg.minimum(x, y) has the smaller elements of two arrays",
    **dict.fromkeys(("concatenate", "stack"), "put the arrays in one list: pg.{0}([x, y])"),
    "concat": "put the arrays in one list: pg.{0}([x, y])",
}


def _require_no_array(name: str, axis: Any) -> None:
    """Raise `ArgumentError` for an array, or a float, in place of axes."""
    if (
        hasattr(axis, "recorder")
        or isinstance(axis, float)
        or (np.ndim(axis) > 0 and hasattr(axis, "dtype"))
    ):
        raise ArgumentError(
            f"an axis is an integer, not {' '.join(repr(axis).split()):.60}",
            hint=_OF_TWO.get(name, "").format(name),
        )


def none_of_no_axes(x: Variable, axis: Any) -> Any:
    """Return `axis`, or None for the axes 0 and -1 of a 0-d array, which NumPy accepts."""
    first = x.ndim == 0 and isinstance(axis, int | np.integer) and axis in (0, -1)
    return None if first and not isinstance(axis, bool) else axis


def either(function: str, **given: Any) -> Any:
    """Return the one of two synonymous arguments that is not None; None if there is none."""
    found = [value for value in given.values() if value is not None]
    if len(found) > 1:
        raise ArgumentError(
            f"{function}: {' and '.join(given)} can't be provided simultaneously. They are two "
            "names of one argument"
        )
    return found[0] if found else None


def require_flag(name: str, value: Any) -> bool:
    """Return `value` if it is a boolean; others are likely misplaced arguments."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArgumentError(f"{name} is True or False, not {value!r}")


def require_integer(name: str, value: Any) -> int:
    """Return `value` as a Python integer, for static parameters."""
    try:
        return integer(value)
    except TypeError:
        raise ArgumentError(
            f"{name} takes integers that are fixed when the program is built, not {value!r:.60}"
        ) from None


def entries_of(entry: Any) -> Sequence[Any]:
    """Return `entry` if it is a sequence other than text, else a tuple of it."""
    sequence = isinstance(entry, Sequence) and not isinstance(entry, str | bytes)
    return entry if sequence else (entry,)


def require_number(name: str, value: Any) -> float:
    """Return `value` as a Python float, for static parameters."""
    if isinstance(value, bool | int | float | np.integer | np.floating):
        return float(value)
    raise ArgumentError(
        f"{name} is a number, not {_short_repr(value)}",
        hint="it is fixed when the program is built",
    )


# Classes of operands that are not converted.
_READY = frozenset((Variable, *SCALARS))


def _convert_lists(operands: Sequence[ArrayLike]) -> list[Any]:
    """Return the operands, with lists converted to arrays."""
    if _READY.issuperset(map(type, operands)):
        return [*operands]
    return [
        x
        if isinstance(x, Variable) or type(x) in SCALARS
        else listed_array(x)
        if isinstance(x, list | tuple) and handles(x)
        else array_of(x)
        for x in operands
    ]


def _weak_float(operands: Sequence[Any]) -> bool:
    """Return whether all are Python scalars, with a float or complex number among them."""
    kinds = [type(x) for x in operands]
    return (float in kinds or complex in kinds) and all(kind in SCALARS for kind in kinds)


def _default_dtype_for(dtype: DType) -> DType:
    """Return `dtype`, NumPy's for Python numbers, with the default dtype instead of float64."""
    if dtype.kind == "c":
        return complex_dtype(get_default_dtype())
    return get_default_dtype() if dtype.kind == "f" else dtype


def result_dtype(*operands: ArrayLike) -> DType:
    """Return NumPy's result dtype of the operands; Python scalars are weak."""
    known = _convert_lists(operands)
    if _weak_float(known):
        return _default_dtype_for(as_dtype(np.result_type(*map(_weak_or_dtype, known))))
    return as_dtype(np.result_type(*map(_weak_or_dtype, known)))


def _weak_or_dtype(x: Any) -> Any:
    """Return the number or dtype by which NumPy promotes an operand."""
    if type(x) in SCALARS:
        return 0 if type(x) is Dim else x
    return weak_type(x)() if is_weak(x) else x.dtype


def ufunc_dtypes(ufunc: np.ufunc, *operands: ArrayLike) -> tuple[DType, ...]:
    """Return the dtypes in which NumPy applies `ufunc` to the operands, the result's last.

    Raises `DTypeError` if NumPy has no loop for them.
    """
    known = _convert_lists(operands)
    try:
        found = _loop_of(ufunc, _kinds_of(known))
    except TypeError:
        raise UnsupportedDTypeError(
            f"{ufunc.__name__} does not take {list_operands(known)}",
            hint="convert the operands first, with pg.astype",
        ) from None
    if _weak_float(known):
        found = tuple(map(_default_dtype_for, found))
    return found


def pair_of_floats(ufunc: np.ufunc, x: Any, y: Any) -> tuple[Variable, Variable] | None:
    """Return two variables of one float type; a Python number beside one becomes a constant.

    None for other operands, and where the result of `ufunc` has another dtype.
    """
    left: Any = type(x)
    right: Any = type(y)
    common: TensorType | None = None
    if left is Variable:
        common = x.value.type
        if right is Variable and y.value.type is not common:
            return None
    elif right is Variable:
        common = y.value.type
    if common is None or not _keeps_float(ufunc, common.dtype, left, right):
        return None
    if is_weak(x) or is_weak(y):
        return None
    if right is not Variable:
        y = _filled(y, common)
    return (x if left is Variable else _filled(x, common)), y


@cache
def _keeps_float(ufunc: np.ufunc, dtype: DType, left: Any, right: Any) -> bool:
    """Return whether the result of `ufunc` has the float dtype of the operands.

    These are variables of that dtype, or one and a Python number.
    """
    if dtype.kind != "f" or not {left, right} <= {Variable, int, float}:
        return False
    kinds = tuple([dtype if kind is Variable else kind for kind in (left, right)])
    return _loop_of(ufunc, kinds)[-1] is dtype


def _filled(number: Any, type: TensorType) -> Variable:
    """Return a Python number as an array of that type."""
    return emit(full, value=scalar_of(number, type.dtype), shape=type.shape, dtype=type.dtype)


@cache
def _loop_of(ufunc: np.ufunc, kinds: tuple[DType | type, ...]) -> tuple[DType, ...]:
    """Return the dtypes of the loop that NumPy selects for these operand dtypes."""
    return tuple(map(as_dtype, ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))))


def _kinds_of(operands: Sequence[Any]) -> tuple[DType | type, ...]:
    """Return the dtypes of operands; variables that are weak have one beside Python numbers."""
    kinds = tuple(map(_kind_of, operands))
    if all(isinstance(kind, type) for kind in kinds):
        return tuple([x.dtype if is_weak(x) else k for x, k in zip(operands, kinds, strict=True)])
    return kinds


def _kind_of(x: Any) -> DType | type:
    """Return the dtype of an operand, or its Python type, which is weak."""
    if isinstance(x, Variable):
        return weak_type(x) if is_weak(x) else x.value.type.dtype
    if type(x) in SCALARS:
        if type(x) is Dim:
            return int
        return BOOL if type(x) is bool else type(x)
    return as_dtype(x.dtype)


def _shape_of(x: ArrayLike) -> Shape:
    if type(x) is Variable:
        return x.value.type.shape
    return () if type(x) in SCALARS else type_of(x).shape


def inexact_dtype(*operands: ArrayLike) -> DType:
    """Return the dtype, float or complex, in which NumPy computes `sin` of the operands."""
    dtype = result_dtype(*operands)
    if dtype.kind in "fc":
        return dtype
    return as_dtype(np.sin.resolve_dtypes((dtype, None))[1])


def fractional(*operands: ArrayLike) -> DType:
    """Return the float dtype of quotients: float64 for integers, however small."""
    dtype = result_dtype(*operands)
    return dtype if dtype.kind in "fc" else FLOAT64


def convert_dtype(x: Variable, dtype: DType) -> Variable:
    """Convert `x` to another dtype; return it if it has that dtype."""
    own = x.dtype
    return x if own is dtype or own == dtype else emit(cast, x, dtype=dtype)


def broadcast_to_shape(x: Variable, shape: Shape) -> Variable:
    """Broadcast `x` to `shape` by NumPy's rule, with explicit reshape and broadcast."""
    small = x.shape
    if small == shape:
        return x
    lead = len(shape) - len(small)
    repeated = [i for i, n in enumerate(shape) if i < lead or (small[i - lead] == 1 and n != 1)]
    kept = tuple([n for i, n in enumerate(shape) if i not in repeated])
    if kept != small:
        x = emit(reshape, x, shape=kept)
    return emit(broadcast, x, shape=shape, new_axes=tuple(repeated))


def broadcasts_to(shape: Shape, wanted: Shape) -> bool:
    """Return whether `shape` broadcasts to `wanted`."""
    try:
        return broadcast_shapes(shape, wanted) == wanted
    except ShapeError:
        return False


def common_shape(name: str, *operands: ArrayLike) -> Shape:
    """Return the shape to which the operands of `name` broadcast."""
    try:
        return broadcast_shapes(*[_shape_of(x) for x in operands])
    except ShapeError as error:
        found = " with ".join(describe_operand(x) for x in operands)
        reason = error.message.partition(": ")[2]
        raise ShapeError(f"{name} cannot broadcast {found}: {reason}", hint=error.hint) from None


def promote_operands(
    *operands: ArrayLike, dtype: DType | None = None, name: str = "the operation"
) -> list[Variable]:
    """Convert all operands to one dtype and broadcast them to one shape, for a strict primitive.

    Raises `ShapeError`, from `name`, if the shapes do not broadcast, and `DTypeError` for a Python
    integer that the dtype cannot represent.
    """
    known = _convert_lists(operands)
    dtype = result_dtype(*known) if dtype is None else dtype
    shape = common_shape(name, *known)
    return [
        _filled(x, TensorType(shape, dtype))
        if type(x) in NUMBERS
        else wrap(filled_constant(x, TensorType(shape, dtype)))
        if type(x) is Dim
        else broadcast_to_shape(lift(x, dtype), shape)
        for x in known
    ]
