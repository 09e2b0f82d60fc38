"""NumPy functions whose arguments differ from ours, with NumPy's parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError
from primgraph.operators.call import namespace_operator
from primgraph.operators.handle import Handle
from primgraph.operators.index.masked import MaskedElements
from primgraph.operators.numpy_arguments import call_named, write_out
from primgraph.operators.variable import Variable


def take(
    a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:  # fmt: skip
    if out is not None:
        return write_out("take", out, take(a, indices, axis, mode=mode))
    if mode == "wrap":
        indices = call_named("remainder", indices, size(a, axis))
    elif mode == "clip":
        indices = call_named("clip", indices, 0, size(a, axis) - 1)
    return call_named("take", a, indices, axis)


def where(condition: Any, *branches: Any) -> Any:
    if not branches:
        return call_named("nonzero", condition)
    if len(branches) != 2:
        raise ArgumentError("np.where takes a condition alone, or with two arrays to choose from")
    return call_named("where", condition, *branches)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    found = call_named("linspace", start, stop, num, endpoint, dtype=dtype)
    found = found if axis == 0 else call_named("moveaxis", found, 0, axis)
    gaps = num - 1 if endpoint else num
    return (found, (stop - start) / gaps) if retstep else found


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    found = call_named("power", base, linspace(start, stop, num, endpoint, axis=axis))
    return found if dtype is None else call_named("astype", found, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers with equal ratios; negative ones between negative ends."""
    sign = call_named("sign", start)
    first, last = (call_named("log", call_named("multiply", sign, v)) for v in (start, stop))
    powers = call_named("exp", linspace(first, last, num, endpoint, axis=axis))
    found = call_named("multiply", sign, powers)
    count = found.shape[axis]
    if count > 1 and endpoint:
        # The ends are exactly the given ones, as in NumPy.
        middle = call_named("take", found, np.arange(1, count - 1), axis)
        shape = tuple(n for i, n in enumerate(found.shape) if i != axis % found.ndim)
        wide = [call_named("broadcast_to", call_named("asarray", v), shape) for v in (start, stop)]
        ends = [call_named("expand_dims", call_named("astype", v, found.dtype), axis) for v in wide]
        found = call_named("concatenate", [ends[0], middle, ends[1]], axis)
    return call_named("astype", found, "float64" if dtype is None else dtype)


def _define_like(name: str) -> Callable[..., Any]:
    """Return `zeros_like` or similar, with NumPy's `shape` argument."""

    def make_like(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        dtype = a.dtype if dtype is None else dtype
        if shape is None and isinstance(a, MaskedElements):
            return a.filled_like(call_named(name, (), dtype))
        return call_named(name, a.shape if shape is None else shape, dtype)

    return make_like


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    found = call_named("broadcast_to", call_named("asarray", fill_value), shape)
    return found if dtype is None else call_named("astype", found, dtype)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    if shape is None and isinstance(a, MaskedElements):
        return a.filled_like(call_named("full", (), fill_value, dtype or a.dtype))
    like = call_named("asarray", a)
    return call_named(
        "full", like.shape if shape is None else shape, fill_value, dtype or like.dtype
    )


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if callable(mode):
        raise ArgumentError("np.pad with a function as mode writes to an array in place")
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            widths[axis] = width if isinstance(width, tuple) else (width, width)
        pad_width = widths
    return call_named("pad", array, pad_width, mode, **options)


def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    if out is not None:
        casting = options.pop("casting", "safe")
        return write_out("einsum", out, einsum(*operands, **options), casting)
    dtype = options.get("dtype")
    if dtype is None:
        return call_named("einsum", *operands)
    # After a string all are arrays; without one every other argument is, except for the output's
    # labels.
    by_string = isinstance(operands[0], str)
    last = len(operands) if by_string else len(operands) // 2 * 2
    places = range(1, last) if by_string else range(0, last, 2)
    cast = [
        call_named("astype", call_named("asarray", x), dtype) if i in places else x
        for i, x in enumerate(operands)
    ]
    return call_named("einsum", *cast)


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """Return the order of contractions, by NumPy, which needs only the shapes."""
    # An array of one element that stands for all takes no memory.
    shapes = [np.broadcast_to(0.0, x.shape) if isinstance(x, Handle) else x for x in operands]
    return np.einsum_path(*shapes, optimize=optimize, einsum_call=einsum_call)


def shape(a: Any) -> Any:
    return call_named("asarray", a).shape


def ndim(a: Any) -> int:
    return a.ndim if isinstance(a, Handle) else len(shape(a))


def iterable(y: Any) -> bool:
    return ndim(y) > 0


def size(a: Any, axis: Any = None) -> Any:
    extents = shape(a)
    axes = range(len(extents)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(extents[i] for i in axes)


def result_type(*arrays: Any) -> Any:
    return np.result_type(*(a.dtype if isinstance(a, Handle) else a for a in arrays))


def min_scalar_type(a: Any) -> Any:
    return a.dtype


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    return np.can_cast(from_.dtype, to, casting)  # type: ignore[arg-type]


def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.zeros(0, a.dtype) for a in arrays))


def iscomplexobj(x: Any) -> bool:
    return x.dtype.kind == "c"  # type: ignore[no-any-return]


def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return real parts where imaginary ones are negligible; raise if the numbers are not known."""
    if not iscomplexobj(a):
        return a
    if isinstance(a, Variable):
        raise DTypeError(
            f"np.real_if_close of {a.type} would have a dtype that depends on its numbers",
            hint="pg.real(z) drops the imaginary parts",
        )
    known = np.real_if_close(np.asarray(a.detach()), tol)
    return a if known.dtype.kind == "c" else call_named("real", a)


def sort_complex(a: Any) -> Any:
    value = call_named("asarray", a)
    # As in NumPy: complex64 for small integers only.
    is_small = value.dtype.kind in "iu" and value.dtype.itemsize <= 2
    wide = value.dtype if value.type.is_complex else "complex64" if is_small else "complex128"
    return call_named("sort", call_named("astype", value, wide))


def vdot(a: Any, b: Any) -> Any:
    return call_named("dot", call_named("conj", call_named("ravel", a)), call_named("ravel", b))


def listed_axes(x: Any, axes: Any) -> list[int]:
    if axes is None:
        return list(range(x.ndim))
    return [axes] if isinstance(axes, int) else list(axes)


@namespace_operator
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:  # fmt: skip
    """Return all windows of a size along axes, with their elements along new last axes."""
    sizes = window_shape if isinstance(window_shape, list | tuple) else (window_shape,)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    if len(sizes) != len(axes):
        raise ArgumentError(f"np.sliding_window_view: {len(sizes)} sizes for {len(axes)} axes")
    for number, size in zip([i % x.ndim for i in axes], sizes, strict=True):
        count = x.shape[number] - size + 1
        if not 0 <= size <= x.shape[number]:
            raise ArgumentError(f"np.sliding_window_view: no window of {size} in {x.type}")
        places = np.arange(count)[:, None] + np.arange(size)
        x = call_named("moveaxis", call_named("take", x, places, number), number + 1, -1)
    return x


def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial with these zeros."""
    narrow = seq_of_zeros.dtype.kind != "f" or seq_of_zeros.dtype.itemsize < 4
    zeros = call_named("astype", seq_of_zeros, "float64") if narrow else seq_of_zeros
    found = call_named("ones", (1,), zeros.dtype)
    for zero in zeros:
        found = call_named(
            "convolve", found, call_named("stack", [call_named("ones_like", zero), -zero])
        )
    return found


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply `func1d` to each vector along an axis; its results replace that axis."""
    moved = call_named("moveaxis", arr, axis, -1)
    rows = call_named("reshape", moved, (math.prod(moved.shape[:-1]), moved.shape[-1]))
    results = [call_named("asarray", func1d(row, *args, **kwargs)) for row in rows]
    shape = results[0].shape
    found = call_named("reshape", call_named("stack", results), (*moved.shape[:-1], *shape))
    lead = moved.ndim - 1
    places = list(range(lead, lead + len(shape)))
    return call_named("moveaxis", found, places, [axis % arr.ndim + i for i in range(len(shape))])


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    for axis in [axes] if isinstance(axes, int) else axes:
        found = func(a, axis)
        a = found if found.ndim == a.ndim else call_named("expand_dims", found, axis)
    return a


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Apply each function where its condition is true; the last true condition wins."""
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if isinstance(condlist, np.ndarray) and condlist.ndim > x.ndim:
        conditions = list(condlist)
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        default = call_named(
            "logical_not", reduce(lambda p, q: call_named("logical_or", p, q), conditions)
        )
        conditions, functions = [default, *conditions], [functions[-1], *functions[:-1]]
    if len(functions) != len(conditions):
        raise ArgumentError(
            f"np.piecewise takes {len(conditions)} functions or one more, not {len(functions)}"
        )
    found = call_named("zeros_like", x)
    for condition, function in zip(conditions, functions, strict=True):
        value = function(x, *args, **kw) if callable(function) else function
        found = call_named("where", condition, call_named("astype", value, x.dtype), found)
    return found


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return the same elements; a tensor as one that is not a view."""
    value = call_named("asarray", a)
    return value.clone() if hasattr(value, "clone") else call_named("assign", value)


def nan_to_num(x: Any, copy: bool = True, **options: Any) -> Any:
    """Replace NaN and infinities, in place if `copy` is false."""
    found = call_named("nan_to_num", x, **options)
    if copy or not isinstance(x, Handle):
        return found
    array: Any = x
    array[...] = found
    return x


empty_like = _define_like("zeros")
ones_like = _define_like("ones")
zeros_like = _define_like("zeros")
