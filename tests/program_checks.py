"""What holds for every random program, whatever it computes."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from complex_step import MARGIN, STEP, evaluate, widened
from program_tolerance import differs, same_bits
from random_programs import Program

from primgraph.codegen import compile_graph
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse, to_text
from primgraph.ir.verify import verify
from primgraph.transforms import (
    batch,
    dead_code,
    fold_constants,
    linearize,
    lower,
    simplify,
    transpose,
    unzip,
)
from primgraph.transforms.clean_up import clean_up

Arrays = Sequence[np.ndarray]

STYLES = ("planned", "readable")
_PASSES = (simplify, fold_constants, dead_code, clean_up)

# How often each of the more expensive checks is made.
_KERNEL_OF_DERIVATIVE = 0.3
_BATCH = 0.3
_SECOND_ORDER = 0.3
_DIFFERENCES = 0.2

# Derivatives beyond this lose too many digits to be compared.
_STEEP = 1e8

# Relative errors of first and second derivatives, on the scale of the largest intermediate one.
_ROUNDING = 1e-9


class Mismatch(AssertionError):
    """A promise that a program shows to be broken."""


def check(program: Program, seen: Counter[str] | None = None) -> None:
    """Make all checks of this file; `seen` counts what was compared and what was left out."""
    seen = Counter() if seen is None else seen
    rng = np.random.default_rng((program.seed, 1))
    graph = program.graph
    check_round_trips(graph)
    check_passes(program)
    lowered = lower(graph)
    for style in STYLES:
        check_kernel(lowered, style, program.feeds, program.others, rng)
    if rng.random() < 0.5:
        check_kernel(clean_up(lowered), "planned", program.feeds, program.others, rng)
    if rng.random() < _BATCH:
        check_batch(lowered, program.feeds, program.others, rng)
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    outputs = [v for v in lowered.outputs if v.type.is_float]
    if not wrt or not outputs:
        seen["programs without derivatives"] += 1
        return
    if rng.random() < _KERNEL_OF_DERIVATIVE:
        check_kernels_of_derivatives(lowered, wrt, program, rng)
    if program.smooth:
        check_derivatives(
            widened(dead_code(lowered.with_outputs(outputs))), wrt, program, rng, seen
        )
    else:
        seen["special programs"] += 1


def demand(condition: object, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def demand_equal(what: str, graph: Graph, feeds: Arrays, expected: Arrays, found: Arrays) -> None:
    """`found` are the results `expected` of `graph`, up to what the table of ULPs allows."""
    fault = differs(graph, feeds, expected, found)
    demand(not fault, f"{what}: {fault}")


def check_round_trips(graph: Graph) -> None:
    """Text and pickle give back an equal graph."""
    verify(graph)
    text = to_text(graph)
    demand(parse(text) == graph, "the text does not parse to an equal graph")
    demand(to_text(parse(text)) == text, "what was parsed prints differently")
    demand(pickle.loads(pickle.dumps(graph)) == graph, "pickle gives another graph")


def check_passes(program: Program) -> None:
    """Every clean-up pass keeps every bit, and changes nothing the second time."""
    graph, feeds = program.graph, program.feeds
    expected = interpret(graph, *feeds)
    lowered = verify(lower(graph))
    demand(lower(lowered) == lowered, "lower is not idempotent")
    demand_equal("lower", graph, feeds, expected, interpret(lowered, *feeds))
    for transform in _PASSES:
        result = verify(transform(lowered))
        name = transform.__name__
        demand(result.output_types == graph.output_types, f"{name} changes types")
        demand_equal(name, lowered, feeds, expected, interpret(result, *feeds))
        again = transform(result)
        demand(again == result, f"{name} is not idempotent:\n{result}\nbecomes\n{again}")


# Kernels.


def layouts(feeds: Arrays, rng: np.random.Generator) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The same numbers, laid out in memory in several ways; all read-only."""
    yield "contiguous", [np.array(x, order="C") for x in feeds]
    yield "Fortran", [np.array(x, order="F") for x in feeds]
    yield "sliced", [_sliced(x, rng) for x in feeds]


def _sliced(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A view with gaps, backwards along some axes, of a larger array."""
    steps = [int(s) for s in rng.choice([-2, -1, 1, 2, 3], x.ndim)]
    whole = np.zeros([max(n * abs(s), 1) for n, s in zip(x.shape, steps, strict=True)], x.dtype)
    view = whole[tuple(slice(None, None, s) for s in steps)]
    view = view[(*(slice(0, n) for n in x.shape), ...)]
    view[...] = x
    return view


def check_kernel(
    graph: Graph, style: str, feeds: Arrays, others: Arrays, rng: np.random.Generator
) -> None:
    """A kernel computes what the interpreter does, and shares memory with nothing."""
    kernel = compile_graph(graph, style=style)
    expected = interpret(graph, *feeds)
    kept: list[tuple[Arrays, list[bytes]]] = []
    for layout, arrays in layouts(feeds, rng):
        for array in arrays:
            array.setflags(write=False)
        before = [x.tobytes() for x in arrays]
        results = kernel(*arrays)
        what = f"{style} kernel, {layout} feeds"
        demand_equal(what, graph, feeds, expected, results)
        demand(before == [x.tobytes() for x in arrays], f"{what}: a feed was written")
        for i, result in enumerate(results):
            rest = [*arrays, *results[:i], *(x for old, _ in kept for x in old)]
            shared = any(np.shares_memory(result, x) for x in rest)
            demand(not shared, f"{what}: output {i} shares memory")
            demand(result.flags.writeable, f"{what}: output {i} is read-only")
        kept.append((results, [x.tobytes() for x in results]))
    demand_equal(f"{style} kernel, other feeds", graph, others, interpret(graph, *others),
                 kernel(*others))  # fmt: skip
    for results, before in kept:
        demand([x.tobytes() for x in results] == before, f"{style} kernel changes old results")


def check_kernels_of_derivatives(
    graph: Graph, wrt: Sequence[int], program: Program, rng: np.random.Generator
) -> None:
    """Kernels of forward and reverse mode, and the passes on these graphs."""
    jvp = linearize(graph, wrt)
    count = len(graph.inputs)
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    vjp = transpose(linear, range(count, count + len(wrt)))
    for derivative in (jvp, vjp):
        more = [v.type for v in derivative.inputs[count:]]
        feeds, others = (
            [*x, *(np.asarray(rng.normal(size=t.shape)).astype(t.dtype) for t in more)]
            for x in (program.feeds, program.others)
        )
        cleaned = clean_up(derivative)
        expected = interpret(derivative, *feeds)
        demand_equal("clean_up of a derivative", derivative, feeds, expected,
                     interpret(cleaned, *feeds))  # fmt: skip
        check_round_trips(cleaned)
        style = STYLES[int(rng.random() < 0.3)]
        check_kernel(cleaned, style, feeds, others, rng)


# Batches.


def check_batch(graph: Graph, feeds: Arrays, others: Arrays, rng: np.random.Generator) -> None:
    """A batched program maps every sample as the program itself does."""
    size = int(rng.integers(1, 4))
    axes = [None if rng.random() < 0.3 else 0 for _ in feeds]
    sets = [feeds, others]
    samples = [
        [feeds[i] if axis is None else sets[k % 2][i] for i, axis in enumerate(axes)]
        for k in range(size)
    ]
    stacked = [
        feeds[i] if axis is None else np.stack([s[i] for s in samples])
        for i, axis in enumerate(axes)
    ]
    batched = verify(batch(graph, size, axes))
    results = interpret(batched, *stacked)
    for k, sample in enumerate(samples):
        parts = [np.asarray(x[k]) for x in results]
        demand_equal(f"sample {k} of a batch", graph, sample, interpret(graph, *sample), parts)


# Derivatives.


def check_derivatives(
    graph: Graph,
    wrt: Sequence[int],
    program: Program,
    rng: np.random.Generator,
    seen: Counter[str],
) -> None:
    """Forward and reverse mode agree, and forward mode with a complex step."""
    x = [a.astype(v.dtype) for a, v in zip(program.feeds, graph.inputs, strict=True)]
    v = _normal([x[i] for i in wrt], rng)
    everywhere = [np.zeros(a.shape) for a in x]
    for i, tangent in zip(wrt, v, strict=True):
        everywhere[i] = tangent
    known, smooth = evaluate(graph, x, everywhere)
    scale = _steepest(known.values())
    expected = [known[value].imag / STEP for value in graph.outputs]
    if not smooth or scale > _STEEP or not all(np.all(np.isfinite(d)) for d in expected):
        seen["rejected: not differentiable"] += 1
        return
    seen["differentiated"] += 1

    jvp, _, vjp = _modes(graph, wrt)
    count, outputs = len(graph.inputs), len(graph.outputs)
    results = interpret(jvp, *x, *v)
    values, tangents = results[:outputs], results[outputs:]
    _demand_bits("values beside tangents", interpret(graph, *x), values)
    _demand_close("jvp and complex step", expected, tangents, _ROUNDING * (1 + scale))

    w = _normal(tangents, rng)
    cotangents = interpret(vjp, *x, *w)
    left, right = _inner(w, tangents), _inner(cotangents, v)
    size = _inner_size(w, tangents) + _inner_size(cotangents, v)
    slack = _ROUNDING * (size + 1e-2 * scale * sum(np.abs(a).sum() for a in w))
    demand(abs(left - right) <= slack + 1e-300, f"<w, Jv> = {left}, but <J'w, v> = {right}")

    _check_unzip(jvp, range(count, count + len(wrt)), [*x, *v], results)
    if rng.random() < _DIFFERENCES:
        _check_differences(graph, wrt, x, v, tangents, scale, seen)
    if rng.random() < _SECOND_ORDER:
        _check_second_order(graph, wrt, x, v, w, rng, seen)


def _modes(graph: Graph, wrt: Sequence[int]) -> tuple[Graph, Graph, Graph]:
    """Forward mode, its tangents alone, and their transpose."""
    count = len(graph.inputs)
    jvp = linearize(graph, wrt)
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    return jvp, linear, transpose(linear, range(count, count + len(wrt)))


def _check_unzip(jvp: Graph, dx: Sequence[int], feeds: Arrays, expected: Arrays) -> None:
    """Primal part and linear part, one after the other, are the whole."""
    primal, linear = unzip(jvp, dx)
    active = {jvp.inputs[i] for i in dx}
    for eqn in jvp.body:
        if not active.isdisjoint(eqn.inputs):
            active.update(eqn.outputs)
    fixed = [i for i, value in enumerate(jvp.outputs) if value not in active]
    moving = [i for i, value in enumerate(jvp.outputs) if value in active]
    first = interpret(primal, *feeds[: dx[0]])
    second = interpret(linear, *first[len(fixed) :], *feeds[dx[0] :])
    _demand_bits("primal part", [expected[i] for i in fixed], first[: len(fixed)])
    _demand_bits("linear part", [expected[i] for i in moving], second)


def _check_differences(
    graph: Graph,
    wrt: Sequence[int],
    x: Arrays,
    v: Arrays,
    tangents: Arrays,
    scale: float,
    seen: Counter[str],
) -> None:
    """Tangents against central differences of fourth order, with a step that meets no kink."""
    if any(e.op.name == "stop_gradient" for e in graph.body):
        return

    def at(t: float) -> list[np.ndarray]:
        moved = list(x)
        for i, tangent in zip(wrt, v, strict=True):
            moved[i] = x[i] + t * tangent
        return interpret(graph, *moved)

    def differences(h: float) -> list[np.ndarray]:
        runs = zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
        return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in runs]

    step = 0.2 * MARGIN / (1 + scale)
    with np.errstate(all="ignore"):
        coarse, fine = differences(step), differences(step / 2)
        error = max((np.max(np.abs(a - b), initial=0) for a, b in zip(coarse, fine, strict=True)))
    if not error < 1e-4 * (1 + scale):
        seen["rejected: central differences do not converge"] += 1
        return
    seen["central differences"] += 1
    slack = 20 * error + 1e-8 * (1 + scale)
    _demand_close("jvp and central differences", fine, tangents, slack)


def _check_second_order(
    graph: Graph,
    wrt: Sequence[int],
    x: Arrays,
    v: Arrays,
    w: Arrays,
    rng: np.random.Generator,
    seen: Counter[str],
) -> None:
    """The Hessian of `<w, y>` times `v`: forward over reverse, the other way, and by a step."""
    _, linear, gradient = _modes(graph, wrt)
    gradient = dead_code(gradient)
    everywhere = [np.zeros(np.shape(a)) for a in (*x, *w)]
    for i, tangent in zip(wrt, v, strict=True):
        everywhere[i] = tangent
    known, smooth = evaluate(gradient, [*x, *w], everywhere)
    scale = _steepest(known.values())
    expected = [known[value].imag / STEP for value in gradient.outputs]
    if not smooth or scale > _STEEP or not all(np.all(np.isfinite(d)) for d in expected):
        seen["rejected: no second derivative"] += 1
        return
    seen["second order"] += 1
    slack = _ROUNDING * (1 + scale)

    forward = _modes(gradient, wrt)[1]
    _demand_close("forward over reverse and complex step", expected,
                  interpret(forward, *x, *w, *v), slack)  # fmt: skip
    # Of the inputs x and dx of the linear part, only x is what reverse mode is to move.
    reverse = _modes(linear, wrt)[2]
    _demand_close("reverse over forward and complex step", expected,
                  interpret(reverse, *x, *v, *w), slack)  # fmt: skip


def _normal(like: Arrays, rng: np.random.Generator) -> list[np.ndarray]:
    return [np.asarray(rng.normal(size=a.shape)) for a in like]


def _steepest(values: object) -> float:
    """The largest derivative of any intermediate value that has one."""
    found = 0.0
    for array in values:  # type: ignore[attr-defined]
        if np.iscomplexobj(array) and array.size:
            slopes = np.abs(array.imag[np.isfinite(array)]) / STEP
            found = max(found, float(np.max(slopes, initial=0)))
    return found


def _inner(x: Arrays, y: Arrays) -> float:
    return float(sum(np.sum(a * b) for a, b in zip(x, y, strict=True)))


def _inner_size(x: Arrays, y: Arrays) -> float:
    return float(sum(np.sum(np.abs(a * b)) for a, b in zip(x, y, strict=True)))


def _demand_bits(what: str, expected: Arrays, found: Arrays) -> None:
    for a, b in zip(expected, found, strict=True):
        demand(np.all(same_bits(a, b)), f"{what}:\n{b!r}, not\n{a!r}")


def _demand_close(what: str, expected: Arrays, found: Arrays, slack: float) -> None:
    for a, b in zip(expected, found, strict=True):
        demand(np.all(np.abs(a - b) <= slack), f"{what}, within {slack}:\n{b!r}, not\n{a!r}")
