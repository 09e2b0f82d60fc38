"""Rules of shapes: broadcasting, slices, joining, padding and counting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.interop.jax.rules import (
    Site,
    concatenated,
    constant,
    convert,
    emit,
    permute,
    reshape,
    rule,
    sliced,
    spread,
    stacked,
)
from primgraph.ir.builder import Builder
from primgraph.ir.rebuild import full_value
from primgraph.ir.types import BOOL, Shape, larger
from primgraph.operators.variable import Variable
from primgraph.primitives import constants, shapes


@rule("broadcast_in_dim")
def _broadcast_in_dim(at: Site, x: Variable) -> Variable:
    return spread(x, at["shape"], at["broadcast_dimensions"])


@rule("broadcast_to")
def _broadcast_to(at: Site, x: Variable) -> Variable:
    return spread(x, at.shape, range(len(at.shape) - x.ndim, len(at.shape)))


@rule("reshape")
def _reshape(at: Site, x: Variable) -> Variable:
    order = at["dimensions"]
    return reshape(x if order is None else permute(x, order), at["new_sizes"])


@rule("squeeze", "expand_dims")
def _reshape_to_result(at: Site, x: Variable) -> Variable:
    return reshape(x, at.shape)


@rule("transpose")
def _transpose(at: Site, x: Variable) -> Variable:
    return permute(x, at["permutation"])


@rule("rev")
def _rev(at: Site, x: Variable) -> Variable:
    axes = tuple(sorted(at["dimensions"]))
    return emit(shapes.reverse, x, axes=axes) if axes else x


@rule("concatenate")
def _concatenate(at: Site, *parts: Variable) -> Variable:
    return concatenated(parts, at["dimension"])


@rule("stack")
def _stack(at: Site, *parts: Variable) -> Variable:
    return stacked(parts, at["axis"])


@rule("unstack")
def _unstack(at: Site, x: Variable) -> list[Variable]:
    axis = at["axis"]
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [reshape(sliced(x, axis, i, 1), rest) for i in range(len(at.types))]


@rule("tile")
def _tile(at: Site, x: Variable) -> Variable:
    reps = at["reps"]
    shape = [n for both in zip(reps, x.shape, strict=True) for n in both]
    return reshape(spread(x, shape, range(1, 2 * x.ndim, 2)), at.shape)


@rule("split")
def _split(at: Site, x: Variable) -> list[Variable]:
    found, start = [], 0
    for size in at["sizes"]:
        found.append(sliced(x, at["axis"], start, size))
        start += size
    return found


@rule("slice")
def _slice(at: Site, x: Variable) -> Variable:
    steps = at["strides"] or (1,) * x.ndim
    return emit(
        shapes.slice_, x, starts=tuple(at["start_indices"]), sizes=at.shape, steps=tuple(steps)
    )


@rule("iota")
def _iota(at: Site, *sizes: Variable) -> Variable:
    if at.dtype in (np.dtype("i8"), np.dtype("i4")) or at.dtype.kind == "f":
        return emit(constants.iota, shape=at.shape, axis=at["dimension"], dtype=at.dtype)
    counted = emit(constants.iota, shape=at.shape, axis=at["dimension"], dtype=np.dtype("i8"))
    return convert(counted, at.dtype)


@rule("pad")
def _pad(at: Site, x: Variable, value: Variable) -> Variable:
    return padded(x, value, at["padding_config"])


def padded(x: Variable, value: Variable, config: Sequence[tuple[int, int, int]]) -> Variable:
    """Return `x` with (low, high, interior) copies of a scalar along each axis.

    Negative widths remove elements.
    """
    if all(inner == 0 for _, _, inner in config):
        return _cut(_grown(x, value, config), config)
    extents = [
        n + larger(n - 1, 0) * inner for n, (_, _, inner) in zip(x.shape, config, strict=True)
    ]
    low = [max(a, 0) for a, _, _ in config]
    shape = tuple([
        n + a + max(b, 0) for n, a, (_, b, _) in zip(extents, low, config, strict=True)
    ])  # fmt: skip
    steps = tuple([inner + 1 for _, _, inner in config])
    whole = spread(value, shape, ())
    return _cut(emit(shapes.slice_assign, whole, x, starts=tuple(low), steps=steps), config)


def _grown(x: Variable, value: Variable, config: Sequence[tuple[int, int, int]]) -> Variable:
    low, high = (tuple([max(c[k], 0) for c in config]) for k in (0, 1))
    if not any(low) and not any(high):
        return x
    recorder = value.recorder
    number = full_value(recorder, value.value) if isinstance(recorder, Builder) else None
    if number == 0 and not (x.dtype.kind == "f" and np.signbit(number)):
        return emit(shapes.pad, x, low=low, high=high)
    shape = tuple([a + n + b for a, n, b in zip(low, x.shape, high, strict=True)])
    whole = spread(value, shape, ())
    return emit(shapes.slice_assign, whole, x, starts=low, steps=(1,) * x.ndim)


def _cut(x: Variable, config: Sequence[tuple[int, int, int]]) -> Variable:
    """Remove elements at the ends with negative widths."""
    starts = tuple([max(-low, 0) for low, _, _ in config])
    ends = [max(-high, 0) for _, high, _ in config]
    if not any(starts) and not any(ends):
        return x
    sizes = tuple([
        larger(n - a - b, 0) for n, a, b in zip(x.shape, starts, ends, strict=True)
    ])  # fmt: skip
    if 0 in sizes:
        return constant(False if x.dtype == BOOL else 0, x.dtype, sizes)
    return emit(shapes.slice_, x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)


def counted(shape: Shape, axis: int) -> Variable:
    """Return the index along an axis, as an array of this shape."""
    return emit(constants.iota, shape=shape, axis=axis, dtype=np.dtype("i8"))
