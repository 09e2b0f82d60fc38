"""What each transform keeps of a random program: one check for each that is declared anywhere.

A check applies one transform, has the result verified, and compares what it computes with what the
program itself does.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from nested import nested_values
from program_derivatives import demand
from program_tolerance import differs, roughly_differs, same_bits
from random_programs import Program

from primgraph import dim, parse, transforms
from primgraph.errors import ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import forward_slice
from primgraph.ir.verify import verify
from primgraph.primitives.reductions import reduce_sum
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.join_sorts import join_sorts
from primgraph.transforms.loops.implicit_solution import expand_solutions
from primgraph.transforms.loops.invariant_factors import factor_invariant_matrices
from primgraph.transforms.loops.split_loops import split_loops
from primgraph.transforms.optimize.drop_eigenvectors import drop_eigenvectors
from primgraph.transforms.optimize.join_solves import join_solves
from primgraph.transforms.optimize.matrix_structure import structure
from primgraph.transforms.partial_eval import separate_linear
from primgraph.transforms.rewrite.rule import LEVELS
from primgraph.transforms.taylor_mode import taylor
from primgraph.transforms.vectorize_stacks import vectorize_stacks

Arrays = Sequence[np.ndarray]

# By how many units in the last place every equation may be off where sums change their order.
_ULPS = 8.0

# Forward mode over forward mode grows fast: of larger programs it is not asked for.
_LARGEST_NESTED = 40

# How much of the largest number on the way may be off in the sums of a transposition.
_SLACK = 1e3


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A program, as it is and lowered, its feeds and results, and a source of chance."""

    program: Graph
    graph: Graph
    feeds: list[np.ndarray]
    expected: list[np.ndarray]
    rng: np.random.Generator
    seen: Counter[str]

    @property
    def wrt(self) -> list[int]:
        """The inputs by which the program can be differentiated."""
        return [i for i, v in enumerate(self.graph.inputs) if v.type.is_float]

    def some(self) -> list[int]:
        """Positions of some inputs."""
        return [i for i in range(len(self.feeds)) if self.rng.random() < 0.5]


Check = Callable[[Case], None]
CHECKS: dict[Callable[..., Any], Check] = {}


def of(transform: Callable[..., Any]) -> Callable[[Check], Check]:
    """Declare what is checked of `transform`."""

    def declare(check: Check) -> Check:
        CHECKS[transform] = check
        return check

    return declare


def check_transforms(program: Program, seen: Counter[str]) -> None:
    """All checks; `seen` counts, by the name of the transform, what was compared."""
    graph = verify(transforms.lower(program.graph))
    expected = interpret(program.graph, *program.feeds)
    for i, (transform, check) in enumerate(CHECKS.items()):
        rng = np.random.default_rng((program.seed, i))
        case = Case(program.graph, graph, list(program.feeds), expected, rng, seen)
        try:
            check(case)
        except Exception as error:
            raise AssertionError(f"{transform.__name__}: {error}") from error


def _same(case: Case, name: str, graph: Graph, feeds: Arrays, expected: Arrays,
          found: Arrays) -> None:  # fmt: skip
    """`found` is `expected` bit by bit, up to what the table of ULPs allows."""
    fault = differs(graph, feeds, expected, found)
    demand(not fault, fault)
    case.seen[name] += 1


def _roughly_same(case: Case, name: str, graph: Graph, feeds: Arrays, result: Graph) -> None:
    """`result` computes what `graph` does, where sums may change their order.

    Where special numbers occur, these may meet in another order.
    """
    if not _is_ordinary(graph, feeds):
        return
    expected, found = (interpret(g, *feeds) for g in (graph, result))
    fault = roughly_differs(graph, feeds, expected, found, _ULPS)
    demand(not fault, fault)
    case.seen[name] += 1


def _is_ordinary(graph: Graph, feeds: Arrays) -> bool:
    """Whether neither NaN nor infinities nor denormals occur anywhere."""
    values = [v for e in graph.body for v in e.outputs if v.type.is_float]
    numbers = [*feeds, *interpret(graph.with_outputs(values), *feeds)]
    sizes = [np.abs(x[x != 0]) for x in numbers if x.dtype.kind == "f"]
    least = [np.finfo(x.dtype).smallest_normal for x in sizes]
    return all(np.all(np.isfinite(x)) and np.all(x >= n) for x, n in zip(sizes, least, strict=True))


def _kept(transform: Callable[[Graph], Graph], name: str) -> Check:
    """The check of what keeps every bit."""

    def check(case: Case) -> None:
        result = verify(transform(case.graph))
        demand(result.input_types == case.graph.input_types, "inputs have changed")
        demand(result.output_types == case.graph.output_types, "types have changed")
        found = interpret(result, *case.feeds)
        _same(case, name, case.graph, case.feeds, case.expected, found)

    return check


for _transform in (transforms.dead_code, transforms.fold_constants):
    of(_transform)(_kept(_transform, _transform.__name__))


@of(transforms.lower)
def _lower(case: Case) -> None:
    found = interpret(case.graph, *case.feeds)
    _same(case, "lower", case.program, case.feeds, case.expected, found)


@of(transforms.raise_)
def _raise(case: Case) -> None:
    result = verify(transforms.raise_(case.graph))
    found = interpret(result, *case.feeds)
    _same(case, "raise_", case.graph, case.feeds, case.expected, found)
    lowered = verify(transforms.lower(result))
    again = interpret(lowered, *case.feeds)
    _same(case, "raise_", case.graph, case.feeds, case.expected, again)


def _at_levels(transform: Callable[..., Graph], name: str) -> Check:
    """The check of a transform that takes a level of mathematics."""

    def check(case: Case) -> None:
        _kept(transform, name)(case)
        for level in LEVELS[1:]:
            result = verify(transform(case.graph, level))
            _roughly_same(case, name, case.graph, case.feeds, result)

    return check


for _transform in (transforms.simplify, transforms.clean_up):
    of(_transform)(_at_levels(_transform, _transform.__name__))


def _reordered(transform: Callable[[Graph], Graph], name: str) -> Check:
    """The check of a transform that adds in another order."""

    def check(case: Case) -> None:
        result = verify(transform(case.graph))
        _roughly_same(case, name, case.graph, case.feeds, result)

    return check


for _transform in (transforms.join_products, transforms.matrix_chain):
    of(_transform)(_reordered(_transform, _transform.__name__))


@of(transforms.bind)
def _bind(case: Case) -> None:
    """Some inputs are one number each."""
    scalars: dict[int, float] = {}
    feeds = list(case.feeds)
    for i in case.some():
        type = case.graph.inputs[i].type
        scalars[i] = feeds[i].flat[0].item() if type.size else 0
        feeds[i] = np.full(type.shape, scalars[i], type.dtype)
    result = verify(transforms.bind(case.graph, scalars))
    left = [x for i, x in enumerate(feeds) if i not in scalars]
    expected, found = interpret(case.graph, *feeds), interpret(result, *left)
    _same(case, "bind", case.graph, feeds, expected, found)


@of(transforms.instantiate)
def _instantiate(case: Case) -> None:
    """One more axis of a size, and derivatives: at a number they are those with that number."""
    size, count = dim("B_"), int(case.rng.integers(0, 4))
    axes = [0 if v.type.is_float else None for v in case.graph.inputs]
    if 0 not in axes:
        return
    try:
        known = transforms.batch(case.graph, count, axes)
    except ShapeError:
        # Some samples have to be there.
        count = count or 2
        known = transforms.batch(case.graph, count, axes)
    graph = verify(transforms.batch(case.graph, size, axes))
    demand(parse(str(graph), graph.constants) == graph, "the text reads back as another graph")
    demand(pickle.loads(pickle.dumps(graph)) == graph, "a pickle is another graph")
    found = verify(transforms.instantiate(graph, {"B_": count}))
    demand(found.output_types == known.output_types, "types are others")
    feeds = [
        x if axis is None else np.repeat(x[None], count, axis=0)
        for x, axis in zip(case.feeds, axes, strict=True)
    ]
    expected = interpret(known, *feeds)
    _same(case, "instantiate", known, feeds, expected, interpret(found, *feeds))
    clean = transforms.instantiate(transforms.clean_up(graph), {"B_": count})
    _same(case, "instantiate", known, feeds, expected, interpret(verify(clean), *feeds))


@of(transforms.hoist)
def _hoist(case: Case) -> None:
    still = case.some()
    early, late = map(verify, transforms.hoist(case.graph, still))
    residuals = interpret(early, *(case.feeds[i] for i in still))
    found = interpret(late, *case.feeds, *residuals)
    _same(case, "hoist", case.graph, case.feeds, case.expected, found)


@of(expand_solutions)
def _iterated(case: Case) -> None:
    found = interpret(verify(expand_solutions(case.graph)), *case.feeds)
    _same(case, "expand_solutions", case.graph, case.feeds, case.expected, found)


@of(vectorize_stacks)
def _vectors(case: Case) -> None:
    for least in (2, 4):
        _kept(partial(vectorize_stacks, least=least), "vectorize_stacks")(case)


@of(split_loops)
def _split_loops(case: Case) -> None:
    for math in ("exact", "fast"):
        found = interpret(verify(split_loops(case.graph, math, trips=2, fewest=0)), *case.feeds)
        _same(case, "split_loops", case.graph, case.feeds, case.expected, found)


@of(drop_eigenvectors)
def _values_alone(case: Case) -> None:
    found = interpret(verify(drop_eigenvectors(case.graph)), *case.feeds)
    _same(case, "drop_eigenvectors", case.graph, case.feeds, case.expected, found)


for _transform in (join_solves, join_sorts, structure):
    of(_transform)(_reordered(_transform, _transform.__name__))


@of(factor_invariant_matrices)
def _factored(case: Case) -> None:
    for by_lu in (True, False):
        result = verify(factor_invariant_matrices(case.graph, by_lu))
        _roughly_same(case, "factor_invariant_matrices", case.graph, case.feeds, result)


# Batches.


def _samples(case: Case, size: int) -> tuple[list[int | None], list[np.ndarray]]:
    """Which inputs differ between samples, and all of them at once."""
    axes = [None if case.rng.random() < 0.3 else 0 for _ in case.feeds]
    stacked = [
        x if axis is None else np.stack([np.roll(x, k) for k in range(size)])
        for x, axis in zip(case.feeds, axes, strict=True)
    ]
    return axes, stacked


@of(transforms.batch)
def _batch(case: Case) -> None:
    size = int(case.rng.integers(1, 4))
    axes, stacked = _samples(case, size)
    results = interpret(verify(transforms.batch(case.graph, size, axes)), *stacked)
    for k in range(size):
        sample = [x if a is None else x[k] for x, a in zip(stacked, axes, strict=True)]
        expected = interpret(case.graph, *sample)
        _same(case, "batch", case.graph, sample, expected, [np.asarray(x[k]) for x in results])


@of(transforms.batch_sum)
def _batch_sum(case: Case) -> None:
    size = int(case.rng.integers(1, 4))
    axes, stacked = _samples(case, size)
    floats = [v for v in case.graph.outputs if v.type.is_float]
    graph = transforms.dead_code(case.graph.with_outputs(floats))
    result = verify(transforms.batch_sum(graph, size, axes))
    many = transforms.batch(graph, size, axes)
    with Builder() as builder:
        inputs = [builder.input(t) for t in many.input_types]
        sums = [reduce_sum(v, axes=(0,)) for v in builder.inline(many, inputs)]
        expected = builder.graph(sums)
    _roughly_same(case, "batch_sum", expected, stacked, result)


# Derivatives.


def _tangents(case: Case) -> list[np.ndarray]:
    """Directions with no zero in them, as many as there are inputs to differentiate by."""
    shapes = [case.feeds[i] for i in case.wrt]
    return [
        np.asarray(case.rng.choice([-1.0, 1.0], x.shape) * case.rng.uniform(0.5, 2, x.shape))
        .astype(x.dtype) for x in shapes
    ]  # fmt: skip


@of(transforms.linearize)
def _linearize(case: Case) -> None:
    """The values are those of the program; twice the direction is twice the tangent."""
    jvp = verify(transforms.linearize(case.graph, case.wrt))
    count, dx = len(case.expected), _tangents(case)
    found = interpret(jvp, *case.feeds, *dx)
    _same(case, "linearize", case.graph, case.feeds, case.expected, found[:count])
    feeds = [*case.feeds, *dx]
    if _is_ordinary(jvp, feeds):
        tangents = jvp.with_outputs(jvp.outputs[count:])
        twice = interpret(tangents, *case.feeds, *(2 * x for x in dx))
        halves = [(x / 2).astype(x.dtype) for x in twice]
        rough = roughly_differs(tangents, feeds, found[count:], halves, _ULPS)
        demand(not rough, rough)


@of(transforms.unzip)
def _unzip(case: Case) -> None:
    """The primal part and then the linear one are the whole."""
    jvp = transforms.linearize(case.graph, case.wrt)
    start, dx = len(case.feeds), _tangents(case)
    expected = interpret(jvp, *case.feeds, *dx)
    primal, linear = map(verify, transforms.unzip(jvp, range(start, start + len(dx))))
    first = interpret(primal, *case.feeds)
    second = interpret(linear, *first[len(primal.outputs) - len(linear.inputs) + len(dx) :], *dx)
    moving = len(linear.outputs)
    fixed = len(expected) - moving
    found = [*first[:fixed], *second]
    given = jvp.inputs[start : start + len(dx)]
    apart = separate_linear(jvp, given) if jvp.has_bodies else jvp
    moved = forward_slice(apart.body, given)
    both = list(zip(jvp.outputs, apart.outputs, strict=True))
    order = [v for v, end in both if end not in moved]
    again = jvp.with_outputs([*order, *[v for v, end in both if end in moved]])
    feeds = [*case.feeds, *dx]
    _same(case, "unzip", again, feeds, interpret(again, *feeds), found)


@of(transforms.transpose)
def _transpose(case: Case) -> None:
    """`<u, F v>` is `<F' u, v>`."""
    jvp = transforms.linearize(case.graph, case.wrt)
    linear = transforms.dead_code(jvp.with_outputs(jvp.outputs[len(case.expected) :]))
    start, v = len(case.feeds), _tangents(case)
    turned = verify(transforms.transpose(linear, range(start, start + len(v))))
    if not linear.outputs or not _is_ordinary(linear, [*case.feeds, *v]):
        return
    forward = interpret(linear, *case.feeds, *v)
    u = [np.asarray(case.rng.normal(size=x.shape)).astype(x.dtype) for x in forward]
    if not _is_ordinary(turned, [*case.feeds, *u]):
        return
    backward = interpret(turned, *case.feeds, *u)
    left, right = _inner(u, forward), _inner(backward, v)
    floats = [x for e in linear.body for x in e.outputs if x.type.is_float]
    largest = max([1.0, *(_largest(x) for x in interpret(linear.with_outputs(floats), *case.feeds,
                                                         *v))])  # fmt: skip
    # What is rounded may be a result only: its cotangent is narrow, too. So is what loops hold.
    narrow = [x.dtype for x in (*linear.inputs, *_computed(linear)) if x.type.is_float]
    eps = max((np.finfo(dtype).eps for dtype in narrow), default=0.0)
    size = sum(float(np.sum(np.abs(x), dtype=np.float64)) for x in (*u, *backward))
    slack = _SLACK * float(eps) * largest * size
    demand(abs(left - right) <= slack, f"<u, F v> = {left}, but <F' u, v> = {right}")
    case.seen["transpose"] += 1


def _computed(graph: Graph) -> list[Value]:
    """The results of all equations, those in bodies too."""
    within = [v for e in graph.body for body in e.bodies for v in _computed(body)]
    return [*(v for e in graph.body for v in e.outputs), *within]


def _inner(xs: Arrays, ys: Arrays) -> float:
    return sum(float(np.sum(x.astype(np.float64) * y)) for x, y in zip(xs, ys, strict=True))


def _largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


@of(taylor)
def _taylor(case: Case) -> None:
    """Along a curve the derivatives are those of forward mode over forward mode."""
    order = int(case.rng.integers(2, 4))
    if not case.wrt or len(case.graph) > _LARGEST_NESTED:
        return
    seeds = [[_tangents_like(case, case.feeds[i]) for _ in range(order)] for i in case.wrt]
    graph = verify(taylor(case.graph, order, case.wrt))
    feeds = [*case.feeds, *(x for series in seeds for x in series)]
    if not _is_ordinary(graph, feeds):
        return
    found = interpret(graph, *feeds)
    count = len(case.expected)
    _same(case, "taylor", case.graph, case.feeds, case.expected, found[:count])
    expected, largest = nested_values(case.graph, case.wrt, case.feeds, seeds)
    narrow = [x.dtype for x in (*graph.inputs, *_computed(graph)) if x.type.is_float]
    eps = max((float(np.finfo(dtype).eps) for dtype in narrow), default=0.0)
    slack = _SLACK * eps * max([largest, *map(_largest, interpret(_all_floats(graph), *feeds))])
    if not slack < 1e-2 * max([1.0, *map(_largest, expected)]):
        return
    for ours, theirs in zip(found[count:], expected, strict=True):
        off = _largest(ours.astype(np.float64) - theirs)
        demand(off <= slack, f"jets are off by {off}, of {slack}:\n{ours}\n{theirs}")
    case.seen["taylor"] += 1


def _tangents_like(case: Case, x: np.ndarray) -> np.ndarray:
    return np.asarray(case.rng.normal(size=x.shape)).astype(x.dtype)


def _all_floats(graph: Graph) -> Graph:
    return graph.with_outputs([v for e in graph.body for v in e.outputs if v.type.is_float])


@of(strong_zeros)
def _strong_zeros(case: Case) -> None:
    """Along a direction without zeros there is nothing to suppress, but what is zero anyway."""
    jvp = transforms.linearize(case.graph, case.wrt[:1])
    dx = _tangents(case)[:1]
    if not dx:
        return
    result = verify(strong_zeros(jvp, len(case.feeds)))
    expected, found = (interpret(g, *case.feeds, *dx) for g in (jvp, result))
    for before, after in zip(expected, found, strict=True):
        settled = np.isfinite(before) if before.dtype.kind == "f" else np.ones(before.shape, bool)
        same = same_bits(before, after) | ((before == 0) & (after == 0))
        demand(np.all(same[settled]), f"{after!r} is not\n{before!r}")
    case.seen["strong_zeros"] += 1
