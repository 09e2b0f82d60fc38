"""What random programs give by Taylor mode, as users ask for it: what nested modes give.

Asked are `taylor`, `forward_grad` of an order and of itself, `jet` along a curve, gradients of
gradients, and `partials`. They are recorded into the program, and compared with `linearize` and
`transpose` applied to it again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from complex_step import widen_floats
from nested import nested_values
from program_derivatives import demand
from random_programs import Program

import primgraph as pg
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.operators.variable import Variable
from primgraph.primitives.shapes import reshape
from primgraph.transforms import dead_code, linearize, lower, transpose
from primgraph.transforms.optimize.clean_up import clean_up

Arrays = Sequence[np.ndarray]

# Modes over each other grow fast: of larger programs, and to higher orders, they are not asked.
_LARGEST = 40
_ORDERS = ((15, 4), (25, 3), (_LARGEST, 2))

# How much of the largest number on the way may be off, and where the largest within a loop or
# branch is not known; what is larger loses too many digits.
_CLOSE, _CLOSE_WITH_BODIES = 1e-10, 1e-6
_STEEP = 1e9


def check_jets(program: Program, seen: Counter[str] | None = None) -> None:
    """Compare derivatives of high orders of `program`; `seen` counts what was compared."""
    seen = Counter() if seen is None else seen
    rng = np.random.default_rng((program.seed, 31))
    graph = dead_code(lower(program.graph))
    floats = [v for v in graph.outputs if v.type.is_float]
    graph = widen_floats(dead_code(graph.with_outputs(floats)))
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    if not program.smooth or not wrt or not floats or len(graph.body) > _LARGEST:
        seen["jets: too large, or nothing to differentiate"] += 1
        return
    order = next(k for size, k in _ORDERS if len(graph.body) <= size)
    feeds = [np.asarray(x, v.dtype) for x, v in zip(program.feeds, graph.inputs, strict=True)]
    for check in (_along_a_line, _along_a_curve, _gradients, _partials):
        check(_Asked(graph, wrt, feeds, order, rng, seen))


class _Asked:
    """A graph, recorded anew with handles of its inputs and outputs, and what is asked of it."""

    def __init__(
        self,
        graph: Graph,
        wrt: list[int],
        feeds: list[np.ndarray],
        order: int,
        rng: np.random.Generator,
        seen: Counter[str],
    ) -> None:
        self.graph, self.wrt, self.feeds, self.order = graph, wrt, feeds, order
        self.rng, self.seen = rng, seen
        self.builder = Builder(graph.name)
        self.inputs = [Variable(self.builder, self.builder.input(v.type)) for v in graph.inputs]
        self.outputs = self.apply(*self.inputs)

    def apply(self, *handles: Variable) -> list[Variable]:
        """The program, of variables."""
        found = self.builder.inline(self.graph, [h.value for h in handles])
        return [Variable(self.builder, v) for v in found]

    @property
    def moving(self) -> list[Variable]:
        return [self.inputs[i] for i in self.wrt]

    def drawn(self, like: Any) -> np.ndarray:
        return np.asarray(self.rng.normal(size=like.shape))

    def compare(
        self, what: str, asked: Sequence[Variable], expected: Arrays, largest: float
    ) -> None:
        """`asked` are the numbers that are expected, up to rounding on the way."""
        graph = self.builder.graph([v.value for v in asked])
        found, own = _steepest(graph, self.feeds)
        largest = max(largest, own)
        finite = all(np.all(np.isfinite(x)) for x in expected)
        if not finite or not largest < _STEEP:
            self.seen["jets: not smooth, or too steep"] += 1
            return
        if self.rng.random() < 0.25:
            found = pg.compile(graph)(*self.feeds)
        for ours, theirs in zip(found, expected, strict=True):
            off = float(np.max(np.abs(ours - theirs), initial=0.0))
            close = _CLOSE_WITH_BODIES if self.graph.has_bodies else _CLOSE
            slack = close * (1.0 + largest)
            demand(off <= slack, f"{what}: off by {off}, of {slack}:\n{ours}\n{theirs}")
        self.seen[f"jets: {what}"] += 1


def _along_a_line(asked: _Asked) -> None:
    """`taylor` has all orders, `forward_grad` the last, and so has `forward_grad` of itself."""
    order, moving = asked.order, asked.moving
    seeds = [asked.drawn(x) for x in moving]
    expected, largest = nested_values(
        asked.graph, asked.wrt, asked.feeds, [[s] for s in seeds], order
    )
    rows = pg.taylor(asked.outputs, moving, order, seeds)
    asked.compare("taylor", [v for row in rows for v in row[1:]], expected, largest)
    last = expected[order - 1 :: order]
    once = pg.forward_grad(asked.outputs, moving, seeds, order=order)
    asked.compare("forward_grad", *_present(once, last), largest)
    again: list[Any] = list(asked.outputs)
    places = list(range(len(again)))
    for _ in range(order):
        again = pg.forward_grad(again, moving, seeds)
        places = [i for i, v in zip(places, again, strict=True) if v is not None]
        again = [v for v in again if v is not None]
        if not again:
            return
    asked.compare("forward_grad of itself", again, [last[i] for i in places], largest)


def _present(found: Sequence[Any], expected: Arrays) -> tuple[list[Variable], list[np.ndarray]]:
    both = [(v, e) for v, e in zip(found, expected, strict=True) if v is not None]
    return [v for v, _ in both], [e for _, e in both]


def _along_a_curve(asked: _Asked) -> None:
    """`jet`, where some derivatives of what moves are missing."""
    order = min(asked.order, 3)
    seeds = [[asked.drawn(asked.graph.inputs[i]) for _ in range(order)] for i in asked.wrt]
    missing = [[asked.rng.random() < 0.3 for _ in range(order)] for _ in asked.wrt]
    series: list[Any] = [[np.zeros_like(s) for s in row] for row in seeds]
    given: list[list[Any]] = [[None] * order for _ in seeds]
    for n, row in enumerate(seeds):
        for k, seed in enumerate(row):
            if not missing[n][k]:
                series[n][k] = given[n][k] = seed
    expected, largest = nested_values(asked.graph, asked.wrt, asked.feeds, series)

    def moved(*xs: Variable) -> list[Variable]:
        every = list(asked.inputs)
        for i, x in zip(asked.wrt, xs, strict=True):
            every[i] = x
        return asked.apply(*every)

    _, found = pg.jet(moved, tuple(asked.moving), given)
    asked.compare("jet", [v for row in found for v in row], expected, largest)


def _pushed(graph: Graph, place: int) -> Graph:
    """The tangents of the outputs, from all inputs and the tangent of one."""
    jvp = linearize(graph, [place])
    return dead_code(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]))


def _pulled(graph: Graph, place: int) -> Graph:
    """The cotangent of one input, from all inputs and the cotangents of the outputs."""
    return dead_code(transpose(_pushed(graph, place), [len(graph.inputs)]))


def _steepest(graph: Graph, feeds: Arrays) -> tuple[list[np.ndarray], float]:
    """What `graph` gives, and the largest number on the way."""
    values = [v for e in graph.body for v in e.outputs if v.type.is_float]
    found = interpret(graph.with_outputs([*graph.outputs, *values]), *feeds)
    finite = [np.abs(x[np.isfinite(x)]) for x in map(np.asarray, found)]
    largest = max((float(np.max(x, initial=0.0)) for x in finite), default=0.0)
    return found[: len(graph.outputs)], largest


def _gradients(asked: _Asked) -> None:
    """Gradients of gradients by one input, with the same seed each time, or with others."""
    place = int(asked.rng.choice(asked.wrt))
    x, like = asked.inputs[place], asked.graph.inputs[place]
    seeds = [asked.drawn(v) for v in asked.graph.outputs]
    known = _pulled(asked.graph, place)
    found = pg.grad(asked.outputs, x, seeds, materialize_grads=True)
    again, feeds = asked.drawn(like), [*asked.feeds, *seeds]
    for k in range(min(asked.order, 3)):
        if k:
            kind = int(asked.rng.integers(4))
            seed = [again, np.ones(like.shape), asked.drawn(like), asked.drawn(like)][kind]
            summed = kind == 3
            found = pg.grad(
                pg.sum(found * seed) if summed else found,
                x,
                None if summed or kind == 1 else seed,
                materialize_grads=True,
            )
            known = _pulled(known, place)
            feeds.append(seed)
        expected, largest = _steepest(clean_up(known), feeds)
        asked.compare(f"gradients of order {k + 1}", [found], expected, largest)


# Of so many elements partial derivatives are asked.
_FEW = 3


def _partials(asked: _Asked) -> None:
    """Mixed partial derivatives of each output by the elements of one input."""
    small = [i for i in asked.wrt if 0 < asked.graph.inputs[i].type.size <= _FEW]
    if not small:
        return
    place = int(asked.rng.choice(small))
    like = asked.graph.inputs[place]
    size = like.type.size
    flat = Builder(asked.graph.name)
    inputs = [
        flat.input(v.type.with_shape((size,)) if i == place else v.type)
        for i, v in enumerate(asked.graph.inputs)
    ]
    with flat:
        given: list[Value] = list(inputs)
        given[place] = reshape(inputs[place], shape=like.shape)
        outputs = flat.inline(asked.graph, given)
        graph = flat.graph(outputs)
    indices = []
    for _ in range(2):
        steps = asked.rng.integers(size, size=asked.rng.integers(1, asked.order + 1))
        indices.append(tuple(np.bincount(steps, minlength=size).tolist()))
    feeds = [x.reshape(-1) if i == place else x for i, x in enumerate(asked.feeds)]
    handles = [Variable(flat, v) for v in inputs]
    u = Variable(flat, outputs[0])
    found = pg.partials(u, handles[place], indices)
    for index, ours in zip(indices, found, strict=True):
        known, seeds = graph.with_outputs(outputs[:1]), []
        for axis in np.repeat(np.arange(size), index):
            known = _pushed(known, place)
            seeds.append(np.eye(size)[axis])
        expected, largest = _steepest(clean_up(known), [*feeds, *seeds])
        flatly = _Asked(graph, asked.wrt, feeds, asked.order, asked.rng, asked.seen)
        flatly.builder = flat
        flatly.compare("partials", [ours], expected, 1e2 * largest)
