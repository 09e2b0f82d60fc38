"""Long programs, as a loop of Python leaves them: random steps, one after another.

In C, equal nests of such programs become calls of one function, and long files are compiled in
units. A program has one to three kinds of steps, in runs and at random, so that some nests occur
often, some seldom, and values of some steps are results.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from unittest import mock

import numpy as np
from native_checks import faults
from program_bodies import grow
from program_draft import F64, Choices, Draft
from program_unrolled import pulled

from primgraph.codegen.targets.c import lines
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import TensorType
from primgraph.primitives.elementwise import tanh
from primgraph.transforms import clean_up, lower

# Equations of a program before and after it is cleaned up, and of a step.
_RECORDED, _LONG = 1500, 1000
_SHORTEST, _LONGEST = 4, 60
_MOST_KINDS = 3
# How many values are results, and how many floats are kept small.
_SHOWN, _BOUNDED = 0.02, 0.7
_SLOPES = 0.4
# Lines of a file that is compiled in units, and of a unit, so that these programs have several.
_WHOLE, _LINES = 400, 200


def long_program(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of that seed, without operators, and its feeds."""
    rng = np.random.default_rng((seed, 61))
    while True:
        first = _draft(rng, [])
        for i in range(first.below(4, 1)):
            first.input(TensorType(first.shape(), F64 if i == 0 else first.dtype()))
        if not all(x.size for x in first.feeds):
            continue
        graph = clean_up(_row_of_steps(first))
        # Some steps are soon at a fixed point.
        if len(graph) > _LONG:
            return graph, first.feeds


def _row_of_steps(first: Draft) -> Graph:
    types = [v.type for v in first.builder.inputs]
    steps = [_step(first.rng, types) for _ in range(first.below(_MOST_KINDS + 1, 1))]
    builder = Builder("long")
    state = [builder.input(t, f"x{i}") for i, t in enumerate(types)]
    shown: list[Value] = []
    with builder:
        # A step at a fixed point adds no equations.
        for _ in range(_RECORDED // _SHORTEST):
            step = first.choose(steps)
            for _ in range(first.choose((1, 1, 2, 9))):
                state = _copy(builder, step, state)
                if first.chance(_SHOWN):
                    shown.append(first.choose(state))
            if len(builder.body) >= _RECORDED:
                break
    return builder.graph([*state, *shown])


def _draft(rng: np.random.Generator, types: Sequence[TensorType]) -> Draft:
    draft = Draft(rng, smooth=True)
    for type in types:
        draft.input(type)
    return draft


def _step(rng: np.random.Generator, types: Sequence[TensorType]) -> Graph:
    """A graph from values of these types to such values, which has some equations."""
    while True:
        draft = _draft(rng, types)
        for _ in range(draft.below(7, 2)):
            grow(draft)
        with draft.builder:
            graph = draft.builder.graph([_result(draft, t) for t in types])
        graph = clean_up(lower(graph))
        if _SHORTEST <= len(graph) <= _LONGEST:
            return graph


def _result(draft: Draft, type: TensorType) -> Value:
    """A late value of that type; floats are mostly kept from growing from step to step."""
    found = [v for v in draft.pool[len(draft.feeds) :] if v.type == type]
    value = draft.choose(found) if found else draft.typed(type)
    return tanh(value) if type.is_float and draft.chance(_BOUNDED) else value


def _copy(builder: Builder, step: Graph, state: Sequence[Value]) -> list[Value]:
    known = dict(zip(step.inputs, state, strict=True))
    for eqn in step.body:
        results = builder.copy(eqn, tuple([known[v] for v in eqn.inputs]))
        known.update(zip(eqn.outputs, results, strict=True))
    return [known[v] for v in step.outputs]


def check_long(seed: int) -> None:
    """C computes what the interpreter does, and so do the slopes of some programs.

    Every other time files are compiled in units.
    """
    graph, feeds = long_program(seed)
    draw = Choices(np.random.default_rng((seed, 67)))
    ends = [v for v in graph.outputs if v.type.is_float]
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    if ends and draw.chance(_SLOPES):
        graph = clean_up(pulled(graph.with_outputs(ends[:1]), wrt), last=True)
        count = len(feeds)
        feeds += [np.asarray(draw.rng.normal(size=v.shape), v.dtype) for v in graph.inputs[count:]]
    with ExitStack() as stack, np.errstate(all="ignore"):
        if draw.chance(0.5):
            stack.enter_context(mock.patch.multiple(lines, _WHOLE=_WHOLE, _LINES=_LINES))
        for _, fault in faults([graph], [feeds]):
            raise AssertionError(f"long program {seed} of {len(graph)} equations: {fault}")
