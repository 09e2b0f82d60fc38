"""Random programs of arrays some of whose elements have infinite slopes, and of what is beside.

Parts, some of them partial functions at singular operands, are joined to one array and moved
about. Its elements are built a second time, each from single numbers alone, and differentiated
alone: that is the oracle, in which nothing can reach what it should not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import add, mul
from typing import Any

import numpy as np
from program_draft import Choices

import primgraph as pg

_PARTS = 4
_STEPS = 4
_LARGEST = 8

# How often something comes before a part.
_BEFORE = 0.4

# Where the functions below are singular; elsewhere operands are between these.
_SINGULAR = (0.0, 0.0, 1.0)
_LOWEST, _HIGHEST = 0.3, 0.9


@dataclass(frozen=True, slots=True)
class Pair:
    """An array of a program, and its elements as functions of single numbers, beside it."""

    array: pg.Variable
    elements: np.ndarray

    def moved(self, move: Callable[[Any], Any], numbers: Callable[[Any], Any]) -> Pair:
        """What `move` makes of the array, and `numbers` of an array of NumPy's."""
        return Pair(move(self.array), numbers(self.elements))

    def each(self, function: Callable[..., Any], *others: Pair | np.ndarray) -> Pair:
        """An elementwise function of arrays that broadcast."""
        arrays = [o.array if isinstance(o, Pair) else o for o in others]
        elements = [o.elements if isinstance(o, Pair) else o for o in others]
        found = np.frompyfunc(function, 1 + len(others), 1)(self.elements, *elements)
        array = function(self.array, *arrays)
        return Pair(array, found if array.shape else _objects([found]).reshape(()))


def _objects(items: Iterable[Any]) -> np.ndarray:
    """A vector of these; `np.array` would look into them."""
    return np.fromiter(items, dtype=object)


def _flat(pair: Pair) -> Pair:
    return pair.moved(pg.ravel, np.ravel)


def _joined(pairs: Sequence[Pair]) -> Pair:
    return Pair(
        pg.concatenate([_flat(p).array for p in pairs]),
        np.concatenate([_flat(p).elements for p in pairs]),
    )


# Parts.

_PARTIAL: tuple[Callable[[Any], Any], ...] = (
    lambda u: pg.sqrt(u),
    lambda u: pg.log(u),
    lambda u: u**0.3,
    lambda u: pg.power(u, 2 / 3),
    lambda u: 1.0 / u,
    lambda u: pg.rsqrt(u),
    lambda u: u**-2,
    lambda u: pg.arccos(u),
    lambda u: pg.arcsin(u),
    lambda u: pg.arctanh(u),
    lambda u: pg.log1p(-u),
    lambda u: pg.arccosh(1.0 + u),
    lambda u: u**1.5,
    lambda u: pg.sqrt(1.0 - u * u),
    lambda u: u * pg.log(u),
)

_SMOOTH: tuple[Callable[[Any], Any], ...] = (
    lambda u: u * u,
    lambda u: pg.tanh(u * 1.5),
    lambda u: u**3,
    lambda u: pg.exp(u) * 0.5,
    lambda u: pg.sin(u) - u,
    lambda u: 1.0 / (1.0 + u),
    lambda u: u * 0.7,
)


def _weights(draw: Choices, *shape: int) -> np.ndarray:
    """Numbers none of which is zero."""
    return np.asarray(draw.rng.choice([-1.5, -0.7, 0.4, 0.9, 1.3], shape))


def _some(draw: Choices, x: Pair) -> Pair:
    """Elements of a vector, in some order."""
    (n,) = x.array.shape
    kind = draw.below(5)
    if kind == 0:
        i = draw.below(n)
        return Pair(x.array[i], x.elements[i : i + 1].reshape(()))
    if kind == 1:
        start = draw.below(n)
        return x.moved(lambda v: v[start:], lambda v: v[start:])
    if kind == 2:
        return x.moved(pg.flip, np.flip)
    if kind == 3:
        places = np.array([draw.below(n) for _ in range(draw.below(4, 1))])
        return x.moved(lambda v: v[places], lambda v: v[places])
    return x


def _one(draw: Choices, x: Pair) -> Pair:
    i = draw.below(len(x.elements))
    return Pair(x.array[i], x.elements[i : i + 1].reshape(()))


def _partial(draw: Choices, x: Pair) -> Pair:
    return _some(draw, x).each(draw.choose(_PARTIAL))


def _partial_times(draw: Choices, x: Pair) -> Pair:
    return _partial(draw, x).each(lambda u, v: u * v, _one(draw, x))


def _smooth(draw: Choices, x: Pair) -> Pair:
    return _some(draw, x).each(draw.choose(_SMOOTH))


def _smooth_times(draw: Choices, x: Pair) -> Pair:
    return _smooth(draw, x).each(lambda u, v: u * v, _one(draw, x))


def _quotient(draw: Choices, x: Pair) -> Pair:
    return _smooth(draw, x).each(lambda u, v: u / v, _one(draw, x))


def _multiplied(draw: Choices, x: Pair) -> Pair:
    """A matrix times a vector of smooth functions, or of partial ones."""
    u = x.each(draw.choose(_SMOOTH))
    return _product(_weights(draw, draw.below(4, 1), len(x.elements)), u)


def _product(w: np.ndarray, u: Pair) -> Pair:
    return Pair(w @ u.array, _objects(_sum(map(mul, row, u.elements)) for row in w))


def _sum(items: Iterable[Any]) -> Any:
    return reduce(add, items)


_KINDS = (_partial, _partial_times, _smooth, _smooth_times, _quotient, _multiplied)
_KIND_SHARES = (0.4, 0.15, 0.15, 0.12, 0.06, 0.12)


# What is made of all parts, one vector, in steps; `x` is what they are functions of.


def _turned(draw: Choices, y: Pair, x: Pair) -> Pair:
    return y.moved(pg.flip, np.flip)


def _rolled(draw: Choices, y: Pair, x: Pair) -> Pair:
    count = draw.below(len(y.elements))
    return y.moved(lambda v: pg.roll(v, count), lambda v: np.roll(v, count))


def _transposed(draw: Choices, y: Pair, x: Pair) -> Pair:
    size = len(y.elements)
    width = draw.choose([n for n in range(1, size + 1) if size % n == 0])
    return y.moved(
        lambda v: pg.ravel(pg.transpose(pg.reshape(v, (-1, width)))),
        lambda v: v.reshape(-1, width).T.ravel(),
    )


def _cut(draw: Choices, y: Pair, x: Pair) -> Pair:
    step = draw.choose((1, 2, -1))
    start = draw.below(2)
    part = slice(start, None, step) if step > 0 else slice(None, None, step)
    return y if len(y.elements) < 3 else y.moved(lambda v: v[part], lambda v: v[part])


def _picked(draw: Choices, y: Pair, x: Pair) -> Pair:
    places = np.array([draw.below(len(y.elements)) for _ in range(draw.below(_LARGEST, 2))])
    return y.moved(lambda v: v[places], lambda v: v[places])


def _split(draw: Choices, y: Pair, x: Pair) -> Pair:
    place = draw.below(len(y.elements))

    def move(v: Any) -> Any:
        first, second = pg.split(v, [place])
        return pg.concatenate([second, first])

    return y.moved(move, lambda v: np.concatenate([v[place:], v[:place]]))


def _set(draw: Choices, y: Pair, x: Pair) -> Pair:
    """A part of the one, put into the other."""
    count = draw.below(min(len(y.elements), len(x.elements)) + 1)
    elements = np.concatenate([x.elements[:count], y.elements[count:]])
    return Pair(pg.set_slice(y.array, slice(0, count), x.array[:count]), elements)


def _chosen(draw: Choices, y: Pair, x: Pair) -> Pair:
    mask = draw.rng.random(len(y.elements)) < 0.6
    return y.each(lambda u, m: pg.where(m, u, u * u), mask)


def _stacked(draw: Choices, y: Pair, x: Pair) -> Pair:
    """Elements taken one by one and put together again."""
    return y.moved(lambda v: pg.stack([v[i] for i in range(len(y.elements))]), lambda v: v)


def _elementwise(draw: Choices, y: Pair, x: Pair) -> Pair:
    b = _weights(draw, len(y.elements))
    found: tuple[Callable[..., Any], ...] = (
        lambda u, b: pg.tanh(u + b),
        lambda u, b: u * b,
        lambda u, b: pg.arctan(u) * b,
        lambda u, b: u * u + b,
        lambda u, b: pg.arcsinh(u * b),
    )
    return y.each(draw.choose(found), b)


def _times_shared(draw: Choices, y: Pair, x: Pair) -> Pair:
    return y.each(lambda u, v: u * pg.cos(v), _one(draw, x))


def _running(draw: Choices, y: Pair, x: Pair) -> Pair:
    return Pair(pg.cumsum(y.array), _objects(accumulate(y.elements)))


def _summed(draw: Choices, y: Pair, x: Pair) -> Pair:
    """Sums of the columns of a matrix."""
    size = len(y.elements)
    width = draw.choose([n for n in range(1, size + 1) if size % n == 0])
    found = _objects(_sum(column) for column in y.elements.reshape(-1, width).T)
    return Pair(pg.sum(pg.reshape(y.array, (-1, width)), axis=0), found)


def _contracted(draw: Choices, y: Pair, x: Pair) -> Pair:
    return _product(_weights(draw, draw.below(4, 2), len(y.elements)), y)


def _beside(draw: Choices, y: Pair, x: Pair) -> Pair:
    """What is there, joined with a function of the same operands."""
    return _joined([y, _smooth_times(draw, x)])


_STEPS_AT_HAND = (
    *(_turned, _rolled, _transposed, _cut, _picked, _split, _set, _chosen, _stacked),
    *(_elementwise, _elementwise, _times_shared, _running, _summed, _contracted, _beside),
)


@dataclass(frozen=True)
class SingularProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 13, step)))

    @cached_property
    def fine(self) -> np.ndarray:
        """Which operands are ordinary: some are, and some are not."""
        draw = self.draw(0)
        fine = np.asarray(draw.rng.random(draw.below(5, 2)) < 0.5)
        fine[list(draw.order(len(fine))[:2])] = True, False
        return fine

    @cached_property
    def parts(self) -> int:
        return self.draw(1).below(_PARTS + 1, 2)

    @cached_property
    def count(self) -> int:
        """How many things can be left out: parts, all but the first, and what is made of them."""
        return self.parts - 1 + self.draw(2).below(_STEPS)

    def array(self, x: pg.Variable) -> pg.Variable:
        """The vector that the program computes from a vector."""
        return self._built(x, [x[i] for i in range(len(self.fine))]).array

    def elements(self, numbers: Sequence[pg.Variable]) -> np.ndarray:
        """Its elements, each from as many single numbers."""
        return self._built(pg.stack(list(numbers)), numbers).elements

    def _built(self, array: pg.Variable, numbers: Sequence[pg.Variable]) -> Pair:
        x = Pair(array, _objects(numbers))
        kept = [i for i in range(self.count) if i not in self.left_out]
        parts = [0, *(i + 1 for i in kept if i + 1 < self.parts)]
        y = _joined([self._part(i, x) for i in parts])
        for i in kept:
            if i + 1 >= self.parts:
                draw = self.draw(50 + i)
                y = draw.choose(_STEPS_AT_HAND)(draw, y, x)
        return y

    def _part(self, number: int, x: Pair) -> Pair:
        draw = self.draw(10 + number)
        kind: Callable[[Choices, Pair], Pair] = draw.choose(_KINDS, _KIND_SHARES)
        if draw.chance(_BEFORE):
            x = draw.choose(_STEPS_AT_HAND)(draw, x, x)
        return kind(draw, x)

    @cached_property
    def feed(self) -> np.ndarray:
        draw = self.draw(3)
        x = draw.rng.uniform(_LOWEST, _HIGHEST, len(self.fine))
        x[~self.fine] = draw.rng.choice(_SINGULAR, int(np.sum(~self.fine)))
        return x

    def __str__(self) -> str:
        graph = pg.trace(self.array, pg.spec(len(self.feed)))
        return f"singular program {self.seed}\n{graph}\nfeed:\n  {self.feed!r}"
