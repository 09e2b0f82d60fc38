"""Operators of single elements: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.interop.onnx.node import Node, Optional, Value, dtype_of
from primgraph.interop.onnx.table import means, means_each
from primgraph.operators import erf as erf_function
from primgraph.operators import gelu, log_softmax, relu, softmax, softplus
from primgraph.operators import sigmoid as sigmoid_function
from primgraph.operators.promotion import lift
from primgraph.operators.variable import emit
from primgraph.primitives.bits import bitcast


def _variadic(function: Any) -> Any:
    return lambda *inputs: reduce(function, inputs)


means_each({
    "Abs": pnp.abs, "Acos": pnp.arccos, "Acosh": pnp.arccosh, "Asin": pnp.arcsin,
    "Asinh": pnp.arcsinh, "Atan": pnp.arctan, "Atanh": pnp.arctanh, "Ceil": pnp.ceil,
    "Cos": pnp.cos, "Cosh": pnp.cosh, "Erf": erf_function, "Exp": pnp.exp, "Floor": pnp.floor,
    "IsNaN": pnp.isnan, "Log": pnp.log, "Neg": pnp.negative, "Not": pnp.logical_not,
    "Reciprocal": lambda x: x.dtype.type(1) / x, "Relu": relu, "Round": pnp.round,
    "Sigmoid": sigmoid_function, "Sign": pnp.sign, "Sin": pnp.sin, "Sinh": pnp.sinh,
    "Softplus": softplus, "Sqrt": pnp.sqrt, "Tan": pnp.tan, "Tanh": pnp.tanh,
    "BitwiseAnd": pnp.bitwise_and, "BitwiseNot": pnp.invert, "BitwiseOr": pnp.bitwise_or,
    "BitwiseXor": pnp.bitwise_xor, "Where": pnp.where, "Identity": lambda x: x,
    "OptionalGetElement": lambda x: x,
    "Max": _variadic(pnp.maximum), "Min": _variadic(pnp.minimum), "Sum": _variadic(pnp.add),
    "Mean": lambda *xs: reduce(pnp.add, xs) / xs[0].dtype.type(len(xs)),
    "Softsign": lambda x: x / (x.dtype.type(1) + pnp.abs(x)),
    "Mish": lambda x: x * pnp.tanh(softplus(x)),
})  # fmt: skip


def _divide(x: Value, y: Value) -> Any:
    """Divide; integers are rounded towards zero."""
    if x.dtype.kind not in "iu":
        return pnp.divide(x, y)
    quotient = pnp.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    above = (pnp.remainder(x, y) != 0) & ((x < 0) != (y < 0))
    return quotient + above.astype(x.dtype)


def _power(x: Value, y: Value) -> Any:
    """Return the power in the dtype of the base."""
    if x.dtype == y.dtype or (x.dtype.kind == "f" and y.dtype.kind != "f"):
        return pnp.power(x, y.astype(x.dtype))
    return pnp.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


_BINARY = {
    "Add": pnp.add, "Sub": pnp.subtract, "Mul": pnp.multiply, "Div": _divide, "Pow": _power,
    "And": pnp.logical_and, "Or": pnp.logical_or, "Xor": pnp.logical_xor, "Equal": pnp.equal,
    "Greater": pnp.greater, "GreaterOrEqual": pnp.greater_equal, "Less": pnp.less,
    "LessOrEqual": pnp.less_equal,
}  # fmt: skip


@means(*_BINARY)
def _binary(node: Node, x: Value, y: Value) -> Any:
    """Apply a function of two arrays; before version 7 the axis of `y` may be given."""
    axis = node.get("axis")
    if axis is not None and node.get("broadcast", 0):
        start = axis % x.ndim
        y = pnp.reshape(y, (*y.shape, *(1,) * (x.ndim - start - y.ndim)))
    return _BINARY[node.kind](x, y)


@means("OptionalHasElement")
def _optional_has_element(node: Node, x: Optional = None) -> Any:
    return np.asarray(x is not None)


@means("Mod")
def _mod(node: Node, x: Value, y: Value) -> Any:
    return pnp.fmod(x, y) if node.get("fmod", 0) else pnp.remainder(x, y)


@means("BitShift")
def _bit_shift(node: Node, x: Value, y: Value) -> Any:
    return (pnp.left_shift if node.get("direction") == "LEFT" else pnp.right_shift)(x, y)


@means("IsInf")
def _is_inf(node: Node, x: Value) -> Any:
    found = pnp.isinf(x)
    if not node.get("detect_negative", 1):
        found = found & (x > 0)
    return found if node.get("detect_positive", 1) else found & (x < 0)


@means("Clip")
def _clip(node: Node, x: Value, low: Optional = None, high: Optional = None) -> Any:
    scalar = x.dtype.type
    low = scalar(node.attributes["min"]) if "min" in node.attributes else low
    high = scalar(node.attributes["max"]) if "max" in node.attributes else high
    raised = x if low is None else pnp.maximum(x, low)
    return raised if high is None else pnp.minimum(raised, high)


@means("Cast")
def _cast(node: Node, x: Value) -> Any:
    return _converted(node, x, dtype_of(node.get("to")))


@means("CastLike")
def _cast_like(node: Node, x: Value, like: Value) -> Any:
    return _converted(node, x, like.dtype)


@means("BitCast")
def _bitcast(node: Node, x: Value) -> Any:
    dtype, value = dtype_of(node.get("to")), pnp.asarray(x)
    if value.dtype.kind == "b":
        return value.astype(dtype)
    return value if value.dtype == dtype else emit(bitcast, lift(value), dtype=dtype)


def _converted(node: Node, x: Value, dtype: np.dtype[Any]) -> Any:
    if dtype.kind not in "biufc" or x.dtype.kind not in "biufcO":
        raise node.unsupported(f"a conversion from {x.dtype} to {dtype}")
    return x if x.dtype == object and dtype.kind == "i" else x.astype(dtype)


# Activations.


@means("LeakyRelu")
def _leaky_relu(node: Node, x: Value) -> Any:
    return pnp.where(x < 0, x.dtype.type(node.get("alpha", 0.01)) * x, x)


@means("PRelu")
def _prelu(node: Node, x: Value, slope: Value) -> Any:
    return pnp.where(x < 0, slope * x, x)


def _scaled_elu(x: Value, scale: float, alpha: float, spread: float = 1.0) -> Any:
    """`scale * x` above zero, and `scale * alpha * (exp(x / spread) - 1)` below."""
    number = x.dtype.type
    below = number(alpha) * pnp.expm1(pnp.minimum(x, number(0)) / number(spread))
    return number(scale) * pnp.where(x < 0, below, x)


@means("Elu")
def _elu(node: Node, x: Value) -> Any:
    return _scaled_elu(x, 1.0, node.get("alpha", 1.0))


@means("Selu")
def _selu(node: Node, x: Value) -> Any:
    """`SELU` of G. Klambauer et al., Self-normalizing neural networks, 2017."""
    alpha = node.get("alpha", 1.67326319217681884765625)
    return _scaled_elu(x, node.get("gamma", 1.05070102214813232421875), alpha)


@means("Celu")
def _celu(node: Node, x: Value) -> Any:
    alpha = node.get("alpha", 1.0)
    return _scaled_elu(x, 1.0, alpha, alpha)


@means("HardSigmoid")
def _hard_sigmoid(node: Node, x: Value) -> Any:
    return _line(x, node.get("alpha", 0.2), node.get("beta", 0.5))


def _line(x: Value, slope: float, offset: float) -> Any:
    """Return a line that is cut off at 0 and 1."""
    number = x.dtype.type
    return pnp.minimum(pnp.maximum(number(slope) * x + number(offset), number(0)), number(1))


@means("HardSwish")
def _hard_swish(node: Node, x: Value) -> Any:
    return x * _line(x, 1 / 6, 0.5)


@means("Swish")
def _swish(node: Node, x: Value) -> Any:
    return x * sigmoid_function(x.dtype.type(node.get("alpha", 1.0)) * x)


@means("ThresholdedRelu")
def _thresholded_relu(node: Node, x: Value) -> Any:
    return pnp.where(x > x.dtype.type(node.get("alpha", 1.0)), x, x.dtype.type(0))


@means("Gelu")
def _gelu(node: Node, x: Value) -> Any:
    return gelu(x, node.get("approximate", "none") == "tanh")


@means("Shrink")
def _shrink(node: Node, x: Value) -> Any:
    number = x.dtype.type
    bias, bound = number(node.get("bias", 0.0)), number(node.get("lambd", 0.5))
    zero = number(0)
    return pnp.where(x < -bound, x + bias, pnp.where(x > bound, x - bias, zero))


def _hardmax(x: Value, axis: int) -> Any:
    best = pnp.expand_dims(pnp.argmax(x, axis), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    places = np.arange(x.shape[axis]).reshape(shape)
    return (best == places).astype(x.dtype)


_NORMALIZED = {"Softmax": softmax, "LogSoftmax": log_softmax, "Hardmax": _hardmax}


@means(*_NORMALIZED)
def _normalized_rows(node: Node, x: Value) -> Any:
    """Normalize over all axes from `axis` on, as before version 13."""
    axis = node.get("axis", 1) % max(x.ndim, 1)
    rows = pnp.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return pnp.reshape(_NORMALIZED[node.kind](rows, 1), x.shape)


@means(*_NORMALIZED, since=13)
def _normalized(node: Node, x: Value) -> Any:
    return _NORMALIZED[node.kind](x, node.get("axis", -1) % max(x.ndim, 1))
