"""Creation, shapes and elements by the names that they have in `megengine.functional.tensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import INT32, Tensor, check_device
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.operators.handle import Handle
from primgraph.operators.names import define

_ROWS = """
ones_like(inp)
Return ones of the shape and dtype of `inp`.
>>> megengine.functional.ones_like(megengine.Tensor([2, 3]))
Tensor([1 1], dtype=int32, device=xpux:0)

zeros_like(inp)
Return zeros of the shape and dtype of `inp`.
>>> megengine.functional.zeros_like(megengine.Tensor([2, 3]))
Tensor([0 0], dtype=int32, device=xpux:0)

full_like(inp, value)
Return a tensor of the shape and dtype of `inp` with all elements equal to `value`.
>>> megengine.functional.full_like(megengine.Tensor([2, 3]), 5)
Tensor([5 5], dtype=int32, device=xpux:0)

diag(inp, k=0)
Return a matrix with a vector on diagonal `k`, or that diagonal of a matrix.
>>> megengine.functional.diag(megengine.Tensor([[1.0, 2.0], [3.0, 4.0]]))
Tensor([1. 4.], device=xpux:0)

broadcast_to(inp, shape)
Repeat along axes of extent one, and along new axes, to a shape.
>>> megengine.functional.broadcast_to(megengine.Tensor([1.0, 2.0]), (2, 2))
Tensor([[1. 2.]
 [1. 2.]], device=xpux:0)

cumsum(inp, axis)
Compute the cumulative sum along `axis`.
>>> megengine.functional.cumsum(megengine.Tensor([1.0, 2.0, 3.0]), 0)
Tensor([1. 3. 6.], device=xpux:0)

expand_dims(inp, axis)
Insert axes of extent one at positions of the result.
>>> megengine.functional.expand_dims(megengine.Tensor([1.0, 2.0]), 0).shape
(1, 2)

squeeze(inp, axis=None)
Remove axes of extent one: these, or all.
>>> megengine.functional.squeeze(megengine.functional.ones((1, 3, 1)), 0).shape
(3, 1)

swapaxes(inp, axis1, axis2)
Exchange two axes.
>>> megengine.functional.swapaxes(megengine.functional.ones((2, 3)), 0, 1).shape
(3, 2)

reshape(inp, target_shape): reshape(inp, target_shape)
Return the same elements in another shape, of which one extent may be -1.
>>> megengine.functional.reshape(megengine.functional.ones((2, 3)), (3, -1)).shape
(3, 2)

repeat(inp, repeats, axis=None)
Repeat each element along an axis, or of the flattened tensor.
>>> megengine.functional.repeat(megengine.Tensor([1.0, 2.0]), 2)
Tensor([1. 1. 2. 2.], device=xpux:0)

tile(inp, reps)
Repeat the tensor as a whole along each axis.
>>> megengine.functional.tile(megengine.Tensor([1.0, 2.0]), (2,))
Tensor([1. 2. 1. 2.], device=xpux:0)

roll(inp, shift, axis=None)
Shift elements in a circle along axes, or in the flattened tensor.
>>> megengine.functional.roll(megengine.Tensor([1.0, 2.0, 3.0]), 1)
Tensor([3. 1. 2.], device=xpux:0)

real(complex)
Return the real part.
>>> F = megengine.functional
>>> F.real(F.complex(1.0, 2.0))
Tensor(1.0, device=xpux:0)

imag(complex)
Return the imaginary part.
>>> F = megengine.functional
>>> F.imag(F.complex(1.0, 2.0))
Tensor(2.0, device=xpux:0)
"""

__all__ = [
    *define("megengine.functional", globals(), _ROWS),
    "arange",
    "complex",
    "concat",
    "cond_take",
    "copy",
    "eye",
    "flatten",
    "full",
    "gather",
    "linspace",
    "meshgrid",
    "non_zero",
    "ones",
    "polar",
    "scatter",
    "split",
    "stack",
    "transpose",
    "where",
    "zeros",
]


# Made from nothing.


def zeros(shape: Any, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a tensor of zeros.

    >>> megengine.functional.zeros((2, 3))
    Tensor([[0. 0. 0.]
     [0. 0. 0.]], device=xpux:0)
    """
    return Tensor(np.zeros(_shape(shape), dtype), dtype, device)


def ones(shape: Any, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a tensor of ones.

    >>> megengine.functional.ones((2, 3))
    Tensor([[1. 1. 1.]
     [1. 1. 1.]], device=xpux:0)
    """
    return Tensor(np.ones(_shape(shape), dtype), dtype, device)


def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor with all elements equal to `value`, of the dtype of that unless given.

    >>> megengine.functional.full((2,), 0.5)
    Tensor([0.5 0.5], device=xpux:0)
    """
    number = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
    return Tensor(np.full(_shape(shape), number, dtype or number.dtype), dtype, device)


def arange(
    start: Any = 0,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = "float32",
    device: Any = None,
) -> Tensor:
    """Return numbers from `start` (0 without a `stop`) up to but excluding `stop`, `step` apart.

    >>> megengine.functional.arange(1, 7, 2)
    Tensor([1. 3. 5.], device=xpux:0)
    """
    first, last = (0, start) if stop is None else (start, stop)
    array = np.arange(*map(_number, (first, last, step)))
    return Tensor(array.astype(dtype), dtype, device)


def linspace(
    start: Any, stop: Any, num: Any, *, dtype: Any = "float32", device: Any = None
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    >>> megengine.functional.linspace(0.0, 1.0, 5)
    Tensor([0.   0.25 0.5  0.75 1.  ], device=xpux:0)
    """
    array = np.linspace(_number(start), _number(stop), int(num))
    return Tensor(array.astype(dtype), dtype, device)


def eye(N: Any, M: int | None = None, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a matrix with ones on the diagonal, and zeros elsewhere.

    >>> megengine.functional.eye(2)
    Tensor([[1. 0.]
     [0. 1.]], device=xpux:0)
    """
    return Tensor(np.eye(int(N), None if M is None else int(M), dtype=dtype), dtype, device)


def complex(real: Any, imag: Any) -> Any:
    """Return complex numbers with these real and imaginary parts.

    >>> megengine.functional.complex(1.0, 2.0).dtype
    dtype('complex64')
    """
    return pg.complex(*(x if isinstance(x, Handle) else Tensor(x) for x in (real, imag)))


def polar(abs: Any, angle: Any) -> Any:
    """Return complex numbers with these absolute values and angles.

    >>> megengine.functional.polar(megengine.Tensor(2.0), megengine.Tensor(0.0)).item()
    (2+0j)
    """
    return complex(abs * pg.cos(angle), abs * pg.sin(angle))


# Shapes and elements.


def copy(inp: Any, device: Any = None) -> Any:
    """Return a tensor of the same elements, which do not change with `inp`.

    >>> megengine.functional.copy(megengine.Tensor([1.0, 2.0]))
    Tensor([1. 2.], device=xpux:0)
    """
    check_device(device)
    return inp.clone()


def concat(inps: Sequence[Any], axis: int = 0, device: Any = None) -> Any:
    """Join tensors along `axis`.

    >>> F = megengine.functional
    >>> F.concat([F.zeros(1), F.ones(2)])
    Tensor([0. 1. 1.], device=xpux:0)
    """
    check_device(device)
    return pg.concatenate(list(inps), axis)


def stack(inps: Sequence[Any], axis: int = 0, device: Any = None) -> Any:
    """Stack tensors of one shape along a new axis.

    >>> F = megengine.functional
    >>> F.stack([F.zeros(2), F.ones(2)])
    Tensor([[0. 0.]
     [1. 1.]], device=xpux:0)
    """
    check_device(device)
    return pg.stack(list(inps), axis)


def split(inp: Any, nsplits_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along `axis` into equal parts, or into parts that end at these positions.

    >>> F = megengine.functional
    >>> [part.tolist() for part in F.split(F.arange(4), 2)]
    [[0.0, 1.0], [2.0, 3.0]]
    """
    return list(pg.split(inp, nsplits_or_sections, axis))


def transpose(inp: Any, pattern: Sequence[Any]) -> Any:
    """Permute the axes: axis `i` of the result is axis `pattern[i]`, or a new one for "x".

    >>> F = megengine.functional
    >>> F.transpose(F.ones((2, 3, 4)), (2, 0, "x", 1)).shape
    (4, 2, 1, 3)
    """
    return inp.transpose(tuple(pattern))


def flatten(inp: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    """Merge the axes from `start_axis` to `end_axis` into one.

    >>> F = megengine.functional
    >>> F.flatten(F.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    return inp.flatten(start_axis, end_axis)


def gather(inp: Any, axis: int, index: Any) -> Any:
    """Take one element along `axis` for each of `index`, whose other axes may be shorter.

    Raises `ArgumentError`, a `ValueError`, for another number of axes.

    >>> F = megengine.functional
    >>> F.gather(F.arange(3), 0, megengine.Tensor([2, 0]))
    Tensor([2. 0.], device=xpux:0)
    """
    if inp.ndim != index.ndim:
        raise ArgumentError(f"gather: index has {index.ndim} axes, and inp has {inp.ndim}")
    return pg.take_along_axis(_begin(inp, index.shape, axis), index, axis)


def scatter(inp: Any, axis: int, index: Any, source: Any) -> Any:
    """Set one element of `inp` along `axis` for each of `index` to that of `source`; return `inp`.

    `inp` is changed. Raises `ShapeError` for shapes that do not fit.

    >>> F = megengine.functional
    >>> F.scatter(F.zeros(3), 0, megengine.Tensor([2, 0]), megengine.Tensor([5.0, 6.0]))
    Tensor([6. 0. 5.], device=xpux:0)
    """
    if not inp.ndim == index.ndim == source.ndim or index.shape != source.shape:
        shapes = f"{inp.shape}, {index.shape} and {source.shape}"
        raise ShapeError(f"scatter: inp, index and source are of the shapes {shapes}")
    axis = axis % inp.ndim
    places: list[Any] = list(np.indices(index.shape, sparse=True))
    places[axis] = index
    inp[tuple(places)] = source
    return inp


def where(mask: Any, x: Any = None, y: Any = None) -> Any:
    """Choose elements of `x` where the mask is true, and of `y` elsewhere.

    Without `x` and `y` it is `non_zero(mask, as_tuple=True)`. Raises `DTypeError` for a mask that
    is not of bool.

    >>> F = megengine.functional
    >>> x = F.arange(3)
    >>> F.where(x > 1, x, F.zeros(3))
    Tensor([0. 0. 2.], device=xpux:0)
    """
    if x is None and y is None:
        return non_zero(mask, as_tuple=True)
    _require_mask("where", mask)
    return pg.where(mask, x, y)


def cond_take(mask: Any, x: Any) -> tuple[Any, Any]:
    """Return the elements of `x` where the mask is true, and their positions in the flattened `x`.

    >>> F = megengine.functional
    >>> x = megengine.Tensor([1.0, 5.0, 7.0])
    >>> F.cond_take(x > 2, x)
    (Tensor([5. 7.], device=xpux:0), Tensor([1 2], dtype=int32, device=xpux:0))
    """
    _require_mask("cond_take", mask)
    positions = Tensor(pg.flatnonzero(mask), INT32)
    return pg.take(pg.reshape(x, -1), positions), positions


def non_zero(condition: Any, as_tuple: bool = False) -> Any:
    """Return the positions of elements that are not zero: one row for each, or a tensor by axis.

    >>> megengine.functional.non_zero(megengine.Tensor([0.0, 1.0, 2.0]))
    Tensor([[1]
     [2]], dtype=int32, device=xpux:0)
    """
    found = tuple(Tensor(i, INT32) for i in pg.nonzero(condition))
    return found if as_tuple else pg.stack(found, 1)


def meshgrid(*inputs: Any, indexing: Any = "xy") -> Any:
    """Return the coordinates of a grid for vectors of coordinates along each axis.

    >>> F = megengine.functional
    >>> [x.tolist() for x in F.meshgrid(F.arange(2), F.arange(1))]
    [[[0.0, 1.0]], [[0.0, 0.0]]]
    """
    return pg.meshgrid(*inputs, indexing=indexing)


def _begin(inp: Any, shape: Sequence[int], axis: int) -> Any:
    """The first elements along all axes but one, as many as `shape` has."""
    axis = axis % inp.ndim
    cut = [slice(None) if i == axis else slice(n) for i, n in enumerate(shape)]
    return (
        inp
        if all(s.stop in (None, n) for s, n in zip(cut, inp.shape, strict=True))
        else (inp[tuple(cut)])
    )


def _require_mask(name: str, mask: Any) -> None:
    if not isinstance(mask, Handle):
        raise DTypeError(f"{name}: mask must be a tensor")
    if mask.dtype.kind != "b":
        raise MaskError(f"{name}: mask must be bool, and is {mask.type}")


class MaskError(DTypeError, ValueError):
    """Error for a mask of another dtype than bool: a `ValueError` in MegEngine."""


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _shape(shape: Any) -> Any:
    """The extents as Python numbers: they may be tensors."""
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    return tuple(int(n) for n in shape) if isinstance(shape, list | tuple) else int(shape)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
