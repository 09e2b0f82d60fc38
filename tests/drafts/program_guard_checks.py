"""What holds for every random program with guards, at operands that nothing chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from derive import cotangents_of, float_inputs, tangents_of
from program_checks import check_kernel_of_slopes
from program_derivatives import demand
from program_guards import GuardedProgram

import primgraph as pg
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.operators.variable import Variable
from primgraph.primitives.reductions import reduce_sum
from primgraph.transforms import batch
from primgraph.transforms.optimize.clean_up import clean_up

Arrays = Sequence[np.ndarray]

# How often each of the more expensive checks is made.
_SECOND_ORDER = 0.5
_THIRD_ORDER = 0.06
_BATCH = 0.25
_KERNEL = 0.3
_FACES = 0.15

_STEEP = 1e6
_ROUNDING = 1e-8


def check_guarded(program: GuardedProgram, seen: Counter[str] | None = None) -> None:
    """Derivatives in all modes are those of the program in which nothing is singular."""
    seen = Counter() if seen is None else seen
    draw = program.draw(50)
    graph, oracle = program.graph(harmless=False), program.graph(harmless=True)
    feeds = program.feeds()
    wrt = float_inputs(graph)
    v = [np.asarray(draw.rng.normal(size=feeds[i].shape)) for i in wrt]
    one, clean = np.ones(()), draw.chance(0.5)
    wanted = interpret(_derived(oracle, "r", clean), *_ordinary(program, feeds), one)
    size = max(float(np.max(np.abs(a), initial=0)) for a in wanted)
    if not size < _STEEP:
        seen["guards: rejected as too steep"] += 1
        return
    seen["guards: inputs not finite"] += not np.all(np.isfinite(feeds[0]))
    seen["guards"] += 1
    values = [interpret(g, *f) for g, f in ((graph, feeds), (oracle, _ordinary(program, feeds)))]
    _demand_close("value", *values)
    reverse = _derived(graph, "r", clean)
    found = interpret(reverse, *feeds, one)
    _demand_close("gradient in reverse mode", found, wanted)
    tangent = interpret(_derived(graph, "f", clean), *feeds, *v)
    _demand_close("forward mode", tangent, [np.asarray(_inner(wanted, v))])
    if draw.chance(_SECOND_ORDER):
        _check_second_order(graph, oracle, program, v, clean, seen, draw.chance(_THIRD_ORDER))
    if draw.chance(_BATCH):
        _check_batches(graph, oracle, program, clean)
        seen["guards in batches"] += 1
    if draw.chance(_KERNEL):
        check_kernel_of_slopes("a gradient", reverse, [*feeds, one], found, draw)
        seen["guards in kernels"] += 1
    if draw.chance(_FACES):
        _check_faces(graph, oracle, program, v)
        seen["guards by grad and forward_grad"] += 1


def _ordinary(program: GuardedProgram, feeds: Arrays) -> list[np.ndarray]:
    """`feeds` with ordinary numbers in the rows that are left out, for the oracle."""
    x = feeds[0].copy()
    x[~program.fine] = 0.5
    return [x, *feeds[1:]]


def _derived(graph: Graph, modes: str, clean: bool) -> Graph:
    wrt = float_inputs(graph)
    for mode in modes:
        graph = tangents_of(graph, wrt) if mode == "f" else cotangents_of(graph, wrt)
        graph = clean_up(graph) if clean else graph
    return graph


def _check_second_order(
    graph: Graph,
    oracle: Graph,
    program: GuardedProgram,
    v: Arrays,
    clean: bool,
    seen: Counter[str],
    third: bool,
) -> None:
    """The Hessian times a direction, in all four modes; third derivatives in two."""
    x, one = program.feeds(), np.ones(())
    safe = _ordinary(program, x)
    wanted = interpret(_derived(oracle, "rf", clean), *safe, one, *v)
    if not max(float(np.max(np.abs(a), initial=0)) for a in wanted) < _STEEP:
        return
    seen["guards of second order"] += 1
    seeds = {"rf": (one, *v), "rr": (one, *v), "fr": (*v, one)}
    for modes, given in seeds.items():
        found = interpret(_derived(graph, modes, clean), *x, *given)
        _demand_close(f"second derivatives, {modes}", found, wanted)
    found = interpret(_derived(graph, "ff", clean), *x, *v, *v)
    _demand_close("second derivatives, ff", found, [np.asarray(_inner(wanted, v))])
    if not third:
        return
    seen["guards of third order"] += 1
    wanted = interpret(_derived(oracle, "rff", clean), *safe, one, *v, *v)
    for modes, given in (("rff", (one, *v, *v)), ("rrf", (one, *v, *v))):
        found = interpret(_derived(graph, modes, clean), *x, *given)
        _demand_close(f"third derivatives, {modes}", found, wanted)


def _check_batches(graph: Graph, oracle: Graph, program: GuardedProgram, clean: bool) -> None:
    """Samples of which each leaves out other operands: the gradient by what they share."""
    samples = [program.feeds(number) for number in range(2)]
    one = np.ones(())
    wanted = [
        interpret(_derived(oracle, "r", clean), *_ordinary(program, feeds), one)
        for feeds in samples
    ]
    many = batch(graph, 2, [0, *[None] * (len(graph.inputs) - 1)])
    builder = Builder("batched")
    inputs = [builder.input(v.type) for v in many.inputs]
    (values,) = builder.inline(many, inputs)
    with builder:
        total = reduce_sum(values, axes=(0,))
    whole = builder.graph([total])
    # All but the rows themselves are the same for both samples, up to the matrix of weights.
    stacked = [np.stack([f[0] for f in samples]), *samples[0][1:]]
    wanted[1] = interpret(
        _derived(oracle, "r", clean),
        *_ordinary(program, [samples[1][0], *samples[0][1:]]), one,
    )  # fmt: skip
    found = interpret(_derived(whole, "r", clean), *stacked, one)
    _demand_close("gradient of a batch, by rows", found[:1], [np.stack([w[0] for w in wanted])])
    sums = [a + b for a, b in zip(wanted[0][1:], wanted[1][1:], strict=True)]
    _demand_close("gradient of a batch, by what is shared", found[1:], sums)
    each = batch(_derived(graph, "r", clean), 2, [0, *[None] * len(graph.inputs)])
    found = interpret(each, *stacked, one)
    _demand_close("batched gradient", found, [np.stack(pair) for pair in zip(*wanted, strict=True)])


def _check_faces(graph: Graph, oracle: Graph, program: GuardedProgram, v: Arrays) -> None:
    """`pg.grad` and `pg.forward_grad`, of each other too."""
    builder = Builder("faces")
    inputs = [builder.input(value.type) for value in graph.inputs]
    with builder:
        loss = Variable(builder, builder.inline(graph, inputs)[0])
        wrt = [Variable(builder, inputs[i]) for i in float_inputs(graph)]
        first = pg.grad(loss, wrt, materialize_grads=True)
        along = pg.forward_grad(loss, wrt, list(v))
        whole = sum((pg.sum(g * d) for g, d in zip(first, v, strict=True)), start=pg.zeros(()))
        second = [pg.grad(u, wrt, materialize_grads=True) for u in (whole, along) if u is not None]
    found = interpret(
        builder.graph([d.value for row in (first, *second) for d in row]), *program.feeds()
    )
    one, safe = np.ones(()), _ordinary(program, program.feeds())
    wanted = interpret(_derived(oracle, "r", True), *safe, one)
    twice = interpret(_derived(oracle, "rf", True), *safe, one, *v)
    _demand_close("grad", found[: len(wrt)], wanted)
    if max(float(np.max(np.abs(a), initial=0)) for a in twice) < _STEEP:
        _demand_close("grad of a derivative", found[len(wrt) :], twice * len(second))


def _inner(x: Arrays, y: Arrays) -> float:
    return float(sum(np.sum(a * b) for a, b in zip(x, y, strict=True)))


def _demand_close(what: str, found: Arrays, wanted: Arrays) -> None:
    size = max((float(np.max(np.abs(a), initial=0)) for a in wanted), default=0.0)
    for a, b in zip(found, wanted, strict=True):
        fine = np.all(np.abs(a - b) <= _ROUNDING * (1 + size))
        demand(fine, f"{what}:\n{a!r}, not\n{b!r}")
