"""Reshape, permute, add and drop axes, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis, as_shape, require_sequence, resolve_reshape
from primgraph.operators.call import public, require_fixed
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.logic import greater_equal, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import (
    axes_of,
    axis_of,
    broadcast_to_shape,
    broadcasts_to,
    entries_of,
    lift,
    none_of_no_axes,
    prefix_errors,
    require_integer,
)
from primgraph.operators.shape.creation import iota
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import shapes


def reshape_to(x: Variable, shape: tuple[int, ...]) -> Variable:
    """Reshape `x` to a shape of the same size; return it if it has that shape."""
    return x if x.shape == shape else emit(shapes.reshape, x, shape=shape)


def permute_axes(x: Variable, axes: tuple[int, ...]) -> Variable:
    """Permute axes, so that axis `axes[i]` becomes axis `i`; return `x` if nothing moves."""
    return x if axes == tuple(range(x.ndim)) else emit(shapes.permute, x, axes=axes)


@public
@decided_by_types
def reshape(x: ArrayLike, shape: Any, order: str = "C") -> Variable:
    """Return the same elements in row-major order in another shape, of which one extent may be -1.

    With `order="F"` in column-major order. "A" and "K" are "C", as values have no memory order.
    Raises `ShapeError` if the numbers of elements differ, `ArgumentError` for another order.

    >>> pg.reshape([1.0, 2.0, 3.0, 4.0], (2, -1))
    tensor([[1., 2.],
            [3., 4.]])
    """
    require_fixed("a shape", shape)
    value = lift(x)
    if _is_reversed(order):
        entries = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        return _reverse_axes(reshape(_reverse_axes(value), entries[::-1]))
    with prefix_errors(f"reshape of {value.type}"):
        try:
            wanted = resolve_reshape(shape, value.size)
        except TypeError:
            raise ArgumentError(f"a shape is made of integers, not {shape!r:.60}") from None
    return reshape_to(value, wanted)


def _is_reversed(order: Any) -> bool:
    """Return whether `order`, one of NumPy's, is column-major."""
    if order in ("C", "A", "K", "F"):
        return bool(order == "F")
    hint = "write the shape as one tuple, such as (3, 4)" if type(order) is int else ""
    raise ArgumentError(f"order is 'C', 'F', 'A' or 'K', not {order!r:.60}", hint=hint)


def _reverse_axes(x: Variable) -> Variable:
    """Return `x` with its axes in reverse order."""
    return permute_axes(x, tuple(range(x.ndim))[::-1])


@public
@decided_by_types
def flatten(x: ArrayLike, order: str = "C") -> Variable:
    """Return all elements along one axis, of shape `(x.size,)`; `order` is as in `reshape`.

    >>> pg.flatten([[1.0, 2.0], [3.0, 4.0]])
    tensor([1., 2., 3., 4.])
    """
    value = lift(x)
    return reshape_to(_reverse_axes(value) if _is_reversed(order) else value, (value.size,))


@public
@decided_by_types
def ravel(x: ArrayLike, order: str = "C") -> Variable:
    """Return all elements along one axis, of shape `(x.size,)`; `order` is as in `reshape`.

    >>> pg.ravel([[1.0, 2.0], [3.0, 4.0]])
    tensor([1., 2., 3., 4.])
    """
    return flatten(x, order)


@public
@decided_by_types
def broadcast_to(x: ArrayLike, shape: Any) -> Variable:
    """Return `x` repeated along new leading axes and along axes of extent one.

    Raises `ShapeError` if the shape of `x` does not broadcast to `shape`.

    >>> pg.broadcast_to([1.0, 2.0], (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    require_fixed("a shape", shape)
    value, wanted = lift(x), as_shape(shape)
    if not broadcasts_to(value.shape, wanted):
        raise ShapeError(f"broadcast_to cannot turn {value.type} into shape {wanted}")
    return broadcast_to_shape(value, wanted)


@public
@decided_by_types
def transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Variable:
    """Permute the axes: axis `i` of the result is axis `axes[i]` of `x`; reversed without `axes`.

    Raises `ShapeError` if `axes` is not a permutation of the axes.

    >>> pg.transpose([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 3.],
            [2., 4.]])
    """
    value = lift(x)
    if axes is None:
        return permute_axes(value, tuple(reversed(range(value.ndim))))
    with prefix_errors(f"transpose of {value.type}"):
        try:
            order = tuple(as_axis(a, value.ndim) for a in require_sequence(axes))
        except TypeError:
            raise ArgumentError(f"axes is a sequence of integers, not {axes!r:.60}") from None
        if sorted(order) != list(range(value.ndim)):
            raise ShapeError(f"{tuple(axes)} is not a permutation of its axes")
    return permute_axes(value, order)


permute = functions["permute"] = transpose


@public
@decided_by_types
def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Variable:
    """Return `x` with the axes `axis1` and `axis2` exchanged; negative axes count from the back.

    Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    value = lift(x)
    first, second = (axis_of("swapaxes", value, a) for a in (axis1, axis2))
    order = list(range(value.ndim))
    order[first], order[second] = order[second], order[first]
    return permute_axes(value, tuple(order))


@public
@decided_by_types
def moveaxis(x: ArrayLike, source: Axes, destination: Axes) -> Variable:
    """Return `x` with the axes `source` at the places `destination`; the others keep their order.

    Raises `ShapeError` for repeated axes, or different numbers of axes.

    >>> pg.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    value = lift(x)
    sources, targets = (_ordered_axes(value, a) for a in (source, destination))
    if len(sources) != len(targets):
        raise ShapeError(
            f"moveaxis of {value.type}: {len(sources)} axes cannot go to {len(targets)} places"
        )
    order = [a for a in range(value.ndim) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute_axes(value, tuple(order))


def _ordered_axes(x: Variable, axis: Axes) -> tuple[int, ...]:
    axes = tuple(axis_of("moveaxis", x, a) for a in entries_of(axis))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"moveaxis of {x.type}: an axis is named twice in {axes}")
    return axes


@public
@decided_by_types
def squeeze(x: ArrayLike, axis: Axes = None) -> Variable:
    """Return `x` without the axes of extent one, or without those that `axis` names.

    Raises `ShapeError` if a given axis has another size.

    >>> pg.squeeze([[1.0, 2.0]])
    tensor([1., 2.])
    """
    value = lift(x)
    if axis is None:
        return reshape_to(value, tuple(n for n in value.shape if n != 1))
    axes = axes_of("squeeze", value, none_of_no_axes(value, axis))
    for a in axes:
        if value.shape[a] != 1:
            raise ShapeError(
                f"squeeze of {value.type}: axis {a} has extent {value.shape[a]}, not 1"
            )
    return reshape_to(value, tuple(n for i, n in enumerate(value.shape) if i not in axes))


@public
@decided_by_types
def expand_dims(x: ArrayLike, axis: int | Sequence[int]) -> Variable:
    """Return `x` with new axes of extent one at the places `axis` of the result.

    Raises `ShapeError` for invalid or repeated positions.

    >>> pg.unsqueeze([1.0, 2.0], 0)
    tensor([[1., 2.]])
    """
    value = lift(x)
    entries = entries_of(axis)
    ndim = value.ndim + len(entries)
    with prefix_errors(f"expand_dims of {value.type}"):
        places = [as_axis(a, ndim) for a in entries]
        if len(set(places)) != len(places):
            raise ShapeError(f"an axis is named twice in {tuple(places)}")
    extents = iter(value.shape)
    return reshape_to(value, tuple(1 if i in places else next(extents) for i in range(ndim)))


unsqueeze = functions["unsqueeze"] = expand_dims


@public
@decided_by_types
def tril(x: ArrayLike, k: int = 0) -> Variable:
    """Return the matrices in the last two axes with zeros above the diagonal `k`.

    A vector is repeated as the rows of a square, as NumPy does. Raises `ShapeError` for a 0-d
    array.

    >>> pg.tril([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 0.],
            [3., 4.]])
    """
    value = lift(x)
    return where(_lower_mask(value, "tril", require_integer("tril", k)), value, _zero(value))


@public
@decided_by_types
def triu(x: ArrayLike, k: int = 0) -> Variable:
    """Return the matrices in the last two axes with zeros below the diagonal `k`.

    A vector is repeated as the rows of a square, as NumPy does. Raises `ShapeError` for a 0-d
    array.

    >>> pg.triu([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [0., 4.]])
    """
    value = lift(x)
    return where(_lower_mask(value, "triu", require_integer("triu", k) - 1), _zero(value), value)


def _zero(x: Variable) -> bool | int:
    return False if x.dtype.kind == "b" else 0


def _lower_mask(x: Variable, name: str, k: int) -> Variable:
    """Return the mask of row + `k` >= column."""
    if x.ndim == 0:
        raise ShapeError(f"{name} of {x.type}: it takes an array of at least one axis")
    shape = (x.shape[-2:] * 2)[:2] if x.ndim == 1 else x.shape[-2:]
    return greater_equal(iota(shape, 0) + k, iota(shape, 1))
