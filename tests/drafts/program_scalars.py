"""Random programs of numbers, short vectors and matrices with structural zeros, on Python floats.

Scalar code is generated whatever it costs, and compared with the interpreter on usual numbers, and
on zeros of both signs, infinities, NaNs and huge numbers. It may leave any of these to NumPy, but
must not return anything else. Half of the programs are derivatives, where zeros have any sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np
from program_checks import unsigned
from program_derivatives import demand
from program_draft import F64, Choices
from program_tolerance import differs

from primgraph.base.user_lines import Source
from primgraph.codegen import compile_graph
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.params import Array
from primgraph.ir.types import TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import constant
from primgraph.primitives.control import scan, while_loop
from primgraph.primitives.linear_algebra.cholesky import cholesky
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.linear_algebra.systems import inv, solve, triangular_solve
from primgraph.primitives.logic import less, logical_not, select
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import concat, permute, reshape, slice_
from primgraph.transforms import dead_code

_DERIVED = Source("model.py", 1).mark_derivative("tangent")
_STEPS = 14
_HUGE = 1e12
_FEEDS = 6
# Of the loops in which programs are tests: the first limit, which results hardly equal, and the
# largest count.
_FIRST, _MOST = 0.37, 3
_SHAPES = ((1, 1), (2, 2), (3, 3), (4, 4), (3, 1), (4, 1), (1, 3), (2, 3))
_ENTRIES = (0.0, 0.0, 0.0, -0.0, 1.0, 1.0, -1.0, 0.5, 6.1e-17)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e200, -1e308, 5e-324)

_OF_ONE: tuple[Callable[[Value], Any], ...] = (
    e.neg, e.sin, e.cos, e.abs_, e.sigmoid, e.erf, e.arctan, e.exp, e.sqrt, e.log,
    lambda x: e.sqrt(e.abs_(x)),
    lambda x: e.integer_pow(x, n=2),
    lambda x: e.rsqrt(e.add(e.mul(x, x), e.cos(x))),
)  # fmt: skip
_OF_TWO: tuple[Callable[[Value, Value], Any], ...] = (
    *[e.add, e.sub, e.mul] * 4, e.div, e.maximum, e.arctan2, e.logaddexp,
    lambda x, y: select(less(x, y), y, e.mul(x, y)),
    lambda x, y: e.add(x, e.div(constant(value=Array(np.zeros(x.shape))), y)),
)  # fmt: skip


@dataclass(frozen=True)
class ScalarProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 61, step)))

    @cached_property
    def count(self) -> int:
        return self.draw(0).below(_STEPS, 3)

    @cached_property
    def is_derived(self) -> bool:
        """Whether the sign of a zero is free, which decides a result of arctan2."""
        decided = any(eqn.op is e.arctan2 for eqn in self._drafted(None).body)
        return self.draw(2).chance(0.5) and not decided

    @cached_property
    def graph(self) -> Graph:
        return self._drafted(_DERIVED if self.is_derived else None)

    def _drafted(self, source: Source | None) -> Graph:
        draw = self.draw(1)
        builder = Builder("f", source=source)
        with builder:
            shapes = [draw.choose(_SHAPES) for _ in range(draw.below(4, 1))]
            values = [builder.input(TensorType(s, F64)) for s in shapes]
            for step in range(self.count):
                if step not in self.left_out:
                    values.append(_step(self.draw(100 + step), values))
            last = [values[-1], *(draw.choose(values) for _ in range(draw.below(3)))]
        return builder.graph(last)

    def feeds(self, number: int) -> list[np.ndarray]:
        """Numbers for the inputs; from the second time on some of them are special."""
        rng = np.random.default_rng((self.seed, 63, number))
        found = [rng.normal(size=v.shape) for v in self.graph.inputs]
        share = 0.3 if number else 0.0
        chosen = [(rng.random(x.shape) < share, rng.choice(_SPECIAL, x.shape)) for x in found]
        return [np.where(*pair, x) for pair, x in zip(chosen, found, strict=True)]

    def __str__(self) -> str:
        return f"scalar program {self.seed}, without {sorted(self.left_out)}\n{self.graph}"


def _step(draw: Choices, values: list[Value]) -> Value:
    x = draw.choose(values)
    alike = [v for v in values if v.shape == x.shape]
    match draw.below(8):
        case 0:
            return draw.choose(_OF_ONE)(x)
        case 1:
            return _moved(draw, x)
        case 2:
            return constant(value=Array(draw.rng.choice(_ENTRIES, x.shape)))
        case 3 | 4:
            return _product(draw, x, values)
        case 5:
            return _system(draw, x, values)
        case _:
            return draw.choose(_OF_TWO)(x, draw.choose(alike))


def _moved(draw: Choices, x: Value) -> Value:
    rows, columns = x.shape
    match draw.below(4):
        case 0:
            return permute(x, axes=(1, 0))
        case 1:
            return reshape(x, shape=(columns, rows))
        case 2:
            first = draw.below(rows)
            upper = slice_(x, starts=(first, 0), sizes=(rows - first, columns), steps=(1, 1))
            if not first:
                return upper
            lower = slice_(x, starts=(0, 0), sizes=(first, columns), steps=(1, 1))
            return concat(upper, lower, axis=0)
    return reshape(reduce_sum(x, axes=(1,)), shape=(rows, 1))


def _product(draw: Choices, x: Value, values: list[Value]) -> Value:
    fitting = [v for v in values if v.shape[0] == x.shape[1]]
    if fitting and draw.chance(0.8):
        return matmul(x, draw.choose(fitting))
    entries = draw.rng.choice(_ENTRIES, (x.shape[1], draw.below(5, 1)))
    return matmul(x, constant(value=Array(entries)))


def _system(draw: Choices, x: Value, values: list[Value]) -> Value:
    """A solution, an inverse or a factor of a matrix that is usually regular."""
    n = x.shape[0]
    a = matmul(x, permute(x, axes=(1, 0)))
    if draw.chance(0.9):
        a = e.add(a, constant(value=Array(np.eye(n) * 0.5)))
    b = draw.choose([v for v in values if v.shape[0] == n])
    match draw.below(4):
        case 0:
            return inv(a)
        case 1:
            return cholesky(a)
        case 2:
            lower, transposed = draw.chance(0.5), draw.chance(0.5)
            return triangular_solve(a, b, lower=lower, transposed=transposed, unit=draw.chance(0.3))
    return solve(a, b)


def check_scalars(program: ScalarProgram, seen: Counter[str]) -> None:
    # Equations that no result needs do not raise.
    graph = dead_code(program.graph)
    with mock.patch("primgraph.codegen.lower.scalars.program._CALL", 10**6):
        kernel = compile_graph(graph)
        looped = compile_graph(_in_loop(graph))
        tested = compile_graph(_in_test(graph))
    scalar = kernel._code.scalar
    demand(scalar is not None, "no scalar code")
    for number in range(_FEEDS):
        feeds = program.feeds(number)
        with np.errstate(all="ignore"):
            found = scalar(*feeds)
            try:
                expected = interpret(graph, *feeds)
            except np.linalg.LinAlgError:
                # Up to rounding, a singular matrix is a regular one with a huge inverse.
                huge = found is not None and max(np.abs(y).max() for y in found) > _HUGE
                demand(found is None or huge, "scalar code does not raise")
                continue
        seen["scalars: left to NumPy"] += found is None
        seen["scalars: computed"] += found is not None
        _check_test(tested, feeds, expected, number)
        if found is None:
            continue
        again = [y[1] for y in looped(*feeds)]
        if program.is_derived:
            expected, found, again = unsigned(expected), unsigned(found), unsigned(again)
        fault = differs(graph, feeds, expected, found)
        demand(not fault, f"scalar code, feeds {number}: {fault}")
        given = differs(graph, feeds, expected, again)
        demand(not given, f"scalar code in a loop, feeds {number}: {given}")
    seen["scalars"] += 1


def _in_loop(graph: Graph) -> Graph:
    """Two iterations of the program, whose results are stacked."""
    builder = Builder("f")
    with builder:
        inputs = [builder.input(v.type) for v in graph.inputs]
        params = {"carries": 0, "consts": len(inputs), "counted": False}
        found = scan(*inputs, body=graph, length=2, reverse=False, **params)
    return builder.graph(list(found))


def _in_test(graph: Graph) -> Graph:
    """A loop that goes on unless a result is greater than a growing limit; it returns its count."""
    builder, body = Builder("test"), Builder("body")
    with builder:
        inputs = [builder.input(v.type) for v in graph.inputs]
        limit = builder.input(TensorType((), F64))
        first = builder.inline(graph, inputs)[0]
        one = slice_(first, starts=(0, 0), sizes=(1, 1), steps=(1, 1))
        test = builder.graph([logical_not(less(limit, reshape(one, shape=())))])
    with body:
        inputs = [body.input(v.type) for v in graph.inputs]
        limit = body.input(TensorType((), F64))
        step = body.graph([e.add(limit, constant(value=Array(np.array(1.0))))])
    builder = Builder("f")
    with builder:
        inputs = [builder.input(v.type) for v in graph.inputs]
        start = constant(value=Array(np.array(_FIRST)))
        params = {"test": test, "body": step, "consts": len(inputs), "limit": _MOST}
        return builder.graph([while_loop(*inputs, start, **params)[1]])


def _steps(expected: list[np.ndarray]) -> int:
    """Return the iteration count of that loop."""
    first = expected[0].flat[0]
    return next((k for k in range(_MOST) if first > _FIRST + k), _MOST)


def _check_test(
    kernel: Any, feeds: list[np.ndarray], expected: list[np.ndarray], number: int
) -> None:
    """Compare the iteration count, unless rounding decides about it."""
    if np.any(np.isfinite(expected[0]) & (np.abs(expected[0]) > _HUGE)):
        return
    try:
        with np.errstate(all="ignore"):
            steps = kernel(*feeds)[0]
    except np.linalg.LinAlgError:
        # With NaNs, LAPACK finds matrices singular or not by the order of their elements.
        demand(any(np.isnan(x).any() for x in expected), f"raises in a test, feeds {number}")
        return
    demand(steps == _steps(expected), f"scalar code in a test, feeds {number}")
