"""Random programs written again by the operators of users: on tensors Python runs the loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from program_derivatives import demand
from program_tolerance import differs, roughly_differs
from program_unrolled import pulled

import primgraph as pg
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.operators.call import handle_operator
from primgraph.operators.variable import Variable
from primgraph.transforms import dead_code

_ULPS = 16.0


def replayed(graph: Graph, handles: Sequence[Any]) -> list[Any]:
    """What `graph` computes from tensors, or from variables of a program."""
    known: dict[Value, Any] = dict(zip(graph.inputs, handles, strict=True))
    for eqn in graph.body:
        given = [known[v] for v in eqn.inputs]
        if eqn.inputs and not eqn.op.has_bodies:
            found = _recorded(eqn, given)
        elif eqn.op.has_bodies:
            made = _WRITTEN[eqn.op.name](eqn, given)
            # Without a tensor among what it is given, arrays are given back.
            found = [x if isinstance(x, pg.Tensor | Variable) else pg.tensor(x) for x in made]
        else:
            found = [pg.tensor(x) for x in eqn.op.evaluate([], eqn.kwargs)]
        known.update(zip(eqn.outputs, found, strict=True))
    return [known[v] for v in graph.outputs]


def _recorded(eqn: Equation, given: Sequence[Any]) -> list[Any]:
    inputs = list(dict.fromkeys(eqn.inputs))
    alone = Graph(inputs, [eqn], eqn.outputs, eqn.op.name)
    by_value = dict(zip(eqn.inputs, given, strict=True))

    def recorded(*handles: Variable) -> list[Variable]:
        recorder: Any = handles[0].recorder
        values = recorder.inline(alone, [v.value for v in handles])
        return [Variable(recorder, v) for v in values]

    found: list[Any] = handle_operator(recorded)(*[by_value[v] for v in inputs])
    return found


def _cond(eqn: Equation, given: Sequence[Any]) -> list[Any]:
    chosen, *operands = given
    branches = [lambda *xs, b=b: replayed(b, xs) for b in eqn.bodies]
    if chosen.dtype == bool:
        found: list[Any] = pg.cond(chosen, branches[1], branches[0], *operands)
    else:
        found = pg.switch(chosen, branches, *operands)
    return found


def _scan(eqn: Equation, given: Sequence[Any]) -> list[Any]:
    params = eqn.kwargs
    consts, begin = params["consts"], params["consts"] + params["carries"]
    fixed, carries = given[:consts], params["carries"]

    def trip(carry: Any, row: Any) -> Any:
        found = replayed(params["body"], [*fixed, *carry, *row])
        return found[:carries], found[carries:]

    carry, ys = pg.scan(
        trip,
        list(given[consts:begin]),
        list(given[begin:]),
        length=params["length"],
        reverse=params["reverse"],
    )
    return [*carry, *ys]


def _while(eqn: Equation, given: Sequence[Any]) -> list[Any]:
    params = eqn.kwargs
    fixed, trips = given[: params["consts"]], pg.tensor(np.array(0))
    state, count = pg.while_loop(
        lambda carried: replayed(params["test"], [*fixed, *carried[0]])[0],
        lambda carried: (replayed(params["body"], [*fixed, *carried[0]]), carried[1] + 1),
        (list(given[params["consts"] :]), trips),
        max_trips=params["limit"],
    )
    return [*state, count]


def _checkpoint(eqn: Equation, given: Sequence[Any]) -> list[Any]:
    found: list[Any] = pg.checkpoint(lambda *xs: replayed(eqn.bodies[0], xs))(*given)
    return found


_WRITTEN = {"checkpoint": _checkpoint, "cond": _cond, "scan": _scan, "while_loop": _while}


def check_replayed(
    graph: Graph, feeds: Sequence[np.ndarray], smooth: bool, rng: np.random.Generator,
    seen: Counter[str],
) -> None:  # fmt: skip
    """Values, and gradients along random cotangents, are those of the program."""
    expected = interpret(graph, *feeds)
    tensors = [pg.tensor(x, requires_grad=x.dtype.kind == "f") for x in feeds]
    found = replayed(graph, tensors)
    fault = differs(graph, feeds, expected, [t.numpy() for t in found])
    demand(not fault, f"replayed on tensors: {fault}")
    seen["replayed on tensors"] += 1
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    ends = [i for i, v in enumerate(graph.outputs) if v.type.is_float]
    if not smooth or not any(found[i].requires_grad for i in ends):
        return
    reverse = pulled(dead_code(graph.with_outputs([graph.outputs[i] for i in ends])), wrt)
    cts = [rng.normal(size=graph.outputs[i].shape).astype(graph.outputs[i].dtype) for i in ends]
    expected = interpret(reverse, *feeds, *cts)
    if not all(np.all(np.isfinite(x)) for x in expected):
        return
    reached = [(found[i], pg.tensor(c)) for i, c in zip(ends, cts, strict=True)]
    reached = [(t, c) for t, c in reached if t.requires_grad]
    slopes = pg.autograd.grad(
        [t for t, _ in reached],
        [tensors[i] for i in wrt],
        [c for _, c in reached],
        materialize_grads=True,
    )
    arrays = [t.numpy() for t in slopes]
    fault = roughly_differs(reverse, [*feeds, *cts], expected, arrays, _ULPS)
    demand(not fault, f"gradients replayed on tensors: {fault}")
    seen["replayed gradients"] += 1
