"""Rules of `simplify` for reshapes, permutations, broadcasts, reversals and padding.

All are exact, as no element changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives.constants import filled_constant, full
from primgraph.primitives.elementwise import as_function_of
from primgraph.primitives.shapes import broadcast, pad, permute, reshape, reverse, slice_
from primgraph.transforms.rewrite.rule import Family, Seen, is_zero

VIEWS = Family(any_dtype=True)
_rule = VIEWS.rule


@_rule(reshape, permute, broadcast, reverse, slice_, at=(full,))
def _move_uniform(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a moved uniform array into a uniform array."""
    scalar = seen.uniform(inputs[0])
    return None if scalar is None else filled_constant(scalar, seen.type)


@_rule(as_function_of)
def _as_function_of(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop `as_function_of`, which affects derivatives only."""
    return inputs[0]


@_rule(pad)
def _pad_of_zeros(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Fold zero padding of zeros."""
    scalar = seen.scalar(inputs[0])
    return filled_constant(0, seen.type) if is_zero(scalar, 1.0) else None


def reshape_to(x: Value, shape: tuple[int, ...]) -> Value:
    return reshape(x, shape=shape)


@_rule(reshape)
def _reshape(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a reshape to the same shape, and merge nested reshapes."""
    (x,), shape = inputs, params["shape"]
    if x.shape == shape:
        return x
    inner = seen.inside(reshape, x)
    if inner is None or inner.shape == shape:
        return inner
    return reshape_to(inner, shape)


@_rule(reshape, of=(pad,))
def _reshape_of_pad(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop axes of size 1 below the padding."""
    inner, whole = seen.made_by(pad, inputs[0]), inputs[0].shape
    kept = [a for a, n in enumerate(whole) if n != 1]
    if inner is None or params["shape"] != tuple([whole[a] for a in kept]):
        return None
    sizes = tuple([inner.inputs[0].shape[a] for a in kept])
    if prod(sizes) != inner.inputs[0].type.size:
        # The axis of size 1 is all padding.
        return None
    part = reshape_to(inner.inputs[0], sizes)
    low, high = (tuple([inner.kwargs[name][a] for a in kept]) for name in ("low", "high"))
    return pad(part, low=low, high=high)


@_rule(reshape, of=(broadcast, permute))
def _reshape_of_move(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn broadcasts and permutations that only move axes of size 1 into reshapes."""
    (x,), shape = inputs, params["shape"]
    eqn = seen.made_by(broadcast, x)
    if eqn is not None:
        small = eqn.inputs[0]
        return reshape_to(small, shape) if small.type.size == x.type.size else None
    eqn = seen.made_by(permute, x)
    if eqn is None:
        return None
    moved = [a for a in eqn.kwargs["axes"] if eqn.inputs[0].shape[a] != 1]
    return reshape_to(eqn.inputs[0], shape) if moved == sorted(moved) else None


@_rule(reshape, of=(broadcast,))
def _reshape_of_repeated(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Add or remove axes of size 1 before elements are broadcast."""
    (x,), shape = inputs, params["shape"]
    eqn = seen.made_by(broadcast, x)
    if eqn is None or [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    (small,), new = eqn.inputs, eqn.kwargs["new_axes"]
    long = iter([a for a, n in enumerate(x.shape) if n != 1])
    repeating = [a for a, n in enumerate(shape) if n == 1 or next(long) in new]
    kept = tuple(n for a, n in enumerate(shape) if a not in repeating)
    return repeat_axes(reshape_to(small, kept), shape, repeating)


@_rule(reshape, of=(permute,))
def _reshape_of_permute(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Reshape before a permutation if the reshape only joins axes that were adjacent before.

    Transposed arrays then stay views: of `x[i, j, k]`, the matrix of `(k, i)` and `j` is copied,
    but that of `k` and `(i, j)` is a transpose.
    """
    eqn, shape = seen.made_by(permute, inputs[0]), params["shape"]
    if eqn is None or seen.type.size == 0:
        return None
    (x,), axes = eqn.inputs, eqn.kwargs["axes"]
    groups = _joined_axes([x.shape[a] for a in axes], shape)
    if groups is None:
        return None
    # Axes of size 1 are ignored.
    place = {a: i for i, a in enumerate(a for a, n in enumerate(x.shape) if n != 1)}
    parts = [[place[axes[k]] for k in group] for group in groups]
    if any(b != a + 1 for part in parts for a, b in pairwise(part)):
        return None
    order = sorted(range(len(parts)), key=lambda k: parts[k][:1] or [0])
    joined = reshape_to(x, tuple(shape[k] for k in order))
    return permute_axes(joined, [order.index(k) for k in range(len(shape))])


def _joined_axes(source: Sequence[int], shape: Sequence[int]) -> list[list[int]] | None:
    """Return the axes of `source` that each axis of `shape` joins, in order; None if it splits one.

    Axes of size 1 join nothing, and are not joined.
    """
    groups: list[list[int]] = []
    waiting = iter([k for k, n in enumerate(source) if n != 1])
    for extent in shape:
        group, size = [], 1
        while size < extent and (k := next(waiting, None)) is not None:
            group.append(k)
            size *= source[k]
        if size != extent:
            return None
        groups.append(group)
    return groups if next(waiting, None) is None else None


@_rule(permute)
def _permute(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop an identity permutation, and merge nested permutations."""
    (x,), axes = inputs, params["axes"]
    if list(axes) == sorted(axes):
        return x
    inner = seen.made_by(permute, x)
    if inner is None:
        return None
    return permute_axes(inner.inputs[0], [inner.kwargs["axes"][a] for a in axes])


def permute_axes(x: Value, axes: Sequence[int]) -> Value:
    return permute(x, axes=tuple(axes))


@_rule(permute, of=(broadcast,))
def _permute_of_broadcast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Sink a broadcast below the permutation."""
    inner = seen.made_by(broadcast, inputs[0])
    if inner is None:
        return None
    axes, new = params["axes"], inner.kwargs["new_axes"]
    old = [a for a in range(len(axes)) if a not in new]
    order = [old.index(a) for a in axes if a not in new]
    return repeat_axes(
        permute_axes(inner.inputs[0], order),
        seen.type.shape,
        [i for i, a in enumerate(axes) if a in new],
    )


def repeat_axes(x: Value, shape: tuple[int, ...], new_axes: Sequence[int]) -> Value:
    return broadcast(x, shape=shape, new_axes=tuple(sorted(new_axes)))


@_rule(broadcast)
def _broadcast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a broadcast along no axis, turn one along single elements into a reshape, and merge."""
    new_axes, shape = params["new_axes"], params["shape"]
    if not new_axes:
        return inputs[0]
    if all(type(shape[a]) is int and shape[a] == 1 for a in new_axes):
        return reshape_to(inputs[0], shape)
    inner = seen.made_by(broadcast, inputs[0])
    if inner is None:
        return None
    old = [i for i in range(len(shape)) if i not in new_axes]
    both = (*new_axes, *(old[a] for a in inner.kwargs["new_axes"]))
    return repeat_axes(inner.inputs[0], shape, both)


@_rule(reverse)
def _reverse(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop reversals along axes of size at most 1, and merge nested reversals."""
    (x,), axes = inputs, params["axes"]
    turning = [a for a in axes if x.shape[a] > 1]
    if len(turning) < len(axes):
        return reverse_axes(x, turning)
    inner = seen.made_by(reverse, x)
    if inner is None:
        return None
    return reverse_axes(inner.inputs[0], set(axes) ^ set(inner.kwargs["axes"]))


def reverse_axes(x: Value, axes: Sequence[int] | set[int]) -> Value:
    """Return `x` reversed along `axes`, or `x` if there are none."""
    if not axes:
        return x
    return reverse(x, axes=tuple(sorted(axes)))


@_rule(reverse)
def _reverse_of_broadcast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop reversals along broadcast axes."""
    inner = seen.made_by(broadcast, inputs[0])
    if inner is None:
        return None
    shape, new = inner.kwargs["shape"], inner.kwargs["new_axes"]
    old = [a for a in range(len(shape)) if a not in new]
    axes = [old.index(a) for a in params["axes"] if a not in new]
    return repeat_axes(reverse_axes(inner.inputs[0], axes), shape, new)


@_rule(pad)
def _pad(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop empty padding, and merge nested padding."""
    (x,), low, high = inputs, params["low"], params["high"]
    if not any(low) and not any(high):
        return x
    inner = seen.made_by(pad, x)
    if inner is None:
        return None
    before = tuple(a + b for a, b in zip(low, inner.kwargs["low"], strict=True))
    behind = tuple(a + b for a, b in zip(high, inner.kwargs["high"], strict=True))
    return pad(inner.inputs[0], low=before, high=behind)
