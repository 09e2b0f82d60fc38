"""Random programs of which a part is a custom function, with rules that are its true derivatives.

What is drafted is cut out of a random program: equations that stand together become a function,
whose rules are what `linearize` and `transpose` make of them. So all that is computed and derived
has to be what it is without it.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from complex_step import widen_floats
from program_derivatives import demand
from random_programs import Program

import primgraph as pg
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse, to_text
from primgraph.operators.call import handle_operator
from primgraph.operators.variable import Variable
from primgraph.transforms import batch, dead_code, linearize, lower, transpose

KINDS = ("custom_jvp", "custom_vjp", "custom_gradient", "Function", "both")
_CLOSE = 1e-7
_SAMPLES = 2


def check_custom(program: Program, seen: Counter[str] | None = None) -> None:
    """Make a part of `program` a custom function, and compare values and derivatives."""
    seen = Counter() if seen is None else seen
    rng = np.random.default_rng((program.seed, 11))
    graph = dead_code(lower(program.graph))
    floats = [v for v in graph.outputs if v.type.is_float]
    graph = widen_floats(dead_code(graph.with_outputs(floats)))
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    if not program.smooth or not wrt or not floats or len(graph.body) < 2:
        seen["custom: nothing to differentiate"] += 1
        return
    kind = KINDS[int(rng.integers(len(KINDS)))]
    part, inner = _cut(graph, rng)
    if not any(v.type.is_float for v in part.inputs):
        seen["custom: no operand of floats"] += 1
        return
    function = _function(kind, part)
    ruled = _ruled(graph, part, inner, function)
    demand(parse(to_text(ruled), ruled.constants) == ruled, "custom: the text reads back")
    demand(pickle.loads(pickle.dumps(ruled)) == ruled, "custom: a pickle reads back")
    feeds = [np.asarray(x, v.dtype) for x, v in zip(program.feeds, graph.inputs, strict=True)]
    guarded = _chooses(graph, feeds)
    _compare("values", ruled, graph, feeds, seen, guarded)
    tangents = [rng.normal(size=graph.inputs[i].shape) for i in wrt]
    cotangents = [rng.normal(size=v.shape) for v in graph.outputs]
    pushed, pulled = ([f(g, wrt) for g in (ruled, graph)] for f in (_pushed, _pulled))
    _compare("tangents", *pushed, [*feeds, *tangents], seen, guarded)
    _compare("cotangents", *pulled, [*feeds, *cotangents], seen, guarded)
    twice = [_pulled(g, wrt) for g in pushed]
    _compare("cotangents of tangents", *twice, [*feeds, *tangents, *cotangents], seen, guarded)
    twice = [_pushed(g, wrt) for g in pulled]
    _compare("tangents of cotangents", *twice, [*feeds, *cotangents, *tangents], seen, guarded)
    axes = [0] * len(graph.inputs) + [None] * len(graph.outputs)
    many = [batch(g, _SAMPLES, axes) for g in pulled]
    stacked = [np.stack([x] * _SAMPLES) for x in feeds]
    _compare("batches of cotangents", *many, [*stacked, *cotangents], seen, guarded)
    _compare_tensors(ruled, part, function, feeds, rng, seen)
    seen[f"custom: {kind}"] += 1


def _cut(graph: Graph, rng: np.random.Generator) -> tuple[Graph, range]:
    """A part of `graph` as one of its own, and where its equations stand."""
    size = len(graph.body)
    start = int(rng.integers(size - 1))
    inner = range(start, start + 1 + int(rng.integers(min(8, size - start))))
    body = [graph.body[i] for i in inner]
    made = {v for e in body for v in e.outputs}
    inputs = dict.fromkeys(v for e in body for v in e.inputs if v not in made)
    used = {v for e in graph.body[inner.stop :] for v in e.inputs}.union(graph.outputs)
    outputs = [v for e in body for v in e.outputs if v in used]
    return Graph(list(inputs), body, outputs, "part"), inner


def _apply(graph: Graph) -> Callable[..., list[Any]]:
    """`graph` as a function of variables and tensors."""

    def recorded(*handles: Variable) -> list[Variable]:
        recorder = handles[0].recorder
        values = recorder.inline(graph, [v.value for v in handles])  # type: ignore[attr-defined]
        return [Variable(recorder, v) for v in values]

    return handle_operator(recorded)


def _pushed(graph: Graph, wrt: Sequence[int]) -> Graph:
    jvp = linearize(graph, wrt)
    return dead_code(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]))


def _pulled(graph: Graph, wrt: Sequence[int]) -> Graph:
    jvp = linearize(graph, wrt, role="cotangent")
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    count = len(graph.inputs)
    return dead_code(transpose(linear, range(count, count + len(wrt))))


def _function(kind: str, part: Graph) -> Callable[..., Any]:
    """The function that `part` computes, with its own derivative as its rules."""
    value = _apply(part)
    wrt = [i for i, v in enumerate(part.inputs) if v.type.is_float]
    ends = [i for i, v in enumerate(part.outputs) if v.type.is_float]
    smooth = dead_code(part.with_outputs(part.outputs[i] for i in ends))
    push, pull = (_apply(f(smooth, wrt)) for f in (_pushed, _pulled))

    def tangents(primals: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        found = push(*primals, *[given[i] for i in wrt]) if ends else []
        by_place = dict(zip(ends, found, strict=True))
        return [by_place.get(i) for i in range(len(part.outputs))]

    def cotangents(primals: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        found = pull(*primals, *[given[i] for i in ends])
        by_place = dict(zip(wrt, found, strict=True))
        return [by_place.get(i) for i in range(len(part.inputs))]

    if kind == "Function":
        return _class(value, cotangents).apply
    if kind == "custom_gradient":
        return pg.custom_gradient(lambda *xs: (value(*xs), lambda *cts: cotangents(xs, cts)))
    custom = pg.custom_jvp(lambda *xs: value(*xs))
    if kind in ("custom_jvp", "both"):
        custom.defjvp(lambda xs, dxs: (custom(*xs), tangents(xs, dxs)))
    if kind in ("custom_vjp", "both"):
        custom.defvjp(lambda *xs: (custom(*xs), xs), lambda xs, cts: cotangents(xs, cts))
    return custom


def _class(value: Any, cotangents: Any) -> type[pg.Function]:
    class Part(pg.Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            ctx.save_for_backward(*xs)
            return tuple(value(*xs))

        @staticmethod
        def backward(ctx: Any, *cts: Any) -> Any:
            return tuple(cotangents(ctx.saved_tensors, cts))

    return Part


def _ruled(graph: Graph, part: Graph, inner: range, function: Callable[..., Any]) -> Graph:
    """`graph` with the function in the place of its part."""
    builder = Builder("ruled")
    moved: dict[Value, Value] = {v: builder.input(v.type, v.hint) for v in graph.inputs}
    builder.add_all(graph.body[: inner.start], moved)
    found = function(*[Variable(builder, moved.get(v, v)) for v in part.inputs])
    moved.update(zip(part.outputs, [v.value for v in found], strict=True))
    builder.add_all(graph.body[inner.stop :], moved)
    return lower(builder.graph([moved[v] for v in graph.outputs]))


def _compare(
    what: str,
    ruled: Graph,
    plain: Graph,
    feeds: Sequence[np.ndarray],
    seen: Counter[str],
    guarded: bool,
) -> None:
    with np.errstate(all="ignore"):
        found, expected = (interpret(g, *feeds) for g in (ruled, plain))
    _demand_close(what, found, expected, seen, guarded)


def _chooses(graph: Graph, feeds: Sequence[np.ndarray]) -> bool:
    """Whether numbers that are not finite, or have no finite slope, are thrown away somewhere."""
    values = [v for e in graph.body for v in e.outputs if v.type.is_float]
    with np.errstate(all="ignore"):
        found = interpret(graph.with_outputs(values), *feeds)
    return not all(np.all(np.isfinite(a)) for a in found)


def _demand_close(
    what: str,
    found: Sequence[Any],
    expected: Sequence[Any],
    seen: Counter[str],
    guarded: bool = False,
) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        if not np.all(np.isfinite(theirs)):
            seen["custom: not finite"] += 1
            continue
        if guarded and not np.all(np.isfinite(mine)):
            seen["custom: a choice in a rule guards nothing outside"] += 1
            continue
        size = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        off = float(np.max(np.abs(mine - theirs), initial=0.0))
        demand(off <= _CLOSE * size, f"custom: {what} differ by {off} in {size}")


def _compare_tensors(
    ruled: Graph,
    part: Graph,
    function: Callable[..., Any],
    feeds: Sequence[np.ndarray],
    rng: np.random.Generator,
    seen: Counter[str],
) -> None:
    """The function alone, on tensors, beside its part of the program."""
    at = [rng.normal(size=v.shape) if v.type.is_float else None for v in part.inputs]
    if any(a is None for a in at):
        return
    tensors = [pg.tensor(a, requires_grad=True) for a in at]
    ends = [v for v in part.outputs if v.type.is_float]
    if not ends:
        return
    results = [t for t in function(*tensors) if t.dtype.kind == "f"]
    cts = [rng.normal(size=v.shape) for v in ends]
    found = pg.autograd.grad(
        results, tensors, [pg.tensor(c) for c in cts], allow_unused=True, materialize_grads=True
    )
    with np.errstate(all="ignore"):
        smooth = dead_code(part.with_outputs(ends))
        expected = interpret(_pulled(smooth, range(len(at))), *at, *cts)
    _demand_close("tensors", [g.numpy() for g in found], expected, seen)
    seen["custom: tensors"] += 1
