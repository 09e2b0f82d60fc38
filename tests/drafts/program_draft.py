"""A random program in the making: choices, operands of given types, and what may be used.

The draft of a smooth program has feeds at which it is differentiable: every candidate is
evaluated, by a complex step, as soon as it is recorded, and what is infinite, steep or near a
kink is not used any further. A special draft is fed with zeros of both signs, infinities, NaNs
and ties instead, and uses whatever comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from complex_step import STEEPEST, STEP, apply, wide_type

from primgraph.errors import ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim, extent_at, size
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import DTYPE_OF_NAME, DType, Shape, TensorType
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import constant, filled_constant
from primgraph.primitives.elementwise import cast, maximum, minimum
from primgraph.primitives.logic import equal, select
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, pad, slice_

F64, F32, F16, I64, I32, U8, BOOL = (
    DTYPE_OF_NAME[n] for n in ("f64", "f32", "f16", "i64", "i32", "u8", "bool")
)
DTYPES = (F64, F32, F16, I64, I32, U8, BOOL)
_DTYPE_SHARES = (0.58, 0.12, 0.06, 0.08, 0.06, 0.04, 0.06)
_SIZE_SHARES = (0.04, 0.2, 0.26, 0.26, 0.14, 0.1)
_RANK_SHARES = (0.16, 0.28, 0.32, 0.16, 0.08)

# Shapes on both sides of sizes at which code is written in another way.
_AT_THRESHOLDS = 0.08
_THRESHOLDS = ((1,), (1, 1), (63,), (64,), (65,), (8, 8), (9, 7), (2, 33), (129,), (4, 4, 4))

# Extents of programs with sizes.
_EXTENTS = (size("N"), size("N"), size("M"), size("N") + 1, 2 * size("N"), size("M").max(2))
_OF_SIZES = 0.5

LARGEST = 300
_HUGE = 1e3
_REPEATED = 0.35

_PLAIN = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 0.1, 3.7, -1.5)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan)
_EXTREME = (5e-324, 1e-40, 1e308, 65504.0, 1e-7, 1e-200, -1e-200, -1e-30)
_FED = (*_SPECIAL, 1e-200, -1e-200, 1e-30, -1e-30)


class Unfit(Exception):
    """A production that the values at hand do not allow."""


class Choices:
    """What is drawn at random, the same for the same seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def choose(self, options: Sequence[Any], shares: Sequence[float] | None = None) -> Any:
        return options[int(self.rng.choice(len(options), p=shares))]

    def below(self, count: int, start: int = 0) -> int:
        return int(self.rng.integers(start, count))

    def subset(self, count: int, least: int = 0) -> tuple[int, ...]:
        """Some of `range(count)`, in order."""
        size = self.below(count + 1, min(least, count))
        return tuple(sorted(int(i) for i in self.rng.permutation(count)[:size]))

    def order(self, count: int) -> tuple[int, ...]:
        return tuple(int(i) for i in self.rng.permutation(count))


class Draft(Choices):
    """A program in the making: what has been recorded, and which values may be used."""

    def __init__(
        self, rng: np.random.Generator, smooth: bool, sizes: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(rng)
        self.smooth = smooth
        # What sizes are in feeds; there are none without.
        self.sizes = dict(sizes or {})
        self.builder = Builder("f")
        self.builder.written = True
        self.feeds: list[np.ndarray] = []
        self.pool: list[Value] = []
        self.last: Value | None = None
        self.known: dict[Value, np.ndarray] = {}
        self.held: dict[Value, np.ndarray] = {}
        self.kinked: set[Value] = set()
        # What cannot be computed at the sizes of feeds.
        self.unfit: set[Value] = set()
        # How deep branches and loops may be in each other, and what they are drafted in.
        self.depth = 0
        self.around: Draft | None = None
        self.settled = 0
        self.tried = 0
        self.dropped = 0
        self.refused = 0

    # Choices.

    def dtype(self) -> DType:
        return self.choose(DTYPES, _DTYPE_SHARES)

    def shape(self, lowest: int = 0, highest: int = 4) -> Shape:
        if self.chance(_AT_THRESHOLDS):
            fits = [s for s in _THRESHOLDS if lowest <= len(s) <= highest]
            if fits:
                return self.choose(fits)
        rank = min(max(self.choose(range(5), _RANK_SHARES), lowest), highest)
        shape = tuple(self.choose(range(6), _SIZE_SHARES) for _ in range(rank))
        if self.sizes:
            shape = tuple(
                self.choose(_EXTENTS) if self.chance(_OF_SIZES) else max(n, 1) for n in shape
            )
        return shape if math.prod(self.at(shape)) <= LARGEST else self.shape(lowest, highest)

    def at(self, shape: Sequence[int]) -> Shape:
        """The numbers of these extents in feeds."""
        return tuple([extent_at(n, self.sizes) for n in shape])

    # Operands.

    def pick(
        self, kinds: str = "biuf", test: Callable[[Value], bool] = lambda v: True, rank: int = 0
    ) -> Value:
        """A value of the pool, often the one picked before, else more likely a late one."""

        def fits(value: Value) -> bool:
            return value.dtype.kind in kinds and len(value.shape) >= rank and test(value)

        if self.last is not None and self.chance(_REPEATED) and fits(self.last):
            return self.last
        found = [v for v in self.pool if fits(v)]
        if not found:
            raise Unfit
        self.last = found[max(self.below(len(found)), self.below(len(found)))]
        return self.last

    def like(self, value: Value) -> Value:
        """Another operand of the same type: the same one, one at hand, or one made to fit."""
        return value if self.chance(_REPEATED) else self.typed(value.type)

    def typed(self, type: TensorType) -> Value:
        found = [v for v in self.pool if v.type == type]
        if found and self.chance(0.6):
            return self.choose(found)
        if self.chance(0.3):
            return self.constant(type)
        if self.sizes:
            return self.spread(type)
        return self.resized(self.converted(self.pick(), type.dtype), type.shape)

    def spread(self, type: TensorType) -> Value:
        """A value of that shape in another dtype, or the sum of any value in each element."""
        found = [v for v in self.pool if v.type.with_dtype(type.dtype) is type]
        if found:
            return self.converted(self.choose(found), type.dtype)
        value = self.converted(self.pick("iuf"), type.dtype if type.dtype != BOOL else I64)
        value = reduce_sum(value, axes=tuple(range(len(value.shape))))
        if type.dtype == BOOL:
            value = cast(value, dtype=BOOL)
        return broadcast(value, shape=type.shape, new_axes=tuple(range(len(type.shape))))

    def constant(self, type: TensorType) -> Value:
        if type.names or self.chance(0.5):
            return filled_constant(self.number(type.dtype), type)
        return constant(value=self.array(type, self.smooth))

    def number(self, dtype: DType) -> Any:
        if dtype.kind in "iu":
            return self.below(5, 0 if dtype.kind == "u" else -4)
        if dtype.kind == "b":
            return self.chance(0.5)
        return self.choose(_PLAIN if self.smooth else (*_PLAIN, *_SPECIAL, *_EXTREME))

    def array(self, type: TensorType, smooth: bool) -> np.ndarray:
        """Elements for a feed or a constant."""
        rng, shape, dtype = self.rng, self.at(type.shape), type.dtype
        with np.errstate(all="ignore"):
            if dtype.kind == "b":
                return np.asarray(rng.random(shape) < 0.5)
            if dtype.kind in "iu":
                low = -4 if dtype.kind == "i" else 0
                found = np.asarray(rng.integers(low, 5, shape)).astype(dtype)
                limits = np.iinfo(dtype)
                extreme = rng.choice(np.array([limits.min, limits.max], dtype), shape)
                return found if smooth else np.where(rng.random(shape) < 0.2, extreme, found)
            if smooth:
                return np.asarray(rng.normal(0, self.choose((0.3, 1, 3)), shape)).astype(dtype)
            return np.asarray(rng.choice(_FED, shape)).astype(dtype)

    def converted(self, value: Value, dtype: DType) -> Value:
        """`value` cast to `dtype`; numbers that an integer cannot hold are moved inside first."""
        if value.dtype == dtype:
            return value
        if value.dtype.kind == "f" and dtype.kind in "iu":
            value = self.bounded(value, 0 if dtype.kind == "u" else -100, 100)
        return cast(value, dtype=dtype)

    def bounded(self, value: Value, low: float, high: float) -> Value:
        """`value` with NaN replaced by `low`, limited to an interval."""
        limits = [filled_constant(n, value.type) for n in (low, high)]
        if value.dtype.kind == "f":
            value = select(equal(value, value), value, limits[0])
        return minimum(maximum(value, limits[0]), limits[1])

    def resized(self, value: Value, shape: Shape) -> Value:
        """`value` in another shape: axes dropped or repeated, then cut or padded with zeros."""
        while len(value.shape) > len(shape):
            axis = self.below(len(value.shape))
            if value.shape[axis] == 0 or value.dtype == BOOL:
                value = self.constant(TensorType(drop(value.shape, axis), value.dtype))
            else:
                value = reduce_sum(value, axes=(axis,))
        if len(value.shape) < len(shape):
            new = sorted(self.order(len(shape))[: len(shape) - len(value.shape)])
            old = iter(value.shape)
            grown = tuple(n if i in new else next(old) for i, n in enumerate(shape))
            value = broadcast(value, shape=grown, new_axes=tuple(new))
        cut = tuple(min(a, b) for a, b in zip(value.shape, shape, strict=True))
        if cut != value.shape:
            zeros = (0,) * len(cut)
            value = slice_(value, starts=zeros, sizes=cut, steps=(1,) * len(cut))
        if cut != shape:
            low = tuple(self.below(b - a + 1) for a, b in zip(cut, shape, strict=True))
            high = tuple(b - a - n for a, b, n in zip(cut, shape, low, strict=True))
            value = pad(value, low=low, high=high)
        return value

    def variable(self, value: Value) -> Variable:
        """`value` as users have it, which may be one of a program around."""
        owner: Draft = self
        while value not in owner.builder and owner.around is not None:
            owner = owner.around
        return Variable(owner.builder, value)

    def inside(
        self, builder: Builder, given: Sequence[Value], starts: Sequence[np.ndarray | None]
    ) -> Draft:
        """The draft of a body in `builder`, which takes `given`, with these numbers at first.

        It may use some of the values that this one has, too.
        """
        self.settle()
        inner = Draft(self.rng, self.smooth, self.sizes)
        inner.builder, inner.around, inner.depth = builder, self, self.depth - 1
        count = self.below(4, min(1 if given else 2, len(self.pool)))
        inner.pool = [self.choose(self.pool[-8:]) for _ in range(count)] + list(given)
        inner.known = dict(self.known)
        inner.known.update({v: x for v, x in zip(given, starts, strict=True) if x is not None})
        return inner

    # Growth.

    def input(self, type: TensorType) -> None:
        value = self.builder.input(type, f"x{len(self.feeds)}")
        array = self.array(type, self.smooth)
        self.feeds.append(array)
        if self.smooth:
            wide = array.astype(wide_type(type).dtype)
            moved = 1j * STEP * self.rng.normal(size=array.shape) if type.is_float else 0
            self.known[value] = wide + moved if type.is_float else wide
        self.pool.append(value)

    def take(self, values: Sequence[Value]) -> None:
        """Evaluate what is new, and put those of `values` that are of any use into the pool."""
        self.settle()
        for value in values:
            self.tried += 1
            if value in self.unfit or not self.is_usable(value):
                self.dropped += 1
            elif value not in self.pool:
                self.pool.append(value)

    def settle(self) -> None:
        """Evaluate what has been recorded since the last time."""
        recorded, self.settled = self.builder.body[self.settled :], len(self.builder.body)
        new = [eqn for eqn in recorded if self.fits_feeds(eqn)]
        if not self.smooth:
            return
        self.known |= {v: self.known[w] for w, v in self.builder.captured.items()}
        for eqn in new:
            if eqn.op.own_slope:
                value = eqn.inputs[0]
                self.known[eqn.output] = self.held.get(value, self.known[value])
                continue
            if eqn.op.stops:
                self.held[eqn.output] = self.known[eqn.inputs[0]]
            given = [self.known[v] for v in eqn.inputs]
            results, fine = apply(self.in_feeds(eqn), given)
            self.known.update(zip(eqn.outputs, results, strict=True))
            if not fine or not self.kinked.isdisjoint(eqn.inputs):
                self.kinked.update(eqn.outputs)

    def fits_feeds(self, eqn: Equation) -> bool:
        """Whether what an equation assumes of sizes holds in feeds, as a shift within an extent."""
        if not self.sizes:
            return True
        try:
            self.in_feeds(eqn)
        except ShapeError:
            self.unfit.update(eqn.outputs)
        if not self.unfit.isdisjoint(eqn.inputs):
            self.unfit.update(eqn.outputs)
        return self.unfit.isdisjoint(eqn.outputs)

    def in_feeds(self, eqn: Equation) -> Equation:
        """The equation with numbers in the place of sizes."""
        if not self.sizes:
            return eqn
        alone = Graph(list(dict.fromkeys(eqn.inputs)), [eqn], eqn.outputs, eqn.op.name)
        (found,) = specialize_graph(alone, self.sizes).body
        return found

    def is_usable(self, value: Value) -> bool:
        if math.prod(self.at(value.shape)) > LARGEST or len(value.shape) > 5:
            return False
        if not self.smooth:
            return True
        found = self.known[value]
        if value in self.kinked or not np.all(np.isfinite(found)):
            return False
        if not value.type.is_float:
            return True
        steepest = np.max(np.abs(found.imag), initial=0)
        return bool(np.max(np.abs(found.real), initial=0) < _HUGE and steepest < STEEPEST * STEP)

    def outputs(self) -> list[Value]:
        """One to four values, late ones first of all; inputs, constants and duplicates too."""
        recent = self.pool[len(self.feeds) :][-6:] or self.pool
        floats = [v for v in recent if v.type.is_float]
        found = [self.choose(floats or recent)]
        for _ in range(self.below(4)):
            found.append(self.choose(recent if self.chance(0.7) else self.pool))
        if self.chance(0.25):
            found.append(self.choose(found))
        return [found[i] for i in self.order(len(found))]


def same_extent(one: int, other: int) -> bool:
    """Whether two extents are equal for all sizes."""
    return one is other or (
        not isinstance(one, Dim) and not isinstance(other, Dim) and one == other
    )


def drop(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])
