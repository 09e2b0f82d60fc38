"""Programs whose sizes lie just below, at and just above those at which code changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from program_checks import check_round_trips, demand_equal
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.types import TensorType
from primgraph.program.compile import optimize_graph

Build = Callable[[Choices, int], tuple[Callable[..., Any], Sequence[TensorType]]]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number in the code, by module and name, and programs whose size is compared with it.

    The size is `unit` times smaller than the number where that counts bytes.
    """

    module: str
    name: str
    build: Build
    unit: int = 1

    @property
    def limit(self) -> int:
        return int(getattr(import_module(f"primgraph.{self.module}"), self.name)) // self.unit


def _elements(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """Functions, sums and moves of so many elements, beside a constant of as many."""
    table = draw.rng.normal(size=size)
    turned = draw.chance(0.5)
    order = draw.rng.permutation(size)

    def function(x: pg.Variable, y: pg.Variable) -> Any:
        z = pg.logaddexp(x, y * table) + pg.erf(x)
        moved = (pg.flip(z) if turned else pg.take(z, order)) + pg.arange(size, dtype="float64")
        return z, pg.sum(moved * x), pg.cumsum(pg.tanh(moved)), pg.argmax(y), pg.roll(y, 1)

    return function, [pg.spec(size), pg.spec(size)]


def _joined(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """So many parts, nested in a concatenation."""
    first = draw.below(size - 1, 1)

    def function(x: pg.Variable) -> Any:
        parts = [x[i : i + 2] * float(i % 3 + 1) for i in range(size)]
        inner = pg.concatenate(parts[:first])
        return pg.concatenate([inner, *parts[first:]]) * 2.0

    return function, [pg.spec(size + 1)]


def _long(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """So many equations, of single numbers or of arrays."""
    shape = draw.choose(((), (3,)))
    steps = draw.rng.integers(0, 3, size)

    def function(x: pg.Variable, y: pg.Variable) -> Any:
        z = x
        for i, step in enumerate(steps):
            z = (pg.sin(z), z + y, z * (1.0 + 1.0 / (i + 2)) if i % 50 else pg.tanh(z))[step]
        return z, y

    return function, [pg.spec(shape), pg.spec(shape)]


def _many_inputs(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    def function(*inputs: pg.Variable) -> Any:
        total = inputs[0]
        for x in inputs[1:]:
            total = pg.sin(total) * x + inputs[0]
        return total

    return function, [pg.spec(())] * size


def _product(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """Products that sum over so many elements."""

    def function(x: pg.Variable, y: pg.Variable) -> Any:
        return x @ y, x[0] @ y[:, 0], pg.sum(x, axis=1), (x * 2.0) @ x.T

    return function, [pg.spec((2, size)), pg.spec((size, 3))]


def _powers(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    def function(x: pg.Variable) -> Any:
        z = pg.tanh(x) * 0.5 + 1.0
        return z**size, z**-size, (z * z) ** (size // 2)

    return function, [pg.spec(3)]


def _assigned(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """A chain of so many assignments, and one of as many choices."""

    def function(x: pg.Variable, y: pg.Variable) -> Any:
        z = w = x
        for i in range(size):
            z = pg.set_slice(z, i, y[i] * 2.0)
            w = pg.where(y > i * 0.1, pg.sin(w), x)
        return z, w, z[::-1]

    return function, [pg.spec(size + 2), pg.spec(size + 2)]


def _chained(draw: Choices, size: int) -> tuple[Callable[..., Any], Sequence[TensorType]]:
    """A product of so many matrices."""

    def function(*matrices: pg.Variable) -> Any:
        product = matrices[0]
        for x in matrices[1:]:
            product = product @ (x * 0.5)
        return product

    widths = draw.rng.integers(1, 4, size + 1).tolist()
    return function, [pg.spec((n, m)) for n, m in pairwise(widths)]


THRESHOLDS = (
    Threshold("codegen.ops.spelling.compositions", "_FEW", _elements),
    Threshold("codegen.ops.spelling.literals", "SPELLED", _elements),
    Threshold("codegen.ops.reductions", "_PAIRWISE", _elements),
    Threshold("codegen.lower.scalars.program", "MOST_ELEMENTS", _elements),
    Threshold("ir.params", "_COPIED", _elements, 8),
    Threshold("ir.text", "_INLINE", _elements, 8),
    Threshold("ir.text", "_SPELLED", _elements),
    Threshold("transforms.dataflow.value_bounds", "_NEAR", _elements),
    Threshold("transforms.optimize.fold_constants", "_SMALL", _elements),
    Threshold("transforms.optimize.fold_constants", "_LARGEST", _elements),
    Threshold("transforms.rewrite.sink_moves", "_LARGE", _elements),
    Threshold("transforms.rewrite.slices", "_WIDEST", _joined),
    Threshold("codegen.lower.scalars.program", "LONGEST", _long),
    Threshold("codegen.ir.schedule", "CHUNK", _long),
    Threshold("codegen.targets.text.module", "MANY", _long),
    Threshold("codegen.lower.scalars.program", "WIDEST", _many_inputs),
    Threshold("codegen.lower.arrays.steps", "LONGEST_PRODUCT", _product),
    Threshold("operators.elementwise.arithmetic", "_LARGEST_INTEGER_POWER", _powers),
    Threshold("transforms.rewrite.functions", "_LARGEST", _powers),
    Threshold("transforms.rewrite.assembly", "_LONGEST", _assigned),
    Threshold("transforms.dataflow.masks.guards", "_NESTING", _assigned),
    Threshold("transforms.optimize.matrix_chain", "_LONGEST", _chained),
)

_SIDES = {-1: "below", 0: "at", 1: "above"}


def sides() -> dict[str, int]:
    """A count of zero for each side of each threshold."""
    names = [f"{t.module}.{t.name}" for t in THRESHOLDS]
    return {f"{name} {side}": 0 for name in names for side in _SIDES.values()}


def check_sizes(seed: int, seen: Counter[str] | None = None) -> None:
    """A program at one of the thresholds: kernels, passes and gradients are those of the text.

    Three times as many seeds in a row as there are thresholds meet each from all sides.
    """
    seen = Counter() if seen is None else seen
    draw = Choices(np.random.default_rng((seed, 11)))
    threshold = THRESHOLDS[seed % len(THRESHOLDS)]
    side = seed // len(THRESHOLDS) % 3 - 1
    size = threshold.limit + side
    function, specs = threshold.build(draw, size)
    graph = pg.trace(function, *specs)
    feeds = [draw.rng.normal(size=s.shape) for s in specs]
    check_round_trips(graph)
    try:
        _check_kernels(graph, feeds, draw)
        _check_gradient(graph, feeds, draw)
    except Exception as error:
        raise AssertionError(f"{threshold.name} {threshold.build.__name__} {size}") from error
    seen[f"{threshold.module}.{threshold.name} {_SIDES[side]}"] += 1


def _check_kernels(graph: Graph, feeds: list[np.ndarray], draw: Choices) -> None:
    plain = optimize_graph(graph)
    expected = interpret(plain, *feeds)
    demand_equal("passes", graph, feeds, interpret(graph, *feeds), expected)
    for style in ("planned", "readable"):
        kernel = compile_graph(plain, style=style)
        demand_equal(f"{style} kernel", plain, feeds, expected, kernel.flat(*feeds))


def _check_gradient(graph: Graph, feeds: list[np.ndarray], draw: Choices) -> None:
    """The gradient along a direction is what forward mode gives."""
    with pg.Program() as program:
        inputs = [pg.data(f"x{i}", v.type.shape) for i, v in enumerate(graph.inputs)]
        values = program.builder.inline(graph, [x.value for x in inputs])
        results = [pg.Variable(program.builder, v) for v in values if v.type.is_float]
        total = sum((pg.mean(pg.tanh(y)) for y in results), start=pg.zeros(()))
        seeds = [draw.rng.normal(size=x.shape) for x in feeds]
        slopes = pg.grad(total, inputs, materialize_grads=True)
        along = pg.forward_grad(total, inputs, seeds)
    feed = {x.name: array for x, array in zip(inputs, feeds, strict=True)}
    *found, tangent = pg.Executor().run(program, feed, [*slopes, along])
    pairs = list(zip(found, seeds, strict=True))
    size = sum(float(np.sum(np.abs(g * d))) for g, d in pairs)
    product = sum(float(np.sum(g * d)) for g, d in pairs)
    close = abs(product - tangent) <= 1e-9 * (1 + size)
    demand(close or np.isnan([product, tangent]).all(), f"{product} is not {tangent}")
