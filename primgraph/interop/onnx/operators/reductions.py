"""Reductions, and products of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph import linalg
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.table import means, means_each
from primgraph.operators import einsum, logsumexp

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": pnp.sum,
    "ReduceProd": pnp.prod,
    "ReduceMax": lambda x, axes, keepdims: _extreme(x, axes, keepdims, pnp.max),
    "ReduceMin": lambda x, axes, keepdims: _extreme(x, axes, keepdims, pnp.min),
    "ReduceMean": pnp.mean,
    "ReduceL1": lambda x, axes, keepdims: pnp.sum(pnp.abs(x), axes, keepdims=keepdims),
    "ReduceL2": lambda x, axes, keepdims: pnp.sqrt(pnp.sum(x * x, axes, keepdims=keepdims)),
    "ReduceSumSquare": lambda x, axes, keepdims: pnp.sum(x * x, axes, keepdims=keepdims),
    "ReduceLogSum": lambda x, axes, keepdims: pnp.log(pnp.sum(x, axes, keepdims=keepdims)),
    "ReduceLogSumExp": lambda x, axes, keepdims: _log_sum_exp(x, axes, keepdims),
}


def _extreme(x: Value, axes: tuple[int, ...], keepdims: bool, function: Any) -> Any:
    """Return the extreme elements; those of no elements are the dtype's lowest or highest."""
    if all(type(x.shape[axis]) is not int or x.shape[axis] for axis in axes):
        return function(x, axes, keepdims=keepdims)
    largest = function is pnp.max
    empty = np.zeros(x.shape, bool).sum(axes, keepdims=keepdims)
    return np.full(empty.shape, _bounds(x.dtype)[0 if largest else 1], x.dtype)


def _bounds(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest element of a dtype."""
    if dtype.kind == "f":
        return -math.inf, math.inf
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def _log_sum_exp(x: Value, axes: tuple[int, ...], keepdims: bool) -> Any:
    if any(type(x.shape[axis]) is int and x.shape[axis] == 0 for axis in axes):
        return pnp.log(pnp.sum(pnp.exp(x), axes, keepdims=keepdims))
    return logsumexp(x, axes, keepdims)


@means(*_REDUCTIONS)
def _reduce(node: Node, x: Value, *axes: Optional) -> Any:
    given = node.numbers("axes", (x, *axes), 1)
    if not given and node.get("noop_with_empty_axes", 0):
        return _REDUCTIONS[node.kind](x, (), keepdims=True).astype(x.dtype)
    places = tuple(sorted(k % max(x.ndim, 1) for k in given)) if given else tuple(range(x.ndim))
    found = _REDUCTIONS[node.kind](x, places, keepdims=bool(node.get("keepdims", 1)))
    return found.astype(x.dtype)


means_each({"MatMul": pnp.matmul, "Det": linalg.det})


@means("Gemm")
def _gemm(node: Node, a: Value, b: Value, c: Optional = None) -> Any:
    """Return `alpha * a @ b + beta * c`, with transposed factors if so asked."""
    left = pnp.transpose(a) if node.get("transA", 0) else a
    right = pnp.transpose(b) if node.get("transB", 0) else b
    found = pnp.matmul(left, right)
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    found = found if alpha == 1 else found * found.dtype.type(alpha)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else c * c.dtype.type(beta))


@means("Einsum")
def _einsum(node: Node, *inputs: Value) -> Any:
    return einsum(node.get("equation").replace(" ", ""), *inputs)
