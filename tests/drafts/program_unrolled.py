"""Branches and loops of random programs beside the same without any, as Python runs them.

At known numbers every condition is decided: what a program computes there is a row of equations,
whose derivatives need no rules of branches and loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from complex_step import widen_floats
from program_derivatives import demand, equations_of
from program_draft import Choices
from program_tolerance import differs, roughly_differs

from primgraph.codegen import compile_graph
from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS, is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import TensorType, add_leading_axis
from primgraph.ir.verify import verify
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.shapes import concat, reshape, slice_
from primgraph.transforms import batch, clean_up, dead_code, linearize, lower, transpose

Arrays = Sequence[np.ndarray]

# By how many units in the last place each equation may be off, as sums are in another order.
_ULPS = 16.0
# How many equations a derivative may have that is compared.
_MOST_EQUATIONS = 3000
_HIGHER = 0.5
_THIRD = 0.35
_KERNELS = 0.25
_BATCHED = 0.4


class Known(NamedTuple):
    """A value of the unrolled program, and its number."""

    value: Value
    array: np.ndarray


def unrolled(graph: Graph, feeds: Arrays) -> Graph:
    """What `graph` does at `feeds`, without branches and loops.

    It is right at these feeds, and where all conditions are as they are there.
    """
    builder = Builder(graph.name)
    inputs = [
        Known(builder.input(v.type, v.hint), np.asarray(x, v.dtype))
        for v, x in zip(graph.inputs, feeds, strict=True)
    ]
    with builder, np.errstate(all="ignore"):
        found = _Unroller(builder).run(graph, inputs)
    return builder.graph([k.value for k in found])


class _Unroller:
    """Records equations, and computes them as it goes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def run(self, graph: Graph, inputs: Sequence[Known]) -> list[Known]:
        known: dict[Value, Known] = dict(zip(graph.inputs, inputs, strict=True))
        for eqn in graph.body:
            operands = [known[v] for v in eqn.inputs]
            by_python = getattr(self, eqn.op.name, None) if eqn.op.has_bodies else self.copied
            known.update(zip(eqn.outputs, by_python(eqn, operands), strict=True))
        return [known[v] for v in graph.outputs]

    def copied(self, eqn: Equation, operands: Sequence[Known]) -> list[Known]:
        values = self.builder.copy(eqn, tuple([k.value for k in operands]))
        arrays = eqn.op.evaluate([k.array for k in operands], eqn.kwargs)
        pairs = zip(values, arrays, strict=True)
        return [Known(v, np.asarray(x, v.dtype)) for v, x in pairs]

    def cond(self, eqn: Equation, operands: Sequence[Known]) -> list[Known]:
        chosen, *given = operands
        last = len(eqn.bodies) - 1
        return self.run(eqn.bodies[min(max(int(chosen.array), 0), last)], given)

    def checkpoint(self, eqn: Equation, operands: Sequence[Known]) -> list[Known]:
        return self.run(eqn.bodies[0], operands)

    def scan(self, eqn: Equation, operands: Sequence[Known]) -> list[Known]:
        params = eqn.kwargs
        carries, count = params["carries"], params["length"]
        if params["counted"]:
            first, *operands = operands
            trips = max(int(first.array), 0)
            count = trips if count is TRIPS else min(trips, count)
        begin = params["consts"] + carries
        fixed, state = list(operands[: params["consts"]]), list(operands[params["consts"] : begin])
        rows: dict[int, list[Known]] = {}
        for k in sorted(range(count), reverse=params["reverse"]):
            row = [self.row(x, k) for x in operands[begin:]]
            found = self.run(params["body"], [*fixed, *state, *row])
            state, rows[k] = found[:carries], found[carries:]
        return [*state, *self.stacked(eqn.outputs[carries:], rows)]

    def while_loop(self, eqn: Equation, operands: Sequence[Known]) -> list[Known]:
        params = eqn.kwargs
        fixed, state = list(operands[: params["consts"]]), list(operands[params["consts"] :])
        carries, limit = len(state), params["limit"]
        rows: dict[int, list[Known]] = {}
        while limit is None or len(rows) < limit:
            if not self.run(params["test"], [*fixed, *state])[0].array:
                break
            found = self.run(params["body"], [*fixed, *state])
            state, rows[len(rows)] = found[:carries], found[carries:]
        trips = self.constant(eqn.outputs[carries].type, len(rows))
        return [*state, trips, *self.stacked(eqn.outputs[carries + 1 :], rows)]

    def row(self, x: Known, k: int) -> Known:
        rest = x.value.shape[1:]
        zeros, ones = (0,) * len(rest), (1,) * len(rest)
        part = slice_(x.value, starts=(k, *zeros), sizes=(1, *rest), steps=(1, *ones))
        return Known(reshape(part, shape=rest), x.array[k])

    def stacked(self, outputs: Sequence[Value], rows: dict[int, list[Known]]) -> list[Known]:
        """Rows on each other; those of no trip are zeros."""
        made = []
        for i, value in enumerate(outputs):
            empty = self.constant(TensorType(value.shape[1:], value.dtype), 0)
            count = len(rows) if is_open(value.shape) else value.shape[0]
            parts = [rows[k][i] if k in rows else empty for k in range(count)]
            if not parts:
                made.append(self.constant(add_leading_axis(0, empty.value.type), 0))
                continue
            lifted = [reshape(p.value, shape=(1, *p.value.shape)) for p in parts]
            array = np.stack([p.array for p in parts])
            made.append(Known(concat(*lifted, axis=0), array))
        return made

    def constant(self, type: TensorType, number: int) -> Known:
        return Known(filled_constant(number, type), np.full(type.shape, number, type.dtype))


# What has to be the same.


def check_unrolled(
    graph: Graph,
    feeds: Arrays,
    others: Arrays,
    smooth: bool,
    rng: np.random.Generator,
    seen: Counter[str],
) -> None:
    """Values, and derivatives in both modes up to the third order, are those without loops."""
    graph = lower(graph)
    for arrays in (feeds, others):
        plain = unrolled(graph, arrays)
        demand(not plain.has_bodies, "there is a loop left")
        _compare("unrolled", graph, plain, arrays)
    seen["unrolled"] += 1
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    ends = [v for v in graph.outputs if v.type.is_float]
    if not smooth or not wrt or not ends:
        return
    looped = widen_floats(dead_code(graph.with_outputs(ends)))
    if not looped.has_bodies:
        return
    wide = [np.asarray(x, v.dtype) for v, x in zip(looped.inputs, feeds, strict=True)]
    plain = unrolled(looped, wide)
    draw = Choices(rng)
    modes = ["f", "r"]
    if draw.chance(_HIGHER):
        modes.append(draw.choose(("ff", "fr", "rf", "rr")))
    if draw.chance(_THIRD):
        modes.append("".join(draw.choose("fr") for _ in range(3)))
    for order in modes:
        _check_order(order, looped, plain, wrt, wide, draw, seen)


def _check_order(
    order: str,
    looped: Graph,
    plain: Graph,
    wrt: Sequence[int],
    feeds: Arrays,
    draw: Choices,
    seen: Counter[str],
) -> None:
    """Modes are taken from the left to the right: `fr` is reverse mode over forward mode."""
    for mode in order:
        take = pushed if mode == "f" else pulled
        looped, plain = take(looped, wrt), take(plain, wrt)
        if max(len(list(equations_of(g))) for g in (looped, plain)) > _MOST_EQUATIONS:
            seen["unrolled: too long"] += 1
            return
    verify(looped)
    more = [np.asarray(draw.rng.normal(size=t.shape)) for t in looped.input_types[len(feeds) :]]
    given = [*feeds, *more]
    if not _compare(f"unrolled, {order}", looped, plain, given):
        seen["unrolled: slopes that are not finite"] += 1
        return
    seen[f"unrolled, {order}"] += 1
    expected = interpret(plain, *given)
    if draw.chance(_KERNELS):
        style = draw.choose(("planned", "readable"))
        found = compile_graph(clean_up(looped, last=True), style=style).flat(*given)
        _demand_close(f"{style} kernel, unrolled, {order}", plain, given, expected, found)
    if draw.chance(_BATCHED):
        _check_batch(f"batch, unrolled, {order}", looped, plain, given, draw)


def _check_batch(what: str, looped: Graph, plain: Graph, feeds: Arrays, draw: Choices) -> None:
    """The derivative of each of two samples, of which some inputs are the same."""
    axes = [0 if draw.chance(0.6) else None for _ in feeds]
    many = verify(batch(looped, 2, axes))
    stacked = [x if a is None else np.stack([x, x]) for x, a in zip(feeds, axes, strict=True)]
    expected = interpret(plain, *feeds)
    found = interpret(many, *stacked)
    for k in range(2):
        _demand_close(f"sample {k}, {what}", plain, feeds, expected, [x[k] for x in found])


def pushed(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The tangents of the outputs; those of the inputs are inputs, too."""
    jvp = linearize(graph, wrt)
    return dead_code(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]))


def pulled(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The cotangents of the inputs; those of the outputs are inputs, too."""
    jvp = linearize(graph, wrt, role="cotangent")
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    count = len(graph.inputs)
    return dead_code(transpose(linear, range(count, count + len(wrt))))


def _compare(what: str, graph: Graph, plain: Graph, feeds: Arrays) -> bool:
    """Whether there are only finite numbers, all of which are the same then."""
    with np.errstate(all="ignore"):
        expected, found = interpret(plain, *feeds), interpret(graph, *feeds)
    if what == "unrolled":
        fault = differs(plain, feeds, expected, found)
        demand(not fault, f"{what}: {fault}\n{plain}")
        return True
    if not all(np.all(np.isfinite(x)) for x in expected):
        return False
    _demand_close(what, plain, feeds, expected, found)
    return True


def _demand_close(
    what: str, plain: Graph, feeds: Arrays, expected: Arrays, found: Sequence[Any]
) -> None:
    scale = max([1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in expected)])
    pairs = list(zip(expected, found, strict=True))
    if all(x.shape == y.shape and np.all(np.abs(x - y) <= 1e-9 * scale) for x, y in pairs):
        return
    fault = roughly_differs(plain, feeds, expected, found, _ULPS)
    demand(not fault, f"{what}: {fault}")
