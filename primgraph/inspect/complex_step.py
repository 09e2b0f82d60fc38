"""Derivatives by a complex step: an evaluator that knows nothing of the rules it is to judge.

A graph is evaluated on `x + ih v`; the imaginary parts of the results are `h` times the
derivative along `v`, without a difference that could cancel. Every float, whatever its width,
is a complex number of 128 bits here. Primitives that NumPy does not have for complex numbers, or
that are not analytic, are written out on their cards for numbers of the form `a + ih b`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.codegen.cards.special_functions.gamma import stepped
from primgraph.codegen.cards.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.codegen.cards.table import CARDS
from primgraph.inspect.trips import is_walked, walked
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value, with_bodies
from primgraph.ir.params import Array
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import COMPLEX128, FLOAT64, TensorType
from primgraph.operators.call import Operator
from primgraph.primitives.special_functions.special import as_gamma_of

STEP = 1e-30

# How steep a function may be at most.
STEEPEST = 1e4

# What code is never written for, but has a slope of its own that no value was computed with.
_IMPLICIT: dict[Op, ComplexStep] = {as_gamma_of: stepped(as_gamma_of)}


def is_known(op: Op) -> bool:
    """Whether this evaluator knows a primitive, so that it can tell whether that is analytic."""
    card = CARDS.get(op)
    return op in _IMPLICIT or (card is not None and card.complex_step is not None)


def knows(graph: Graph) -> bool:
    """Whether this evaluator knows all primitives of `graph`, those in branches and loops too."""
    return all(all(map(knows, e.bodies)) if is_walked(e) else is_known(e.op) for e in graph.body)


def wide_type(type: TensorType) -> TensorType:
    """The same type with floats of 64 bits, and complex numbers of two such."""
    if type.is_complex:
        return type.with_dtype(COMPLEX128)
    return type.with_dtype(FLOAT64) if type.is_float else type


def wide_params(eqn: Equation) -> dict[str, Any]:
    """The parameters of `eqn`, every float dtype in them made float64, in bodies too."""
    params = dict(with_bodies(eqn.params, widened)) if eqn.op.has_bodies else eqn.kwargs
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


def widened(graph: Graph) -> Graph:
    """The same program with every float of 64 bits."""
    builder = Builder(graph.name)
    moved = {v: builder.input(wide_type(v.type), v.hint) for v in graph.inputs}
    for eqn in graph.body:
        results = builder.emit(eqn.op, [moved[v] for v in eqn.inputs], wide_params(eqn))
        moved.update(zip(eqn.outputs, results, strict=True))
    return builder.graph([moved[v] for v in graph.outputs])


def evaluate(
    graph: Graph, arrays: Sequence[Any], tangents: Sequence[Any]
) -> tuple[dict[Value, np.ndarray[Any, Any]], bool]:
    """All values of `graph`, and whether they are differentiable there.

    `tangents` has an array for each input; those of inputs that are not floats do not count.
    """
    known: dict[Value, np.ndarray[Any, Any]] = {}
    for value, array, tangent in zip(graph.inputs, arrays, tangents, strict=True):
        known[value] = np.asarray(array)
        if value.type.is_float:
            known[value] = np.asarray(array, np.float64) + 1j * STEP * np.asarray(tangent)
    smooth = True
    # What is held constant, as it was before: what has a slope of its own was computed from it.
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
    """The results of one equation, and whether it is differentiable at `inputs`."""
    with np.errstate(all="ignore"):
        if isinstance(eqn.op, Operator):
            builder, result = eqn.op.traced(tuple(v.type for v in eqn.inputs), eqn.kwargs)
            inner = builder.graph([result.value])
            tangents = [np.imag(x) / STEP for x in inputs]
            known, smooth = evaluate(inner, [np.real(x) for x in inputs], tangents)
            return [known[inner.outputs[0]]], smooth
        assert isinstance(eqn.op, Primitive)
        if is_walked(eqn):
            results, smooth = _through_bodies(eqn, inputs)
        else:
            params = wide_params(eqn)
            results = _results(eqn.op, inputs, params)
            smooth = _is_smooth(eqn.op, inputs, params)
        for i, value in enumerate(eqn.outputs):
            dtype = np.complex128 if value.type.is_float else value.dtype
            found = np.asarray(results[i]).astype(dtype)
            results[i] = found if is_open(value.shape) else found.reshape(value.shape)
        return results, smooth


def _through_bodies(
    eqn: Equation, inputs: Sequence[np.ndarray[Any, Any]]
) -> tuple[list[Any], bool]:
    """The results of a branch or a loop, and whether all of its trips are differentiable."""
    all_smooth = True

    def run(body: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        nonlocal all_smooth
        known, smooth = evaluate(
            body, list(map(np.real, arrays)), [np.imag(x) / STEP for x in arrays]
        )
        all_smooth = all_smooth and smooth
        return [known[v] for v in body.outputs]

    return walked(eqn, inputs, run), all_smooth


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
    """What the card of a primitive says of complex numbers; its own meaning without one."""
    card = CARDS.get(op)
    form = _IMPLICIT.get(op) if card is None else card.complex_step
    return ANALYTIC if form is None else form


def _is_smooth(
    op: Primitive[Any], inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]
) -> bool:
    """Whether a primitive has neither kink nor jump near `inputs`, and is not steep there."""
    if not any(np.iscomplexobj(x) for x in inputs):
        return True
    smooth = _form_of(op).smooth
    if smooth is not None:
        return smooth(inputs, params)
    if op.singular and len(inputs) == 1:
        return _is_gentle(op, np.real(inputs[0]), params)
    return True


def _is_gentle(op: Primitive[Any], x: np.ndarray[Any, Any], params: dict[str, Any]) -> bool:
    """Whether the slope is small and finite in every element where there is a value at all."""
    slope = np.imag(_results(op, [x + 1j * STEP], params)[0]) / STEP
    return not np.any(np.abs(slope) > STEEPEST)
