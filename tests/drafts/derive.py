"""Derivatives of graphs in every mode, and independent ones to compare them with."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import DTYPE_OF_NAME, TensorType
from primgraph.transforms import dead_code, linearize, transpose
from primgraph.transforms.optimize.clean_up import clean_up

# Central differences: an error of about STEP**4 by truncation, 1e-16 / STEP by rounding.
STEP = 2e-3

# Complex step: there is no difference, so the step is as small as one likes.
TINY = 1e-30


def type_of(text: str) -> TensorType:
    """The type that prints as `text`, such as `f64[2,3]`."""
    name, _, extents = text.rstrip("]").partition("[")
    return TensorType(tuple(int(n) for n in extents.split(",") if n), DTYPE_OF_NAME[name])


def build(function: Callable[..., Value | Sequence[Value]], *types: str | TensorType) -> Graph:
    """The graph of `function`, which records primitives on inputs of these types."""
    builder = Builder("f")
    inputs = [builder.input(type_of(t) if isinstance(t, str) else t) for t in types]
    with builder:
        outputs = function(*inputs)
    return builder.graph([outputs] if isinstance(outputs, Value) else list(outputs))


def float_inputs(graph: Graph) -> tuple[int, ...]:
    """Positions of the inputs that one can differentiate by."""
    return tuple(i for i, v in enumerate(graph.inputs) if v.type.is_inexact)


def tangents_of(graph: Graph, wrt: Sequence[int]) -> Graph:
    """From `x` and `dx` to `dy` alone, one tangent for each float output."""
    jvp = linearize(graph, wrt)
    return dead_code(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]))


def cotangents_of(graph: Graph, wrt: Sequence[int]) -> Graph:
    """From `x` and `ct_dy`, one for each float output, to `ct_dx`."""
    count = len(graph.inputs)
    return transpose(tangents_of(graph, wrt), range(count, count + len(wrt)))


def derivatives(
    graph: Graph, x: np.ndarray, modes: str, *others: np.ndarray, clean: bool = False
) -> np.ndarray:
    """The whole array of derivatives by the first input, of order `len(modes)`, at `x`.

    Each letter of `modes` differentiates once more, `f` forward and `r` in reverse; `clean`
    simplifies the graph after each, as `grad` does. The axes of the result are those of the only
    output of `graph`, then those of `x` once for each order.
    """
    output = graph.outputs[0].shape
    bases: list[list[np.ndarray]] = []
    axes: list[int] = []
    final = -1
    for order, mode in enumerate(modes):
        if mode == "f":
            bases.append(_basis(x.shape))
            axes.append(order)
        else:
            bases.append(_basis(graph.outputs[0].shape))
            axes.append(final)
            final = order
        graph = _differentiated(graph, mode, clean)
    rows = [interpret(graph, x, *others, *seeds)[0].reshape(-1) for seeds in product(*bases)]
    flat = np.array(rows).reshape([*map(len, bases), graph.outputs[0].type.size])
    # Axis -1 stands for the output of the function, axis k for the k-th derivative.
    order_of_axes = np.argsort([*axes, final])
    return flat.transpose(order_of_axes).reshape(output + x.shape * len(modes))


@cache
def _differentiated(graph: Graph, mode: str, clean: bool) -> Graph:
    """The derivative by the first input; equal graphs have theirs taken once."""
    result = tangents_of(graph, [0]) if mode == "f" else cotangents_of(graph, [0])
    return clean_up(result) if clean else result


def _basis(shape: tuple[int, ...]) -> list[np.ndarray]:
    size = int(np.prod(shape))
    return [row.reshape(shape) for row in np.eye(size)]


def all_modes(order: int) -> list[str]:
    """Every way to differentiate `order` times: `ff`, `fr`, `rf` and `rr` for order two."""
    return ["".join(m) for m in product("fr", repeat=order)]


def complex_step(
    graph: Graph,
    arrays: Sequence[np.ndarray],
    directions: dict[int, np.ndarray],
    analytic: dict[str, Callable[..., np.ndarray]],
) -> list[np.ndarray]:
    """Directional derivatives of the float outputs, from one evaluation at complex inputs.

    `analytic` holds, for primitives whose NumPy meaning is none for complex arrays, an expression
    that agrees with it on real ones and is analytic (W. Squire and G. Trapp, Using complex
    variables to estimate derivatives of real functions, 1998).
    """
    known: dict[Value, np.ndarray] = {}
    for i, (value, array) in enumerate(zip(graph.inputs, arrays, strict=True)):
        shift = 1j * TINY * directions.get(i, 0)
        known[value] = np.asarray(array + shift if value.type.is_float else array)
    with np.errstate(all="ignore"):
        for eqn in graph.body:
            assert isinstance(eqn.op, Primitive)
            inputs = [known[v] for v in eqn.inputs]
            if eqn.op.constant or not any(v.type.is_float for v in eqn.outputs):
                results = eqn.op.evaluate([np.real(a) for a in inputs], eqn.kwargs)
            elif eqn.op.name in analytic:
                results = (analytic[eqn.op.name](*inputs, **eqn.kwargs),)
            else:
                results = eqn.op.evaluate(inputs, eqn.kwargs)
            for value, result in zip(eqn.outputs, results, strict=True):
                kind = np.complex128 if value.type.is_float else value.dtype
                known[value] = np.asarray(result, kind)
    return [np.imag(known[v]) / TINY for v in graph.outputs if v.type.is_float]


def differences(
    graph: Graph, arrays: Sequence[np.ndarray], directions: dict[int, np.ndarray]
) -> list[np.ndarray]:
    """Directional derivatives of the float outputs, by central differences of fourth order."""

    def at(step: float) -> list[np.ndarray]:
        moved = [a + step * directions[i] if i in directions else a for i, a in enumerate(arrays)]
        values = interpret(graph, *moved)
        return [a for a, v in zip(values, graph.outputs, strict=True) if v.type.is_inexact]

    near, far = (
        [p - m for p, m in zip(at(step), at(-step), strict=True)] for step in (STEP, 2 * STEP)
    )
    return [(8 * n - f) / (12 * STEP) for n, f in zip(near, far, strict=True)]
