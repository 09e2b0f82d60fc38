"""Tensor types, and the arithmetic of shapes and dtypes that rules share."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Container, Iterable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.records import Fixed
from primgraph.errors import ArgumentError, AxisError, DTypeError, PrimgraphError, ShapeError
from primgraph.ir.assumptions import assume_at_least, equal
from primgraph.ir.dims import Dim, names_in, parse_extent, size

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = "np.dtype[Any]"

BOOL: DType = np.dtype(np.bool_)
INT64: DType = np.dtype(np.int64)
FLOAT16: DType = np.dtype(np.float16)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)
COMPLEX64: DType = np.dtype(np.complex64)
COMPLEX128: DType = np.dtype(np.complex128)

DTYPE_OF_NAME: dict[str, DType] = {
    "bool": BOOL,
    **{f"i{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"u{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    **{f"f{8 * n}": np.dtype(f"f{n}") for n in (2, 4, 8)},
    **{f"c{8 * n}": np.dtype(f"c{n}") for n in (8, 16)},
}
NAME_OF_DTYPE: dict[DType, str] = {dtype: name for name, dtype in DTYPE_OF_NAME.items()}
_DTYPE_CLASSES = frozenset(map(type, NAME_OF_DTYPE))


@final
class TensorType(Fixed):
    """Type of a value: a shape and a dtype. It prints as `f64[3,4]`, or as `f64[N,2*N+1]`.

    An extent is an integer, or a `Dim` where it is known only when arrays are fed; then size and
    number of bytes are such expressions too, and `names` has the sizes that they are made of.
    Equal types are one object, so that to compare and to hash them costs next to nothing.

    >>> print(pg.TensorType((3, 4), np.dtype("float64")))
    f64[3,4]
    """

    __slots__ = ("dtype", "is_complex", "is_inexact", "names", "nbytes", "ndim", "shape", "size")

    shape: Shape
    dtype: DType
    ndim: int
    size: int
    nbytes: int
    names: frozenset[str]
    is_complex: bool
    # Whether the elements are floats or complex numbers, which are differentiable.
    is_inexact: bool

    def __new__(cls, shape: Shape, dtype: DType) -> TensorType:
        return _types.get((shape, dtype)) or _added_type(shape, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.shape, self.dtype)

    @property
    def is_float(self) -> bool:
        """Return whether the elements are real floats."""
        return self.dtype.kind == "f"

    def is_larger(self, size: int) -> bool:
        """Return whether it has, or may have, more than `size` elements."""
        return type(self.size) is Dim or self.size > size

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        return f"{NAME_OF_DTYPE[self.dtype]}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__


_types: dict[tuple[Shape, DType], TensorType] = {}


# NumPy's maximum number of axes.
_MOST_AXES = 64


def _added_type(shape: Shape, dtype: DType) -> TensorType:
    """Create a type with Python integers as sizes; return the existing one if another thread added
    it."""
    if not isinstance(shape, tuple) or dtype not in NAME_OF_DTYPE:
        raise ArgumentError(
            f"a type is made of a tuple and a NumPy dtype, not {shape!r:.60} and {dtype!r:.60}",
            hint="pg.spec(shape, dtype) takes all that stands for these",
        )
    made = object.__new__(TensorType)
    try:
        extents = tuple([n if type(n) is Dim else operator.index(n) for n in shape])
    except TypeError:
        raise ShapeError(f"shape {shape!r:.60} has an extent that is no integer") from None
    if len(extents) > _MOST_AXES:
        raise ShapeError(f"a type has {len(extents)} axes, of at most {_MOST_AXES}: NumPy's limit")
    count = math.prod(extents)
    if not _not_negative(extents):
        raise ShapeError(f"shape {extents} has a negative extent")
    parts = {"shape": extents, "dtype": dtype, "ndim": len(extents), "size": count}
    rest = {"nbytes": count * dtype.itemsize, "names": names_in(extents)}
    kinds = {"is_complex": dtype.kind == "c", "is_inexact": dtype.kind in "fc"}
    for name, value in {**parts, **rest, **kinds}.items():
        object.__setattr__(made, name, value)
    return _types.setdefault((extents, dtype), made)


def _not_negative(extents: Shape) -> bool:
    return all(n >= 0 if type(n) is int else assume_at_least(n, 0) for n in extents)


def as_dtype(dtype: Any) -> DType:
    """Return the native NumPy dtype for `dtype`.

    Raises `DTypeError` for anything but booleans, integers, floats of 16, 32 or 64 bits and complex
    numbers of 64 or 128 bits.
    """
    if type(dtype) in _DTYPE_CLASSES and dtype in NAME_OF_DTYPE:
        return DTYPE_OF_NAME[NAME_OF_DTYPE[dtype]]
    if isinstance(dtype, bytes | int):
        hint = "a shape of several axes is one tuple, as in (3, 4)" if type(dtype) is int else ""
        raise DTypeError(f"{dtype!r} is not a dtype", hint=hint)
    try:
        found: DType = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        is_shape = isinstance(dtype, list | tuple)
        hint = "the shape comes before the dtype, and names are given as name=" if is_shape else ""
        raise DTypeError(f"{dtype!r:.80} is not a dtype", hint=hint) from None
    if found not in NAME_OF_DTYPE:
        known = ", ".join(str(d) for d in NAME_OF_DTYPE)
        raise DTypeError(f"dtype {found} is not supported", hint=f"supported are: {known}")
    # Return the object that arrays have, so that fed arrays are compared by identity first.
    return DTYPE_OF_NAME[NAME_OF_DTYPE[found]]


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the parts of complex numbers; another dtype as it is."""
    return _PARTS.get(dtype, dtype)


def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype whose parts can represent all floats of `dtype`."""
    return COMPLEX64 if dtype.kind == "f" and dtype.itemsize <= 4 else _WHOLES.get(dtype, dtype)


_PARTS = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
_WHOLES = {FLOAT64: COMPLEX128}


def scalar_of(value: Any, dtype: DType) -> bool | int | float | complex:
    """Convert `value` to a Python scalar, rounded to `dtype` like NumPy.

    Raises `DTypeError` for an integer that `dtype` cannot represent.
    """
    try:
        if dtype is FLOAT64 and (type(value) is float or type(value) is int):
            return float(value)
        with np.errstate(all="ignore"):
            if dtype.kind == "c":
                found = dtype.type(value).item()
                return complex(_one_nan(found.real), _one_nan(found.imag))
            return dtype.type(value).item()  # type: ignore[no-any-return]
    except (OverflowError, ValueError, TypeError):
        raise DTypeError(f"{value!r} cannot be a constant of dtype {dtype}") from None


def _one_nan(number: float) -> float:
    """Return `number`, with the canonical NaN for every NaN."""
    return number if number == number else math.nan


def as_shape(shape: Any) -> Shape:
    """Return a shape from an integer or a sequence of integers, none of which is negative."""
    entries = (shape,) if isinstance(shape, int | np.integer | Dim) else shape
    try:
        extents = tuple([integer(n) for n in require_sequence(entries)])
    except TypeError:
        raise ArgumentError(
            f"a shape is an integer or a sequence of integers, not {shape!r:.80}",
            hint=" ".join(filter(None, [variable_extent(shape), _UNKNOWN])),
        ) from None
    if not _not_negative(extents):
        raise ShapeError(f"shape {extents} has a negative extent", hint=_UNKNOWN)
    count = math.prod(extents)
    if type(count) is int and count > sys.maxsize:
        raise ShapeError(f"shape {extents} has more elements than an array can have")
    return extents


_UNKNOWN = 'a symbolic size has a name: pg.data("x", ("N", 3)) declares N, and pg.dim("N") is N'


def variable_extent(shape: Any) -> str:
    """Return the hint for a variable that is used as a shape or in one."""
    items = shape if isinstance(shape, list | tuple) else [shape]
    names = [item.name for item in items if hasattr(item, "recorder")]
    if not names:
        return ""
    name = names[0] or "n"
    return (
        f"a shape cannot depend on the value of a variable: if {name!r} is an argument of a "
        f"function under pg.jit, static_argnames={name!r} passes its number;"
    )


def declared_shape(shape: Any, owner: str = "", taken: Container[str] = ()) -> Shape:
    """Return the shape of an input, whose sizes may be names, as "N", or expressions.

    With an `owner`, None and -1 stand for new sizes, named after it and the axis, by a name that is
    not `taken`.
    """
    entries = (shape,) if isinstance(shape, int | np.integer | Dim | str) else shape
    if owner and entries == -1:
        entries = (-1,)
    try:
        require_sequence(entries)
    except TypeError:
        return as_shape(shape)
    extents = list(entries)
    for axis, extent in enumerate(extents):
        if isinstance(extent, str):
            try:
                extents[axis] = parse_extent(extent)
                if type(extents[axis]) is int:
                    raise ArgumentError(
                        f"{extent!r:.60} is a number in quotes, and no name of a size"
                    )
            except PrimgraphError as error:
                raise ArgumentError(error.message, hint=error.hint) from None
        elif owner and (extent is None or (type(extent) is int and extent == -1)):
            extents[axis] = size(_size_name(f"{owner}_{axis}", taken))
    return as_shape(extents)


def _size_name(stem: str, taken: Container[str]) -> str:
    """Return an unused name of a size: `stem`, made an identifier."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)
    name = name if not name[0].isdigit() else f"_{name}"
    while name in taken:
        name += "_"
    return name


def integer(number: Any) -> int:
    """Convert `number` to a size: a Python integer, or a `Dim` as it is.

    Raises TypeError for anything else, including booleans.
    """
    if isinstance(number, bool | np.bool_):
        raise TypeError("a boolean is no integer")
    return number if type(number) is Dim else operator.index(number)


def require_sequence(entries: Any) -> Sequence[Any] | np.ndarray[Any, Any]:
    """Return `entries` if it is a sequence other than text. Raises TypeError for anything else."""
    if not isinstance(entries, Sequence | np.ndarray) or isinstance(entries, str | bytes):
        raise TypeError("no sequence")
    return entries


def as_axis(axis: Any, ndim: int) -> int:
    """Count `axis` from the front; negative axes count from the back, as in NumPy."""
    try:
        number = operator.index(integer(axis))
    except TypeError:
        raise ArgumentError(f"an axis is an integer, not {axis!r}") from None
    if not -ndim <= number < ndim:
        raise AxisError(f"axis {number} is out of bounds for an array of {ndim} dimensions")
    return number % ndim


def check_axis(name: str, axis: int, type: TensorType) -> None:
    """Raise if `type` lacks an axis; in parameters of primitives, axes count from the front."""
    if not 0 <= axis < type.ndim:
        raise ShapeError(f"{name}: {type} has no axis {axis}")


def common_type(name: str, *types: TensorType) -> TensorType:
    """Return the common type of all operands of an op without broadcasting and promotion.

    Raises `ShapeError` if shapes differ, `DTypeError` if only dtypes do.
    """
    first = types[0]
    for other in types[1:]:
        if other is first:
            continue
        if other.shape != first.shape:
            raise ShapeError(f"{name} takes equal types, not {first} and {other}")
        if other.dtype != first.dtype:
            raise DTypeError(f"{name} takes equal types, not {first} and {other}")
    return first


def as_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return sorted axes, counted from the front, from None (all), an integer or a sequence."""
    if axis is None:
        return tuple(range(ndim))
    several = isinstance(axis, Sequence | np.ndarray) and not isinstance(axis, str | bytes)
    entries: Iterable[Any] = axis if several else (axis,)
    axes = sorted(as_axis(a, ndim) for a in entries)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"an axis is named twice in {tuple(axes)}")
    return tuple(axes)


def larger(x: int, y: int) -> int:
    """Return the maximum of two sizes."""
    if type(x) is Dim:
        return x.max(y)
    return y.max(x) if type(y) is Dim else max(x, y)


def smaller(x: int, y: int) -> int:
    """Return the minimum of two sizes."""
    if type(x) is Dim:
        return x.min(y)
    return y.min(x) if type(y) is Dim else min(x, y)


def drop_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return `shape` without the given axes."""
    dropped = set(axes)
    return tuple(n for i, n in enumerate(shape) if i not in dropped)


def add_leading_axis(extent: int, type: TensorType) -> TensorType:
    """Return `type` with a leading axis of that size."""
    return TensorType((extent, *type.shape), type.dtype)


def drop_leading_axis(name: str, extent: int, type: TensorType) -> TensorType:
    """Return `type` without its leading axis of that size. Raises `ShapeError` for another one."""
    if not type.shape or type.shape[0] != extent:
        raise ShapeError(f"{name}: {type} has no leading axis of extent {extent}")
    return TensorType(type.shape[1:], type.dtype)


def keep_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return `shape` with size 1 at the given axes."""
    kept = set(axes)
    return tuple(1 if i in kept else n for i, n in enumerate(shape))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the common shape under NumPy's broadcasting rule.

    Raises `ShapeError` if two sizes of an axis differ and neither is one.
    """
    first = max(shapes, key=len, default=())
    if all(shape == first or not shape for shape in shapes):
        return first
    ndim = len(first)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for extents in zip(*padded, strict=True):
        different = {n for n in extents if n != 1}
        if len(different) > 1:
            texts = " with ".join(str(list(shape)) for shape in shapes)
            raise ShapeError(
                f"cannot broadcast {texts}: sizes {sorted(different, key=_in_order)} differ",
                hint=_SAME if any(type(n) is Dim for n in different) else "",
            )
        result.append(different.pop() if different else 1)
    return tuple(result)


_SAME = (
    'sizes that are always the same have one name: declare both by it, as in pg.data("y", ("N",))'
)


def _in_order(extent: int) -> tuple[bool, int, str]:
    """Sort key of sizes in a message: numbers first."""
    unknown = type(extent) is Dim
    return unknown, 0 if unknown else extent, str(extent)


def resolve_reshape(shape: Any, size: int) -> Shape:
    """Return the full shape for a reshape of `size` elements; one entry may be -1.

    Conditions on symbolic sizes are assumed: divisibility, and divisors other than zero.
    """
    entries = (shape,) if isinstance(shape, int | np.integer | Dim) else shape
    extents = [integer(n) for n in require_sequence(entries)]
    if extents.count(-1) > 1:
        raise ShapeError(f"cannot reshape to {tuple(extents)}: only one extent may be -1")
    if -1 in extents:
        known = math.prod(n for n in extents if n != -1)
        if not assume_at_least(abs(known) if type(known) is int else known, 1) or not equal(
            size % known, 0
        ):
            raise ShapeError(f"cannot reshape {size} elements to {tuple(extents)}")
        extents[extents.index(-1)] = size // known
    result = as_shape(extents)
    if not equal(math.prod(result), size):
        raise ShapeError(f"cannot reshape {size} elements to {result}")
    return result
