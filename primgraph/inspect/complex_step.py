"""Derivatives by a complex step: an evaluator that knows nothing of the rules it is to judge.

A graph is evaluated on `x + ih v`; the imaginary parts of the results are `h` times the
derivative along `v`, without a difference that could cancel. Every float, whatever its width,
is a complex number of 128 bits here. Primitives that NumPy does not have for complex numbers, or
that are not analytic, are written out for numbers of the form `a + ih b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.call import Operator
from primgraph.primitives.reductions import root_of_squares

STEP = 1e-30

# What the square of the step may leave of a number that is zero without it.
_REST = 1e-50

# How far from a kink or a jump a point has to be, and how steep a function may be at most.
MARGIN = 1e-3
STEEPEST = 1e4

# Real functions that have no value where the complex ones have one.
_PARTIAL = {"log", "log1p", "sqrt", "rsqrt", "arcsin", "arccos", "arccosh", "arctanh", "power"}

# The primitives that this evaluator knows; of others it cannot tell whether they are analytic.
KNOWN = frozenset(
    """
    abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin bitwise_and
    bitwise_not bitwise_or bitwise_xor broadcast cast ceil concat constant cos cosh cumsum div equal
    erf erfc exp expm1 floor floor_divide full gather greater greater_equal integer_pow iota
    left_shift less less_equal log log1p logaddexp logical_and logical_not logical_or logical_xor
    matmul maximum minimum mul neg not_equal pad permute power random_bernoulli random_uniform
    reduce_max reduce_min reduce_prod reduce_sum remainder reshape reverse right_shift
    root_of_squares round rsqrt
    scatter_add select sigmoid sign sin sinh slice slice_assign split sqrt stop_gradient sub tan
    tanh unless_nan
    """.split()  # noqa: SIM905
)


def wide_type(type: TensorType) -> TensorType:
    """The same type with floats of 64 bits."""
    return type.with_dtype(FLOAT64) if type.is_float else type


def wide_params(eqn: Equation) -> dict[str, Any]:
    """The parameters of `eqn`, every float dtype in them made float64."""
    params = eqn.kwargs
    if "dtype" in params and params["dtype"].kind == "f":
        params["dtype"] = FLOAT64
    value = params.get("value")
    if isinstance(value, Array) and value.type.is_float:
        params["value"] = Array(value.data.astype(np.float64))
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
    for eqn in graph.body:
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
        params = wide_params(eqn)
        results = _results(eqn.op, inputs, params)
        for i, value in enumerate(eqn.outputs):
            dtype = np.complex128 if value.type.is_float else value.dtype
            results[i] = np.asarray(results[i]).astype(dtype).reshape(value.shape)
        return results, _is_smooth(eqn, inputs, params)


def _results(
    op: Primitive, inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]
) -> list[Any]:
    if op.name in _RULES and any(np.iscomplexobj(x) for x in inputs):
        return [_RULES[op.name](*inputs, **params)]
    results = list(op.evaluate(list(inputs), params))
    if op.name in _PARTIAL and np.iscomplexobj(results[0]):
        real = op.evaluate([np.real(x) for x in inputs], params)[0]
        results[0] = np.where(np.isnan(real), np.nan, results[0])
    return results


def _dual(value: Any, tangent: Any) -> Any:
    return value + 1j * tangent


def _constant(impl: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the real parts alone, whose derivative is zero."""
    return lambda *xs, **params: impl(*map(_real, xs), **params)


def _real(x: Any) -> Any:
    """The real part, in which the step has left nothing: zero is told from other numbers."""
    real = np.real(x)
    return np.where(np.abs(real) < _REST, 0.0, real) if np.iscomplexobj(x) else real


def _cast(x: Any, *, dtype: Any) -> Any:
    return x if dtype.kind == "f" else _real(x).astype(dtype)


def _extremum(argument: Callable[..., Any]) -> Callable[..., Any]:
    """The element of largest or smallest real part over several axes."""

    def rule(x: Any, *, axes: tuple[int, ...]) -> Any:
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in kept]
        count = math.prod(x.shape[a] for a in axes)
        flat = np.transpose(x, (*kept, *axes)).reshape((*shape, count))
        if flat.size == 0:
            return np.zeros(shape, complex)
        place = argument(np.real(flat), axis=-1)
        return np.take_along_axis(flat, np.expand_dims(place, -1), -1)[..., 0]

    return rule


def _logaddexp(x: Any, y: Any) -> Any:
    top = np.maximum(x.real, y.real)
    return top + np.log(np.exp(x - top) + np.exp(y - top))


def _arctan2(x: Any, y: Any) -> Any:
    slope = (y.real * x.imag - x.real * y.imag) / (x.real**2 + y.real**2)
    return _dual(np.arctan2(x.real, y.real), slope)


def _erf(function: Callable[[float], float], sign: float) -> Callable[..., Any]:
    def rule(x: Any) -> Any:
        value = np.reshape([function(v) for v in x.real.reshape(-1)], x.shape)
        return _dual(value, sign * 2 / math.sqrt(math.pi) * np.exp(-(x.real**2)) * x.imag)

    return rule


def _root_of_squares(x: Any, squares: Any, **params: Any) -> Any:
    value = root_of_squares.impl(np.real(x), np.real(squares), **params)
    unit = np.real(x) / np.expand_dims(value, params["axes"])
    slope = np.sum(unit * np.imag(x), axis=params["axes"]) / params["divisor"]
    return _dual(value, slope)


_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")

_RULES: dict[str, Callable[..., Any]] = {
    **{name: _constant(getattr(np, name)) for name in (*_COMPARISONS, "argmax", "argmin")},
    **{name: _constant(getattr(np, name)) for name in ("sign", "floor", "ceil", "floor_divide")},
    "round": _constant(np.rint),
    "stop_gradient": _constant(np.array),
    "cast": _cast,
    "abs": lambda x: x * np.sign(x.real),
    "maximum": lambda x, y: np.where(x.real >= y.real, x, y),
    "minimum": lambda x, y: np.where(x.real <= y.real, x, y),
    "unless_nan": lambda x, y: np.where(np.isnan(np.real(y)), y, x),
    "remainder": lambda x, y: x - y * np.floor_divide(x.real, y.real),
    "integer_pow": lambda x, *, n: (
        np.prod([x] * n, axis=0) if n > 0 else 1 / np.prod([x] * -n, axis=0) if n else x**0
    ),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "logaddexp": _logaddexp,
    "arctan2": _arctan2,
    "erf": _erf(math.erf, 1.0),
    "erfc": _erf(math.erfc, -1.0),
    "root_of_squares": _root_of_squares,
    "reduce_max": _extremum(np.argmax),
    "reduce_min": _extremum(np.argmin),
}


# Kinks and jumps. A tie of two numbers that move together is none.


def _is_smooth(
    eqn: Equation, inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]
) -> bool:
    name = eqn.op.name
    if not any(np.iscomplexobj(x) for x in inputs):
        return True
    if name in ("reduce_max", "reduce_min", "argmax", "argmin"):
        axes = params["axes"] if "axes" in params else (params["axis"],)
        return _leads(inputs[0] if name.endswith("max") else -inputs[0], axes)
    if name == "root_of_squares":
        return bool(np.all(np.real(_root_of_squares(*inputs, **params)) > MARGIN))
    if name == "arctan2":
        x, y = (np.real(v) for v in inputs)
        cut = (np.abs(x) < MARGIN) & (y < 0)
        return not np.any((x * x + y * y < 0.01) | cut)
    if name in ("floor_divide", "remainder") and np.any(np.abs(inputs[1]) < MARGIN):
        return False
    distance = _distance(name, inputs, params)
    if distance is not None:
        moves = np.imag(distance) != 0
        return not np.any((np.abs(np.real(distance)) < MARGIN) & moves)
    if isinstance(eqn.op, Primitive) and eqn.op.singular and len(inputs) == 1:
        return name == "reduce_prod" or _is_gentle(eqn.op, np.real(inputs[0]), params)
    if name == "power":
        return bool(np.all(np.real(inputs[0]) > 0.01))
    return True


def _distance(name: str, inputs: Sequence[np.ndarray[Any, Any]], params: dict[str, Any]) -> Any:
    """How far elements are from where the primitive has a kink or jumps; None if it never does."""
    x = inputs[0]
    if name in ("maximum", "minimum", *_COMPARISONS):
        return x - inputs[1]
    if name in ("abs", "sign"):
        return x
    if name in ("floor_divide", "remainder"):
        x = x / inputs[1]
    truncates = name == "cast" and params["dtype"].kind in "iub"
    if name in ("floor", "ceil", "floor_divide", "remainder") or truncates:
        return x - np.rint(x.real)
    return x - np.floor(x.real) - 0.5 if name == "round" else None


def _leads(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> bool:
    """Whether all elements near the largest one over `axes` move as it does."""
    if x.size == 0:
        return True
    top = np.expand_dims(_extremum(np.argmax)(x, axes=axes), axes)
    near = x.real > top.real - MARGIN
    return not np.any(near & (x.imag != top.imag))


def _is_gentle(op: Primitive, x: np.ndarray[Any, Any], params: dict[str, Any]) -> bool:
    """Whether the slope is small and finite in every element where there is a value at all."""
    slope = np.imag(_results(op, [x + 1j * STEP], params)[0]) / STEP
    return not np.any(np.abs(slope) > STEEPEST)
