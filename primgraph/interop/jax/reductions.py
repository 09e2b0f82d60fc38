"""Rules of reductions, running reductions, sorting and searching along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from primgraph.interop.jax.elementwise import extremum_of_complex
from primgraph.interop.jax.rules import (
    Site,
    convert,
    emit,
    full_like,
    permute,
    reshape,
    rule,
    sliced,
    spread,
)
from primgraph.interop.jax.segments import fold_axis
from primgraph.ir.types import BOOL
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import bits, logic, reductions, running, shapes, sorting
from primgraph.primitives import elementwise as e

_REDUCTIONS = {
    "reduce_sum": reductions.reduce_sum,
    "reduce_prod": reductions.reduce_prod,
    "reduce_max": reductions.reduce_max,
    "reduce_min": reductions.reduce_min,
}


@rule(*_REDUCTIONS)
def _reduce(at: Site, x: Variable) -> Variable:
    axes = tuple(sorted(at["axes"]))
    if x.dtype == BOOL:
        every = at.name in ("reduce_min", "reduce_prod")
        return _reduce_truth("all" if every else "any", x, axes)
    if x.type.is_complex and at.name in ("reduce_max", "reduce_min"):
        largest = at.name == "reduce_max"
        return _fold(lambda a, b: [extremum_of_complex(a[0], b[0], largest)], [x], axes)[0]
    return emit(_REDUCTIONS[at.name], x, axes=axes) if axes else x


def _reduce_truth(name: str, x: Variable, axes: tuple[int, ...]) -> Variable:
    found: Variable = call_named(name, x, axis=axes)
    return found


@rule("reduce_and", "reduce_or", "reduce_xor")
def _reduce_bits(at: Site, x: Variable) -> Variable:
    axes = tuple(sorted(at["axes"]))
    name = at.name.removeprefix("reduce_")
    if x.dtype == BOOL and name != "xor":
        return _reduce_truth({"and": "all", "or": "any"}[name], x, axes)
    op = {"and": bits.bitwise_and, "or": bits.bitwise_or, "xor": bits.bitwise_xor}[name]
    if x.dtype == BOOL:
        op = logic.logical_xor
    return _fold(lambda a, b: [emit(op, a[0], b[0])], [x], axes)[0]


def _fold(
    combine: Callable[..., Any], xs: Sequence[Variable], axes: Sequence[int]
) -> list[Variable]:
    """Fold arrays along axes, joined to one, by a function of lists of arrays."""
    rest = [a for a in range(xs[0].ndim) if a not in axes]
    joined = [permute(x, (*rest, *axes)) for x in xs]
    shape = [xs[0].shape[a] for a in rest]
    rows = [reshape(x, (*shape, -1 if not axes else _product(xs[0].shape[a] for a in axes)))
            for x in joined]  # fmt: skip
    return fold_axis(combine, rows, len(shape))


def _product(sizes: Any) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


@rule("reduce")
def _reduce_by_function(at: Site, *operands: Variable) -> list[Variable]:
    """Fold by any associative function of JAX, and combine the result with the first values."""
    count = len(operands) // 2
    xs, inits = operands[:count], operands[count:]
    closed = at["jaxpr"]

    def combine(a: Sequence[Variable], b: Sequence[Variable]) -> list[Variable]:
        return at.evaluator.run_elements(closed, (), [*a, *b])

    axes = tuple(sorted(at["dimensions"]))
    starts = [spread(v, t.shape, ()) for v, t in zip(inits, at.types, strict=True)]
    if any(xs[0].shape[a] == 0 for a in axes):
        return starts
    return combine(starts, _fold(combine, xs, axes) if axes else xs)


@rule("argmax", "argmin")
def _argument(at: Site, x: Variable) -> Variable:
    (axis,) = at["axes"]
    value = convert(x, np.dtype("u1")) if x.dtype == BOOL else x
    op = reductions.argmax if at.name == "argmax" else reductions.argmin
    return convert(emit(op, value, axis=axis), at.dtype)


# Running reductions.


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _running(at: Site, x: Variable) -> Variable:
    axis, backward = at["axis"], at["reverse"]
    if at.name == "cumsum":
        return emit(reductions.cumsum, x, axis=axis, reverse=backward)
    value = emit(shapes.reverse, x, axes=(axis,)) if backward else x
    found = _run_forward(at.name, value, axis)
    return emit(shapes.reverse, found, axes=(axis,)) if backward else found


def _run_forward(name: str, x: Variable, axis: int) -> Variable:
    if name == "cumlogsumexp":
        found: Variable = call_named("logcumsumexp", x, axis=axis)
        return found
    if x.type.is_complex and name != "cumprod":
        return _prefixes(partial(extremum_of_complex, largest=name == "cummax"), x, axis)
    ops = {"cumprod": running.cumprod, "cummax": running.cummax, "cummin": running.cummin}
    return emit(ops[name], x, axis=axis)


def _prefixes(combine: Callable[[Any, Any], Variable], x: Variable, axis: int) -> Variable:
    """Return the folds of all elements up to each one, by doubled distances."""
    found, step, size = x, 1, x.shape[axis]
    while step < size:
        rest = size - step
        joined = combine(sliced(found, axis, 0, rest), sliced(found, axis, step, rest))
        found = emit(shapes.concat, sliced(found, axis, 0, step), joined, axis=axis)
        step *= 2
    return found


# Sorting.


@rule("sort")
def _sort(at: Site, *operands: Variable) -> list[Variable]:
    axis = at["dimension"]
    if len(operands) == 1 and operands[0].dtype != BOOL:
        return [emit(sorting.sort, operands[0], axis=axis)]
    order: Variable | None = None
    for key in reversed(operands[: at["num_keys"]]):
        value = convert(key, np.dtype("u1")) if key.dtype == BOOL else key
        if order is None:
            order = emit(sorting.argsort, value, axis=axis)
        else:
            again = emit(sorting.argsort, _reordered(value, order, axis), axis=axis)
            order = _reordered(order, again, axis)
    assert order is not None
    return [_reordered(x, order, axis) for x in operands]


def _reordered(x: Variable, order: Variable, axis: int) -> Variable:
    return emit(sorting.reorder, x, order, axis=axis)


@rule("top_k", "approx_top_k")
def _top_k(at: Site, x: Variable) -> list[Variable]:
    axis = at.params.get("axis", at.params.get("reduction_dimension"))
    axis, count = axis % x.ndim, at["k"]
    if at.params.get("is_max_k", True):
        # Of equal elements the first one comes first.
        turned = emit(sorting.argsort, emit(shapes.reverse, x, axes=(axis,)), axis=axis)
        last = emit(shapes.reverse, turned, axes=(axis,))
        order = emit(e.sub, full_like(last, x.shape[axis] - 1), last)
    else:
        order = emit(sorting.argsort, x, axis=axis)
    chosen = sliced(order, axis, 0, count)
    found = call_named("take_along_axis", x, chosen, axis=axis)
    return [found, convert(chosen, at.types[1].dtype)]
