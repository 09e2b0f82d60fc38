"""Random programs of kinks, fed with NaN, infinities and ties, with slopes in closed form.

Rows of numbers go through `relu`, `clip`, `maximum`, `minimum`, and functions that are linear, and
at last perhaps through `max` or `min`; the oracle has the slopes that docs/conventions.md promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from program_checks import check_kernel_of_slopes
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

_STEPS = 4
_LARGEST = 4
_EXTREMUM = 0.5
_KERNEL = 0.3
_SPECIAL = 0.4

_FED = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_PLAIN = (0.0, 1.0, -1.0, 0.5, 2.0, -3.0)
_BOUNDS = (-1.0, 0.0, 0.5, 1.0)
_AXES = (0, 1, None)


@dataclass(frozen=True, slots=True)
class Slope:
    """The slopes of elements by those at their place; `open` where 0 meets NaN on the way.

    There it is not said which of the two the slope is. What is not `reached` has none.
    """

    numbers: np.ndarray
    open: np.ndarray
    reached: bool

    @staticmethod
    def of(shape: tuple[int, ...], reached: bool) -> Slope:
        return Slope(np.full(shape, float(reached)), np.zeros(shape, bool), reached)

    def through(self, slope: np.ndarray) -> Slope:
        """That of a function of the elements which has this slope itself."""
        none = self.numbers == 0
        opened = self.open | (none & np.isnan(slope) & self.reached)
        return Slope(np.where(none, 0, slope * self.numbers), opened, self.reached)

    def __add__(self, other: Slope) -> Slope:
        opened, reached = self.open | other.open, self.reached or other.reached
        return Slope(self.numbers + other.numbers, opened, reached)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a program, what they are at its feeds, and their slopes by `x` and by `z`."""

    value: pg.Variable
    at: np.ndarray
    slopes: tuple[Slope, ...]

    def then(self, value: pg.Variable, at: np.ndarray, slope: Any) -> Rows:
        """A function of these rows, of that slope."""
        every = np.broadcast_to(slope, self.at.shape)
        return Rows(value, at, tuple(s.through(every) for s in self.slopes))


Step = Callable[[Choices, Rows, Rows, Rows], Rows]


def _relu(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    slope = np.where(np.isnan(y.at), np.nan, y.at > 0)
    return y.then(pg.relu(y.value), np.maximum(y.at, 0), slope)


def _clip(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    """1 inside and at the bounds, 0 outside; there may be one bound only."""
    low, high = sorted(draw.choose(_BOUNDS) for _ in range(2))
    low, high = draw.choose(((low, high), (low, np.inf), (-np.inf, high)))
    bounds = [None if np.isinf(b) and draw.chance(0.7) else b for b in (low, high)]
    slope = np.where(np.isnan(y.at), np.nan, (low <= y.at) & (y.at <= high))
    return y.then(pg.clip(y.value, *bounds), np.clip(y.at, low, high), slope)


def _share(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The slope of a maximum by the first: evenly split at a tie, NaN if one is NaN."""
    share = np.where(one == other, 0.5, one > other)
    return np.where(np.isnan(one) | np.isnan(other), np.nan, share)


def _extreme(draw: Choices, y: Rows, other: Rows) -> Rows:
    largest = draw.chance(0.5)
    one, two = (y.at, other.at) if largest else (-y.at, -other.at)
    at = (np.maximum if largest else np.minimum)(y.at, other.at)
    first, second = _share(one, two), _share(two, one)
    value = (pg.maximum if largest else pg.minimum)(y.value, other.value)
    pairs = zip(y.slopes, other.slopes, strict=True)
    return Rows(value, at, tuple(a.through(first) + b.through(second) for a, b in pairs))


def _with_numbers(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    """The larger or smaller one of rows and constants, some of which are NaN or infinite."""
    table = fed(draw, y.at.shape)
    return _extreme(draw, y, Rows(pg.array(table), table, (Slope.of(table.shape, False),) * 2))


def _with_other(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    return _extreme(draw, y, z)


def _scaled(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    w = draw.choose((-2.0, -1.0, 0.5, 3.0))
    return y.then(y.value * w, y.at * w, w)


def _shifted(draw: Choices, y: Rows, x: Rows, z: Rows) -> Rows:
    b = draw.choose(_BOUNDS)
    return y.then(y.value + b, y.at + b, 1.0)


_KINKS: tuple[Step, ...] = (_relu, _clip, _with_numbers, _with_other)
_ALL: tuple[Step, ...] = (*_KINKS, _scaled, _shifted)


def fed(draw: Choices, shape: tuple[int, ...]) -> np.ndarray:
    special = draw.rng.random(shape) < _SPECIAL
    return np.where(special, draw.rng.choice(_FED, shape), draw.rng.choice(_PLAIN, shape))


def _extremum(draw: Choices, y: Rows) -> tuple[Rows, np.ndarray]:
    """The extremum along some axes, and which element of it each element of the rows is for."""
    axis, largest = draw.choose(_AXES), draw.chance(0.5)
    at = y.at if largest else -y.at
    top = np.max(at, axis=axis, keepdims=True)
    tied = at == top
    slope = np.where(np.isnan(top), np.nan, tied / np.maximum(1, np.sum(tied, axis, keepdims=True)))
    value = (pg.max if largest else pg.min)(y.value, axis=axis)
    places = np.broadcast_to(np.arange(top.size).reshape(top.shape), at.shape)
    return y.then(value, top if largest else -top, slope), places


@dataclass(frozen=True)
class EdgeProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 19, step)))

    @cached_property
    def count(self) -> int:
        return self.draw(0).below(_STEPS, 1)

    @cached_property
    def feeds(self) -> list[np.ndarray]:
        draw = self.draw(1)
        shape = draw.below(_LARGEST, 1), draw.below(_LARGEST + 1, 1)
        return [fed(draw, shape), fed(draw, shape)]

    def rows(self, x: pg.Variable, z: pg.Variable) -> tuple[Rows, np.ndarray]:
        """The result, and which element of it each element of the feeds is for."""
        one, none = Slope.of(x.shape, True), Slope.of(x.shape, False)
        first, second = Rows(x, self.feeds[0], (one, none)), Rows(z, self.feeds[1], (none, one))
        y = first
        for i in range(self.count):
            if i not in self.left_out:
                draw = self.draw(10 + i)
                y = draw.choose(_ALL if i else _KINKS)(draw, y, first, second)
        draw = self.draw(2)
        if draw.chance(_EXTREMUM):
            return _extremum(draw, y)
        return y, np.arange(x.size).reshape(x.shape)

    def __str__(self) -> str:
        graph = pg.trace(lambda x, z: self.rows(x, z)[0].value, *_specs(self), rebind=False)
        feeds = "\n".join(f"  {x!r}" for x in self.feeds)
        return f"edge program {self.seed}\n{graph}\nfeeds:\n{feeds}"


def _specs(program: EdgeProgram) -> list[Any]:
    return [pg.spec(a.shape) for a in program.feeds]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for under a name, what it should be, and where it may be something else."""

    name: str
    value: pg.Variable
    truth: np.ndarray
    open: np.ndarray


def check_edges(program: EdgeProgram, seen: Counter[str] | None = None) -> None:
    """Values and slopes, in all ways to take them, are those of the conventions."""
    seen = Counter() if seen is None else seen
    draw = program.draw(80)
    wanted: list[Wanted] = []

    def asked(x: pg.Variable, z: pg.Variable) -> list[pg.Variable]:
        rows, places = program.rows(x, z)
        wanted.append(Wanted("value", rows.value, rows.at, np.zeros(rows.at.shape, bool)))
        wanted.extend(_ways(draw, rows, places, x, z))
        return [way.value for way in wanted]

    with np.errstate(all="ignore"):
        graph = lower(pg.trace(asked, *_specs(program), rebind=False))
        found = interpret(graph, *program.feeds)
    for way, array in zip(wanted, found, strict=True):
        truth = np.reshape(way.truth, array.shape)
        same = np.isclose(array, truth, rtol=1e-12, atol=0, equal_nan=True)
        same |= np.reshape(way.open, array.shape) & (np.isnan(array) | (array == 0))
        demand(np.all(same), f"{way.name}:\n{array!r}, not\n{truth!r}")
        seen[f"edges: {way.name}"] += 1
        seen["edges: slopes that are NaN"] += int(np.sum(np.isnan(truth)))
    if draw.chance(_KERNEL):
        check_kernel_of_slopes("edges", graph, program.feeds, found, draw)
        seen["edges: kernels"] += 1


def _ways(
    draw: Choices, rows: Rows, places: np.ndarray, x: pg.Variable, z: pg.Variable
) -> Iterator[Wanted]:
    """Gradients, Jacobians and forward mode by both feeds."""
    y = rows.value
    weights, v = (draw.rng.choice([-1.0, 0.5, 2.0], a.shape) for a in (y, x))
    own = np.arange(y.size)[:, None] == np.ravel(places)
    slopes = pg.grad(pg.sum(y * weights), [x, z], materialize_grads=True)
    matrices = pg.jacobian(y, [x, z])
    for slope, gradient, matrix, by in zip(rows.slopes, slopes, matrices, (x, z), strict=True):
        spread = np.ravel(weights)[places]
        yield Wanted("gradient", gradient, spread * slope.numbers, slope.open)
        # Feeds count as finite where zeros are kept from slopes beside them: a NaN that is fed
        # may be in all of the row or column.
        lost = np.isnan(slope.numbers).any() or slope.open.any()
        whole = np.where(own, np.ravel(slope.numbers), 0)
        opened = np.where(own, np.ravel(slope.open), lost)
        yield Wanted("jacobian", matrix, whole, opened)
        row, column = draw.below(y.size), draw.below(by.size)
        by_itself = pg.Jacobian(y, by)
        yield Wanted("row of a Jacobian", by_itself[row], whole[row], opened[row])
        yield Wanted("column", by_itself[:, column], whole[:, column], opened[:, column])
    slope, along = rows.slopes[0], np.zeros(y.size)
    np.add.at(along, np.ravel(places), np.ravel(slope.numbers * v))
    forward = pg.forward_grad(y, x, v)
    if forward is not None:
        yield Wanted("forward mode", forward, along, (own & np.ravel(slope.open)).any(axis=1))
