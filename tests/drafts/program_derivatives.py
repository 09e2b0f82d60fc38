"""What holds for the derivatives of every random program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np
from complex_step import MARGIN, STEP, evaluate
from program_tolerance import same_bits

from primgraph.derivatives.differential_operators import hessian_diagonal, laplacian
from primgraph.derivatives.grad import forward_grad, grad
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.operators.variable import Variable
from primgraph.primitives.elementwise import add, floor_divide, remainder
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_prod, reduce_sum, root_of_squares
from primgraph.transforms import dead_code, linearize, transpose, unzip
from primgraph.transforms.dataflow.activity import dependent_values

Arrays = Sequence[np.ndarray]

# How often each of the more expensive checks is made.
_SECOND_ORDER = 0.3
_DIFFERENCES = 0.2
_FACES = 0.2
_DIAGONALS = 0.5
_MOST_ELEMENTS = 12

# What these give depends on how their operands lie in memory.
_SUMS = (matmul, reduce_prod, reduce_sum, root_of_squares)

# Derivatives beyond this lose too many digits to be compared.
_STEEP = 1e8

# Relative errors of first and second derivatives, on the scale of the largest intermediate one.
_ROUNDING = 1e-9


class Mismatch(AssertionError):
    """A promise that a program shows to be broken."""


def demand(condition: object, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def equations_of(graph: Graph) -> Iterator[Equation]:
    """All equations, those in branches and loops before what they belong to."""
    for eqn in graph.body:
        for body in eqn.bodies:
            yield from equations_of(body)
        yield eqn


def check_derivatives(
    graph: Graph,
    wrt: Sequence[int],
    feeds: Arrays,
    rng: np.random.Generator,
    seen: Counter[str],
) -> None:
    """Forward and reverse mode agree, and forward mode with a complex step."""
    x = [a.astype(v.dtype) for a, v in zip(feeds, graph.inputs, strict=True)]
    v = _normal([x[i] for i in wrt], rng)
    everywhere = [np.zeros(a.shape) for a in x]
    for i, tangent in zip(wrt, v, strict=True):
        everywhere[i] = tangent
    known, smooth = evaluate(graph, x, everywhere)
    smooth = smooth and all(np.all(np.isfinite(y)) for y in interpret(graph, *x))
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
    if rng.random() < _FACES:
        _check_faces(graph, wrt, x, v, w, tangents, cotangents, slack)
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
    _demand_bits("linear part", [expected[i] for i in moving], second, _slack_of_sums(jvp))


def _slack_of_sums(graph: Graph) -> float:
    """How much of a result may differ by how what is added up lies in memory.

    What is handed from one part of a graph to another may be a view in the whole, and NumPy adds
    in the order of memory.
    """
    eps = [np.finfo(v.dtype).eps for e in equations_of(graph) if e.op in _SUMS for v in e.outputs
           if v.dtype.kind == "f"]  # fmt: skip
    return 64 * float(max(eps, default=0.0))


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
    if any(e.op.name == "stop_gradient" for e in equations_of(graph)):
        return
    bodies = [e for eqn in graph.body for body in eqn.bodies for e in equations_of(body)]
    if any(e.op in (floor_divide, remainder) for e in bodies):
        seen["rejected: a quotient in a body"] += 1
        return

    def at(t: float, asked: Graph = graph) -> list[np.ndarray]:
        moved = list(x)
        for i, tangent in zip(wrt, v, strict=True):
            moved[i] = x[i] + t * tangent
        return interpret(asked, *moved)

    def differences(h: float) -> list[np.ndarray]:
        runs = zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
        return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in runs]

    step = 0.2 * MARGIN / (1 + scale)
    # No tangent tells how fast a quotient moves towards where it jumps.
    quotients = [e.inputs for e in graph.body if e.op in (floor_divide, remainder)]
    operands = graph.with_outputs([value for pair in quotients for value in pair])
    with np.errstate(all="ignore"):
        floors = [_floors(at(t * step, operands)) for t in (-2, -1, -0.5, 0, 0.5, 1, 2)]
    if any(f != floors[0] for f in floors):
        seen["rejected: a quotient jumps"] += 1
        return
    with np.errstate(all="ignore"):
        coarse, fine = differences(step), differences(step / 2)
        error = max((np.max(np.abs(a - b), initial=0) for a, b in zip(coarse, fine, strict=True)))
    if not error < 1e-4 * (1 + scale):
        seen["rejected: central differences do not converge"] += 1
        return
    seen["central differences"] += 1
    slack = 20 * error + 1e-8 * (1 + scale)
    _demand_close("jvp and central differences", fine, tangents, slack)


def _floors(operands: Arrays) -> list[bytes]:
    pairs = zip(operands[::2], operands[1::2], strict=True)
    return [np.floor(np.divide(a, b)).tobytes() for a, b in pairs]


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
    if rng.random() < _DIAGONALS:
        _check_diagonal(graph, wrt, x, w, forward, seen)


def _check_diagonal(
    graph: Graph,
    wrt: Sequence[int],
    x: Arrays,
    w: Arrays,
    forward: Graph,
    seen: Counter[str],
) -> None:
    """The diagonal of the Hessian of `<w, y>` by one input, and its sum, where only these are asked
    for, are what `forward`, the Hessian times a vector, gives for unit vectors."""
    like = x[wrt[0]]
    if not 0 < like.size <= _MOST_ELEMENTS:
        return
    others = [np.zeros(np.shape(x[i])) for i in wrt[1:]]
    units = np.eye(like.size).reshape(like.size, *like.shape)
    columns = [interpret(forward, *x, *w, unit, *others)[0] for unit in units]
    diagonal = np.array([np.sum(c * unit) for c, unit in zip(columns, units, strict=True)])
    if not np.all(np.isfinite(columns)) or np.max(np.abs(columns)) > _STEEP:
        return

    builder = Builder(graph.name)
    inputs = [builder.input(value.type) for value in graph.inputs]
    values = builder.inline(graph, inputs)
    weights = [builder.input(value.type) for value in values]
    with builder:
        products = [reduced(u * v) for u, v in zip(weights, values, strict=True) if v.type.is_float]
        y, variable = (Variable(builder, z) for z in (reduce(add, products), inputs[wrt[0]]))
        asked = [hessian_diagonal(y, variable).value, laplacian(y, variable).value]
    found = interpret(builder.graph(asked), *x, *w)
    slack = _ROUNDING * (1 + float(np.max(np.abs(columns)))) * 1e2
    _demand_close("diagonal and sum of a Hessian", [diagonal.reshape(like.shape), diagonal.sum()],
                  found, slack)  # fmt: skip
    seen["diagonals of Hessians"] += 1


def reduced(value: Value) -> Value:
    """The sum of all elements."""
    return reduce_sum(value, axes=tuple(range(value.type.ndim)))


def _check_faces(
    graph: Graph,
    wrt: Sequence[int],
    x: Arrays,
    v: Arrays,
    w: Arrays,
    tangents: Arrays,
    cotangents: Arrays,
    slack: float,
) -> None:
    """What users call gives the same, recorded into the program that it is asked of."""
    builder = Builder(graph.name)
    inputs = [builder.input(value.type) for value in graph.inputs]
    values = builder.inline(graph, inputs)
    active = dependent_values(builder.graph(values), [inputs[i] for i in wrt])
    reached = [i for i, value in enumerate(values) if value in active]
    if not reached:
        return
    outputs = [Variable(builder, values[i]) for i in reached]
    variables = [Variable(builder, inputs[i]) for i in wrt]
    with builder:
        forward = forward_grad(outputs, variables, list(v))
        reverse = grad(outputs, variables, [w[i] for i in reached])
    found = [None if d is None else d.value for d in (*forward, *reverse)]
    results = iter(interpret(builder.graph([d for d in found if d is not None]), *x))
    expected = [*(tangents[i] for i in reached), *cotangents]
    arrays = [np.zeros(e.shape) if d is None else next(results)
              for d, e in zip(found, expected, strict=True)]  # fmt: skip
    _demand_close("grad and forward_grad", expected, arrays, slack)


def _normal(like: Arrays, rng: np.random.Generator) -> list[np.ndarray]:
    return [np.asarray(rng.normal(size=a.shape)) for a in like]


def _steepest(values: Iterable[np.ndarray]) -> float:
    """The largest derivative of any intermediate value that has one."""
    found = 0.0
    for array in values:
        if np.iscomplexobj(array) and array.size:
            slopes = np.abs(array.imag[np.isfinite(array)]) / STEP
            found = max(found, float(np.max(slopes, initial=0)))
    return found


def _inner(x: Arrays, y: Arrays) -> float:
    return float(sum(np.sum(a * b) for a, b in zip(x, y, strict=True)))


def _inner_size(x: Arrays, y: Arrays) -> float:
    return float(sum(np.sum(np.abs(a * b)) for a, b in zip(x, y, strict=True)))


def _demand_bits(what: str, expected: Arrays, found: Arrays, slack: float = 0.0) -> None:
    """Equal bits, or a difference of that part of the largest element."""
    for a, b in zip(expected, found, strict=True):
        same = same_bits(a, b)
        if slack and not np.all(same):
            largest = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
            same = same | (np.abs(a - b) <= slack * largest)
        demand(np.all(same), f"{what}:\n{b!r}, not\n{a!r}")


def _demand_close(what: str, expected: Arrays, found: Arrays, slack: float) -> None:
    for a, b in zip(expected, found, strict=True):
        demand(np.all(np.abs(a - b) <= slack), f"{what}, within {slack}:\n{b!r}, not\n{a!r}")
