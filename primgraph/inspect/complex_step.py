"""Complex-step derivatives: an evaluator that is independent of the rules to be checked.

A graph is evaluated on `x + ih v`; the imaginary parts of the results are `h` times the derivative
along `v`, without cancellation. Every float, of any width, is complex128 here. Primitives that
NumPy lacks for complex numbers, or that are not analytic, have formulas on their cards for numbers
`a + ih b`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.codegen.ops.special_functions.gamma import jvp_complex_step
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.codegen.ops.table import CARDS
from primgraph.inspect.trips import is_walked, run_bodies
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.params import Array
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import COMPLEX128, FLOAT64, TensorType
from primgraph.operators.call import Operator
from primgraph.primitives.special_functions.special import as_gamma_of
from primgraph.transforms.loops.implicit_solution import solution

STEP = 1e-30

# Largest derivative for which a function counts as smooth.
STEEPEST = 1e4

# A primitive without generated code whose own derivative belongs to no computed value.
_IMPLICIT: dict[Op, ComplexStep] = {as_gamma_of: jvp_complex_step(as_gamma_of)}


def is_known(op: Op) -> bool:
    """Return whether this evaluator knows a primitive, and so whether it is analytic."""
    card = CARDS.get(op)
    return op in _IMPLICIT or (card is not None and card.complex_step is not None)


def knows(graph: Graph) -> bool:
    """Return whether this evaluator knows all primitives of `graph`, including those in bodies."""
    return all(
        all(map(knows, e.bodies)) if is_walked(e) or _WITH_BODIES.get(e.op) else is_known(e.op)
        for e in graph.body
    )


def wide_type(type: TensorType) -> TensorType:
    """Return the type with float64, or complex128, elements."""
    if type.is_complex:
        return type.with_dtype(COMPLEX128)
    return type.with_dtype(FLOAT64) if type.is_float else type


def wide_params(eqn: Equation) -> dict[str, Any]:
    """Return the parameters of `eqn` with all float dtypes as float64, in bodies too."""
    params = map_bodies(eqn, widen_floats).kwargs
    if "dtype" in params and params["dtype"].kind == "f":
        params["dtype"] = FLOAT64
    elif "dtype" in params and params["dtype"].kind == "c":
        params["dtype"] = COMPLEX128
    value = params.get("value")
    if isinstance(value, Array) and value.type.is_float:
        params["value"] = Array(value.data.astype(np.float64))
    elif isinstance(value, Array) and value.type.is_complex:
        params["value"] = Array(value.data.astype(np.complex128))
    return params


def widen_floats(graph: Graph) -> Graph:
    """Return the graph with all floats as float64."""
    builder = Builder(graph.name)
    moved = {v: builder.input(wide_type(v.type), v.hint) for v in graph.inputs}
    for eqn in graph.body:
        results = builder.emit(eqn.op, [moved[v] for v in eqn.inputs], wide_params(eqn))
        moved.update(zip(eqn.outputs, results, strict=True))
    return builder.graph([moved[v] for v in graph.outputs])


def evaluate(
    graph: Graph, arrays: Sequence[Any], tangents: Sequence[Any]
) -> tuple[dict[Value, np.ndarray[Any, Any]], bool]:
    """Evaluate all values of `graph`, and return whether they are differentiable there.

    `tangents` has an array for each input; those of inputs that are not floats are ignored.
    """
    known: dict[Value, np.ndarray[Any, Any]] = {}
    for value, array, tangent in zip(graph.inputs, arrays, tangents, strict=True):
        known[value] = np.asarray(array)
        if value.type.is_float:
            known[value] = np.asarray(array, np.float64) + 1j * STEP * np.asarray(tangent)
    smooth = True
    # Values before `stop_gradient`: an op with its own derivative was computed from these.
    held: dict[Value, np.ndarray[Any, Any]] = {}
    for eqn in graph.body:
        if eqn.op.own_slope and eqn.op not in _IMPLICIT:
            value = eqn.inputs[0]
            known[eqn.output] = held.get(value, known[value])
            continue
        if eqn.op.stops:
            held[eqn.output] = known[eqn.inputs[0]]
        results, fine = apply(eqn, [known[v] for v in eqn.inputs])
        known.update(zip(eqn.outputs, results, strict=True))
        smooth = smooth and fine
    return known, smooth


def apply(
    eqn: Equation, inputs: Sequence[np.ndarray[Any, Any]]
) -> tuple[list[np.ndarray[Any, Any]], bool]:
    """Evaluate one equation, and return whether it is differentiable at `inputs`."""
    with np.errstate(all="ignore"):
        if isinstance(eqn.op, Operator):
            builder, result = eqn.op.trace_decomposition(
                tuple(v.type for v in eqn.inputs), eqn.kwargs
            )
            inner = builder.graph([result.value])
            tangents = [np.imag(x) / STEP for x in inputs]
            known, smooth = evaluate(inner, [np.real(x) for x in inputs], tangents)
            return [known[inner.outputs[0]]], smooth
        assert isinstance(eqn.op, Primitive)
        if is_walked(eqn):
            results, smooth = _evaluate_bodies(eqn, inputs)
        elif (walk := _WITH_BODIES.get(eqn.op)) is not None:
            results, smooth = walk(eqn, inputs)
        else:
            params = wide_params(eqn)
            results = _results(eqn.op, inputs, params)
            smooth = _is_smooth(eqn.op, inputs, params)
        for i, value in enumerate(eqn.outputs):
            dtype = np.complex128 if value.type.is_float else value.dtype
            found = np.asarray(results[i]).astype(dtype)
            results[i] = found if is_open(value.shape) else found.reshape(value.shape)
        return results, smooth


def _evaluate_bodies(
    eqn: Equation, inputs: Sequence[np.ndarray[Any, Any]]
) -> tuple[list[Any], bool]:
    """Evaluate a branch or loop, and return whether all of its steps are differentiable."""
    all_smooth = True

    def run(body: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        nonlocal all_smooth
        known, smooth = evaluate(
            body, list(map(np.real, arrays)), [np.imag(x) / STEP for x in arrays]
        )
        all_smooth = all_smooth and smooth
        return [known[v] for v in body.outputs]

    return run_bodies(eqn, inputs, run), all_smooth


def _solve(eqn: Equation, inputs: Sequence[np.ndarray[Any, Any]]) -> tuple[list[Any], bool]:
    """Evaluate a solution, whose derivative solves the equation with the Jacobian of its body."""
    params = wide_params(eqn)
    count = len(inputs) - params["consts"]
    results = list(eqn.op.evaluate([np.real(x) for x in inputs], params))
    given = [np.real(x) for x in inputs[:-count]] + results[:count]
    sizes = [z.size for z in results[:count]]
    smooth = True

    def slope(tangents: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        nonlocal smooth
        known, fine = evaluate(params["body"], given, tangents)
        smooth = smooth and fine
        return np.concatenate([np.ravel(np.imag(known[v])) for v in params["body"].outputs]) / STEP

    still = [np.zeros(np.shape(x)) for x in inputs]
    columns = []
    for row in np.eye(sum(sizes)):
        parts = np.split(row, np.cumsum(sizes)[:-1])
        parts = [p.reshape(z.shape) for p, z in zip(parts, results[:count], strict=True)]
        columns.append(slope([*still[:-count], *parts]))
    moved = slope([*[np.imag(x) / STEP for x in inputs[:-count]], *still[-count:]])
    jacobian = np.reshape(columns, (sum(sizes),) * 2).T
    if params["method"] == "repeat":
        jacobian = jacobian - np.eye(len(jacobian))
    found = np.split(np.linalg.solve(jacobian, -moved), np.cumsum(sizes)[:-1])
    for i, part in enumerate(found):
        results[i] = results[i] + 1j * STEP * part.reshape(results[i].shape)
    return results, smooth


# Primitives with bodies that are not walked, and how they are evaluated.
_WITH_BODIES: dict[Op, Callable[..., tuple[list[Any], bool]]] = {solution: _solve}


def _results(
    op: Primitive[Any], inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]
) -> list[Any]:
    form = _form_of(op)
    if form.function is not None and any(np.iscomplexobj(x) for x in inputs):
        return [form.function(*inputs, **params)]
    results = list(op.evaluate(list(inputs), params))
    if form.partial and np.iscomplexobj(results[0]):
        real = op.evaluate([np.real(x) for x in inputs], params)[0]
        results[0] = np.where(np.isnan(real), np.nan, results[0])
    return results


def _form_of(op: Primitive[Any]) -> ComplexStep:
    """Return the complex-step formula on a primitive's card; by default its NumPy
    implementation."""
    card = CARDS.get(op)
    form = _IMPLICIT.get(op) if card is None else card.complex_step
    return ANALYTIC if form is None else form


def _is_smooth(
    op: Primitive[Any], inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]
) -> bool:
    """Return whether a primitive has no kink or jump near `inputs`, and no steep slope there."""
    if not any(np.iscomplexobj(x) for x in inputs):
        return True
    smooth = _form_of(op).smooth
    if smooth is not None:
        return smooth(inputs, params)
    if op.singular and len(inputs) == 1:
        return _is_gentle(op, np.real(inputs[0]), params)
    return True


def _is_gentle(op: Primitive[Any], x: np.ndarray[Any, Any], params: dict[str, Any]) -> bool:
    """Return whether the derivative is small and finite wherever the value is defined."""
    slope = np.imag(_results(op, [x + 1j * STEP], params)[0]) / STEP
    return not np.any(np.abs(slope) > STEEPEST)
