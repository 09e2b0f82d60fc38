"""Random programs of arrays that come to be part by part, large enough to be made where they land.

Parts are functions of views of inputs, with gaps, backwards, transposed. They replace parts of
something: of zeros, of an input, of what was computed or built before. Results are some of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import le
from typing import Any, NamedTuple

import numpy as np
from program_draft import F32, F64, I32, I64, Choices

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import DTYPE_OF_NAME, DType, Shape, TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.logic import less, select
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import (
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
)

_STEPS = 14
_LARGEST = 12_000
_DTYPES = (F64, F64, F32, I64, I32, DTYPE_OF_NAME["c128"])
_SHAPES: tuple[Shape, ...] = (
    (9000,),
    (9000,),
    (6001,),
    (12_000,),
    (96, 80),
    (60, 131),
    (12, 24, 30),
    (7, 1000),
)
# Distances at which NumPy has loops of their own, and others.
_APART = (1, 1, 1, 2, 3, 4, 4, 8, 8, -1, -1, -2, -4, -8)
_NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5)

_OF_ONE: tuple[Callable[[Value], Any], ...] = (
    *[lambda x: e.neg(x)] * 3,
    lambda x: e.mul(x, x),
    lambda x: e.add(x, filled_constant(1, x.type)),
    lambda x: x,
    lambda x: e.sub(filled_constant(2, x.type), x),
)
_OF_REALS: tuple[Callable[[Value], Any], ...] = (
    lambda x: e.abs_(x),
    lambda x: e.maximum(x, filled_constant(1, x.type)),
    lambda x: select(less(x, filled_constant(0, x.type)), e.neg(x), x),
    lambda x: cumsum(x, axis=len(x.shape) - 1, reverse=False),
)
_OF_FLOATS: tuple[Callable[[Value], Any], ...] = (
    lambda x: e.sin(x),
    lambda x: e.exp(e.neg(x)),
    lambda x: e.tanh(x),
    lambda x: e.div(x, e.add(e.mul(x, x), filled_constant(1, x.type))),
    lambda x: e.sigmoid(x),
    lambda x: e.sqrt(e.abs_(x)),
)
_OF_TWO: tuple[Callable[[Value, Value], Any], ...] = (
    lambda x, y: e.add(x, y),
    lambda x, y: e.mul(x, y),
    lambda x, y: e.sub(y, x),
)


class _Pool(NamedTuple):
    """What there is: all values, and those that are large and whole."""

    values: list[Value]
    whole: list[Value]


@dataclass(frozen=True)
class PlacedProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 41, step)))

    @cached_property
    def count(self) -> int:
        return self.draw(0).below(_STEPS, 3)

    @cached_property
    def dtype(self) -> DType:
        found: DType = self.draw(1).choose(_DTYPES)
        return found

    @cached_property
    def graph(self) -> Graph:
        draw, builder = self.draw(2), Builder("f")
        with builder:
            shapes = [draw.choose(_SHAPES) for _ in range(draw.below(4, 1))]
            inputs = [builder.input(TensorType(s, self.dtype)) for s in shapes]
            pool = _Pool([*inputs], [*inputs])
            for step in range(self.count):
                if step not in self.left_out:
                    _step(self.draw(100 + step), pool, step)
            ends = [v for v in pool.whole if v not in inputs] or pool.whole
            last = [ends[-1], *(draw.choose(ends) for _ in range(draw.below(3)))]
            if draw.chance(0.3):
                last.append(draw.choose(pool.values))
        return builder.graph([last[i] for i in draw.order(len(last))])

    def feeds(self, number: int) -> list[np.ndarray]:
        """Numbers for the inputs, others for each `number`."""
        rng = np.random.default_rng((self.seed, 43, number))
        return [_numbers(rng, v.type) for v in self.graph.inputs]

    def __str__(self) -> str:
        return f"placed program {self.seed}, without {sorted(self.left_out)}\n{self.graph}"


def _numbers(rng: np.random.Generator, type: TensorType) -> np.ndarray:
    if type.dtype.kind in "iu":
        return rng.integers(-6, 7, type.shape).astype(type.dtype)
    found = rng.normal(size=type.shape)
    if type.dtype.kind == "c":
        return (found + 1j * rng.normal(size=type.shape)).astype(type.dtype)
    zeros = rng.choice(_NUMBERS, type.shape)
    return np.where(rng.random(type.shape) < 0.1, zeros, found).astype(type.dtype)


def _step(draw: Choices, pool: _Pool, step: int) -> None:
    kind = draw.below(10)
    if kind < 2:
        pool.values.append(_view(draw, draw.choose(pool.values)))
    elif kind < 4:
        pool.values.append(_function(draw, draw.choose(pool.values), pool))
    elif kind < 5:
        value = _function(draw, draw.choose(pool.whole), pool)
        pool.whole.append(value)
        pool.values.append(value)
    else:
        made = _built(draw, pool)
        pool.whole.append(made)
        pool.values.append(made)


def _function(draw: Choices, x: Value, pool: _Pool) -> Value:
    functions = [*_OF_ONE]
    if x.type.dtype.kind in "if":
        functions += _OF_REALS
    if x.type.is_float:
        functions += _OF_FLOATS
    alike = [v for v in pool.values if v.type == x.type]
    if alike and draw.chance(0.3):
        found: Value = draw.choose(_OF_TWO)(x, draw.choose(alike))
        return found
    found = draw.choose(functions)(x)
    return found


def _view(draw: Choices, x: Value) -> Value:
    """A view of `x`, in one of the ways in which there are such."""
    kind = draw.below(4)
    if kind == 0 and len(x.shape) > 1:
        return permute(x, axes=draw.order(len(x.shape)))
    if kind == 1:
        return reverse(x, axes=draw.subset(len(x.shape), 1))
    if kind == 2:
        return reshape(x, shape=(math.prod(x.shape),))
    steps = [draw.choose(_APART) for _ in x.shape]
    sizes = [max(n // abs(s), 1) for n, s in zip(x.shape, steps, strict=True)]
    return slice_(x, **_placed(draw, x.shape, sizes, steps), sizes=tuple(sizes))


def _placed(
    draw: Choices, shape: Shape, sizes: Sequence[int], steps: Sequence[int]
) -> dict[str, Shape]:
    """Where a slice of these sizes and steps begins in an array of that shape."""
    starts = []
    for n, size, step in zip(shape, sizes, steps, strict=True):
        length = (size - 1) * abs(step) + 1
        first = draw.below(n - length + 1)
        starts.append(first if step > 0 else first + length - 1)
    return {"starts": tuple(starts), "steps": tuple(steps)}


def _far(draw: Choices, extent: int, count: int) -> int:
    """A distance at which so many lie within the extent; often one that few arrays are long for."""
    steps = [s for s in _APART if (count - 1) * abs(s) < extent]
    large = [s for s in steps if abs(s) > 3]
    found: int = draw.choose(large if large and draw.chance(0.6) else steps)
    return found


def _fitted(draw: Choices, x: Value, shape: Shape) -> Value:
    """Elements of `x` as an array of that shape, a view where it is large enough."""
    if len(x.shape) == len(shape) and all(map(le, shape, x.shape)) and draw.chance(0.8):
        apart = [_far(draw, n, m) for n, m in zip(x.shape, shape, strict=True)]
        return slice_(x, sizes=tuple(shape), **_placed(draw, x.shape, shape, apart))
    total, count = math.prod(x.shape), math.prod(shape)
    flat = x if len(x.shape) == 1 else reshape(x, shape=(total,))
    if total < count:
        flat = concat(*[flat] * -(-count // total), axis=0)
        total = flat.shape[0]
    placed = _placed(draw, (total,), [count], [_far(draw, total, count)])
    part = slice_(flat, sizes=(count,), **placed)
    return part if len(shape) == 1 else reshape(part, shape=shape)


def _built(draw: Choices, pool: _Pool) -> Value:
    """Something whole of which part after part is replaced."""
    shape = draw.choose(pool.whole).shape if draw.chance(0.7) else draw.choose(_SHAPES)
    dtype = pool.values[0].type.dtype
    alike = [v for v in pool.whole if v.shape == shape]
    whole: Value
    if alike and draw.chance(0.5):
        whole = draw.choose(alike)
    else:
        whole = filled_constant(draw.choose((0, 1)), TensorType(shape, dtype))
    if draw.chance(0.15) and len(shape) == 1 and shape[0] < _LARGEST:
        whole = pad(whole, low=(draw.below(40),), high=(draw.below(40),))
        shape = whole.shape
    tiled = draw.chance(0.4)
    axis, number = draw.below(len(shape)), draw.below(5, 1)
    for k in range(number):
        if tiled:
            steps, sizes, starts = _tile(draw, shape, axis, k, number)
            where = {"starts": starts, "steps": steps}
        else:
            steps = tuple([draw.choose(_APART) for _ in shape])
            sizes = tuple(
                [
                    draw.below(max((n - 1) // abs(s) + 1, 1) + 1, 1)
                    for n, s in zip(shape, steps, strict=True)
                ]
            )
            where = _placed(draw, shape, sizes, steps)
        source = whole if draw.chance(0.1) else draw.choose(pool.values)
        part = _fitted(draw, source, sizes)
        if draw.chance(0.85):
            part = _function(draw, part, pool)
        if draw.chance(0.1):
            pool.values.append(part)
        whole = slice_assign(whole, part, **where)
        if draw.chance(0.1):
            pool.values.append(_view(draw, whole))
    return whole


def _tile(
    draw: Choices, shape: Shape, axis: int, k: int, number: int
) -> tuple[Shape, Shape, Shape]:
    """Part `k` of so many that are all there is: side by side, or every so many along an axis."""
    steps, sizes, starts = [1] * len(shape), [*shape], [0] * len(shape)
    extent = shape[axis]
    number = min(number, extent)
    if k < number:
        if draw.chance(0.5):
            sizes[axis], steps[axis], starts[axis] = -(-(extent - k) // number), number, k
        else:
            first, end = extent * k // number, extent * (k + 1) // number
            sizes[axis], starts[axis] = end - first, first
    if draw.chance(0.3):
        starts[axis] += (sizes[axis] - 1) * steps[axis]
        steps[axis] *= -1
    return tuple(steps), tuple(sizes), tuple(starts)
