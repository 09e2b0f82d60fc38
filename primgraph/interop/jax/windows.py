"""Rules of reductions over sliding windows, and of convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.interop.jax.elementwise import extremum_of_complex
from primgraph.interop.jax.rules import (
    Site,
    constant,
    convert,
    emit,
    permute,
    reshape,
    rule,
    sliced,
    spread,
)
from primgraph.interop.jax.segments import fold_axis
from primgraph.interop.jax.shapes import counted, padded
from primgraph.ir.types import BOOL, INT64, DType
from primgraph.operators.variable import Variable
from primgraph.primitives import indexing, logic, reductions, windows
from primgraph.primitives.linear_algebra.products import matmul


def _windowed(at: Site, x: Variable, value: Variable) -> Variable:
    """Return the windows of `x`, padded by a scalar: first axes of elements, then of windows."""
    if not x.ndim:
        return x
    dilation = at.params.get("base_dilation") or (1,) * x.ndim
    apart = at.params.get("window_dilation") or (1,) * x.ndim
    config = [(a, b, d - 1) for (a, b), d in zip(at["padding"], dilation, strict=True)]
    whole = padded(x, value, config)
    return emit(
        windows.windows, whole, axis=0, sizes=tuple(at["window_dimensions"]),
        steps=tuple(at["window_strides"]), dilations=tuple(apart),
    )  # fmt: skip


def _extreme_number(dtype: DType, largest: bool) -> Any:
    """Return the number that is below all others, or above all (`largest`)."""
    if dtype.kind == "b":
        return largest
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    info = np.iinfo(dtype)
    return info.max if largest else info.min


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window(at: Site, x: Variable) -> Variable:
    kind = at.name.removeprefix("reduce_window_")
    axes = tuple(range(x.ndim))
    if 0 in at.shape:
        return constant(0, at.dtype, at.shape)
    if kind == "sum":
        found = _windowed(at, x, constant(0, x.dtype))
        return emit(reductions.reduce_sum, found, axes=axes)
    if x.type.is_complex:
        first = complex(np.inf if kind == "min" else -np.inf, 0.0)
        rows = _in_rows(_windowed(at, x, constant(first, x.dtype)), x.ndim)
        return fold_axis(lambda a, b: [extremum_of_complex(a[0], b[0], kind == "max")], [rows], 0)[
            0
        ]
    value = convert(x, np.dtype("u1")) if x.dtype == BOOL else x
    number = _extreme_number(value.dtype, kind == "min")
    found = _windowed(at, value, constant(number, value.dtype))
    op = reductions.reduce_max if kind == "max" else reductions.reduce_min
    return convert(emit(op, found, axes=axes), x.dtype)


@rule("reduce_window")
def _reduce_window_by_function(at: Site, *operands: Variable) -> list[Variable]:
    count = len(operands) // 2
    xs, inits = operands[:count], operands[count:]
    if 0 in at.shape:
        return [constant(0, t.dtype, t.shape) for t in at.types]

    def combine(a: Sequence[Variable], b: Sequence[Variable]) -> list[Variable]:
        return at.evaluator.run_elements(at["jaxpr"], at["consts"], [*a, *b])

    rows = [
        reshape(w, (math.prod(w.shape[: w.ndim // 2]), *w.shape[w.ndim // 2 :]))
        for w in (_windowed(at, x, v) for x, v in zip(xs, inits, strict=True))
    ]
    starts = [spread(v, t.shape, ()) for v, t in zip(inits, at.types, strict=True)]
    return combine(starts, fold_axis(combine, rows, 0))


@rule("select_and_gather_add")
def _select_and_gather_add(at: Site, tangents: Variable, x: Variable) -> Variable:
    chosen = _chosen_elements(at, x)
    rows = _in_rows(_windowed(at, tangents, constant(0, x.dtype)), x.ndim)
    one_hot = emit(logic.equal, counted(rows.shape, 0), spread(chosen, rows.shape,
                                                               range(1, x.ndim + 1)))  # fmt: skip
    zero = constant(0, rows.dtype, rows.shape)
    return emit(reductions.reduce_sum, emit(logic.select, one_hot, rows, zero), axes=(0,))


@rule("select_and_scatter_add")
def _select_and_scatter_add(at: Site, source: Variable, x: Variable) -> Variable:
    """Add each element of `source` where its window has the extreme element."""
    chosen = _chosen_elements(at, x)
    shape = tuple([n + a + b for n, (a, b) in zip(x.shape, at["padding"], strict=True)])
    places = reshape(counted((math.prod(shape),), 0), shape)
    rows = _in_rows(_sliding(at, places), x.ndim)
    one_hot = emit(logic.equal, counted(rows.shape, 0), spread(chosen, rows.shape,
                                                               range(1, x.ndim + 1)))  # fmt: skip
    zero = constant(0, INT64, rows.shape)
    place = emit(reductions.reduce_sum, emit(logic.select, one_hot, rows, zero), axes=(0,))
    count = math.prod(source.shape)
    flat = emit(
        indexing.scatter_add, constant(0, source.dtype, (math.prod(shape),)),
        reshape(source, (count,)), reshape(place, (count,)), axis=0,
    )  # fmt: skip
    found = reshape(flat, shape)
    for axis, (low, _) in enumerate(at["padding"]):
        found = sliced(found, axis, low, x.shape[axis])
    return found


def _sliding(at: Site, x: Variable) -> Variable:
    return emit(
        windows.windows, x, axis=0, sizes=tuple(at["window_dimensions"]),
        steps=tuple(at["window_strides"]), dilations=(1,) * x.ndim,
    )  # fmt: skip


def _in_rows(found: Variable, rank: int) -> Variable:
    """Return windows with one axis of elements in front."""
    return reshape(found, (math.prod(found.shape[:rank]), *found.shape[rank:]))


def _chosen_elements(at: Site, x: Variable) -> Variable:
    """Return the number of the extreme element of each window."""
    smallest = str(at["select_prim"]) in ("le", "lt")
    number = _extreme_number(x.dtype, smallest)
    rows = _in_rows(_windowed(at, x, constant(number, x.dtype)), x.ndim)
    return emit(reductions.argmin if smallest else reductions.argmax, rows, axis=0)


# Convolutions: matrix products of weights with all windows.


@rule("conv_general_dilated")
def _conv_general_dilated(at: Site, x: Variable, w: Variable) -> Variable:
    numbers = at["dimension_numbers"]
    dtype = at.dtype
    left = convert(permute(x, numbers.lhs_spec), dtype)
    right = convert(permute(w, numbers.rhs_spec), dtype)
    batches, groups = at["batch_group_count"], at["feature_group_count"]
    if 0 in at.shape or 0 in x.shape or 0 in w.shape:
        return constant(0, dtype, at.shape)
    if batches > 1:
        # Groups of samples become groups of channels.
        n, c = left.shape[:2]
        parts = reshape(left, (batches, n // batches, *left.shape[1:]))
        order = (1, 0, *range(2, parts.ndim))
        left = reshape(permute(parts, order), (n // batches, batches * c, *left.shape[2:]))
        groups = batches
    found = _convolve(at, left, right, groups)
    return permute(found, np.argsort(numbers.out_spec).tolist())


def _convolve(at: Site, x: Variable, w: Variable, groups: int) -> Variable:
    """Convolve arrays with axes of samples and channels in front."""
    count = x.ndim - 2
    config = [(a, b, d - 1) for (a, b), d in zip(at["padding"], at["lhs_dilation"], strict=True)]
    placed = permute(x, (1, *range(2, x.ndim), 0))
    placed = padded(placed, constant(0, x.dtype), [(0, 0, 0), *config, (0, 0, 0)])
    columns = emit(
        windows.windows, placed, axis=1, sizes=w.shape[2:], steps=tuple(at["window_strides"]),
        dilations=tuple(at["rhs_dilation"]),
    ) if count else placed  # fmt: skip
    outputs, ends = w.shape[0], columns.shape[count + 1 :]
    inner, outer = math.prod(w.shape[1:]), math.prod(ends)
    stack = (groups,) if groups > 1 else ()
    rows = reshape(w, (*stack, outputs // groups, inner))
    product = emit(matmul, rows, reshape(columns, (*stack, inner, outer)))
    result = reshape(product, (outputs, *ends))
    return permute(result, (count + 1, 0, *range(1, count + 1)))
