"""Embedding lookups and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import BOOL, INT64
from primgraph.operators.call import operator, public
from primgraph.operators.elementwise.arithmetic import add, multiply
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import equal, greater, greater_equal, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.networks.activations import softmax
from primgraph.operators.promotion import (
    broadcasts_to,
    convert_dtype,
    inexact_dtype,
    lift,
    require_flag,
    require_integer,
    require_number,
)
from primgraph.operators.sampling.random_arrays import dropout
from primgraph.operators.shape.creation import astype, iota
from primgraph.operators.shape.joining import repeat
from primgraph.operators.shape.shaping import swapaxes
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.elementwise import stop_gradient


@public
def embedding(x: ArrayLike, weight: ArrayLike, padding_idx: int | None = None) -> Variable:
    """Return the rows of `weight` at the positions `x`, which are integers of any shape.

    The row `padding_idx`, counted from the end if it is negative, gets no gradient. Raises
    `DTypeError` for positions that are not integers, `ShapeError` for a weight that is not a
    matrix, and `BoundsError` for constant positions out of range.

    >>> pg.embedding([1, 0], [[1.0, 2.0], [3.0, 4.0]])
    tensor([[3., 4.],
            [1., 2.]])
    """
    positions, table = lift(x), lift(weight)
    if table.ndim != 2:
        raise ShapeError(f"embedding takes a matrix, not {table.type}")
    if positions.dtype.kind not in "iu":
        raise DTypeError(f"embedding takes integer positions, not {positions.type}")
    if padding_idx is not None:
        rows, number = table.shape[0], require_integer("embedding: padding_idx", padding_idx)
        if type(rows) is int and not -rows <= number < rows:
            raise ArgumentError(f"embedding: a table of {rows} rows has no row {number}")
        place = number + rows if number < 0 else number
        still = equal(iota((rows, 1), 0, INT64), place)
        table = where(still, emit(stop_gradient, table), table)
    return take(table, x, 0)


@operator("query", "key", "value", "attn_mask", "dropout_key")
def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_key: ArrayLike | None = None,
) -> Variable:
    """Compute `softmax(query @ key.T * scale + mask) @ value`, with the arguments of torch.

    Vaswani et al., Attention is all you need, 2017.

    `query` is of shape (..., L, E), `key` (..., S, E) and `value` (..., S, V): the result is of
    shape (..., L, V). `scale` is by default the reciprocal root of E. `attn_mask` broadcasts to
    (..., L, S): booleans select the positions that take part; floats are added. With `is_causal`, a
    row attends to positions up to its own. Rows without any position are 0. With `enable_gqa`,
    heads of keys and values, along the third last axis, serve several heads of queries. Weights are
    dropped with probability `dropout_p`, by the integer `dropout_key`.

    Raises `ShapeError` for shapes that do not match, and `ArgumentError` for a mask beside
    `is_causal` and for dropout without a key.

    >>> query, key, value = np.ones((1, 2, 4)), np.ones((1, 3, 4)), np.ones((1, 3, 5))
    >>> pg.scaled_dot_product_attention(query, key, value).shape
    (1, 2, 5)
    """
    name = "scaled_dot_product_attention"
    dtype = inexact_dtype(query, key, value)
    q, k, v = (lift(x, dtype) for x in (query, key, value))
    _check(name, q, k, v)
    if require_flag("enable_gqa", enable_gqa) and q.ndim > 2:
        k, v = (_for_heads(name, x, q.shape[-3]) for x in (k, v))
    shares = shares_of(q, k, _scale(q, scale), *_mask(name, q, k, attn_mask, is_causal))
    if require_number("dropout_p", dropout_p):
        if dropout_key is None:
            raise ArgumentError(f"{name} drops shares by a key", hint="give dropout_key=3")
        shares = dropout(shares, dropout_key, dropout_p)
    return matmul(shares, v)


def _check(name: str, q: Variable, k: Variable, v: Variable) -> None:
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"{name} takes matrices, not {q.type}, {k.type} and {v.type}")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"{name}: queries {q.type} and keys {k.type} have vectors of different lengths"
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{name}: there are other numbers of keys {k.type} and values {v.type}")


def _scale(q: Variable, scale: float | None) -> ArrayLike:
    if scale is not None:
        return require_number("scale", scale)
    width = q.shape[-1]
    if type(width) is Dim:
        return 1.0 / sqrt(convert_dtype(lift(width), q.dtype))
    return 1.0 / math.sqrt(width) if width else 1.0


def _for_heads(name: str, x: Variable, heads: int) -> Variable:
    own = x.shape[-3]
    if heads == own:
        return x
    if own == 0 or heads % own:
        raise ShapeError(f"{name}: {own} heads of {x.type} do not serve {heads} heads evenly")
    return repeat(x, heads // own, -3)


def parts_of_mask(mask: Any) -> tuple[Any, Any]:
    """Return which scores take part, and what is added to them, or None for 0."""
    if mask.dtype == BOOL:
        return mask, None
    allowed = greater(mask, -math.inf)
    return allowed, where(allowed, mask, 0)


def shares_of(q: Any, k: Any, scale: Any, allowed: Any, added: Any) -> Any:
    """Return the softmax over the scores that take part; 0 for the others, and in rows without any.

    Excluded scores are replaced by a finite number whose exponential is 0, so that no infinities
    are subtracted.
    """
    # Scale the queries, which are smaller than the scores.
    scores = matmul(multiply(q, scale), swapaxes(k, -1, -2))
    if added is not None:
        scores = add(scores, astype(added, scores.dtype))
    if allowed is None:
        return softmax(scores)
    low = float(np.finfo(scores.dtype).min) / 2
    return where(allowed, softmax(where(allowed, scores, low)), 0)


def _mask(
    name: str, q: Variable, k: Variable, mask: ArrayLike | None, is_causal: bool
) -> tuple[Variable | None, Variable | None]:
    """Return which positions take part, and what is added to their scores."""
    shape = (q.shape[-2], k.shape[-2])
    if require_flag("is_causal", is_causal):
        if mask is not None:
            raise ArgumentError(f"{name} takes either a mask or is_causal")
        return greater_equal(iota(shape, 0, INT64), iota(shape, 1, INT64)), None
    if mask is None:
        return None, None
    given = lift(mask)
    lead = max((x.shape[:-2] for x in (q, k)), key=len)
    if not broadcasts_to(given.shape, (*lead, *shape)):
        raise ShapeError(f"{name}: a mask {given.type} does not fit {q.type} and {k.type}")
    return parts_of_mask(given)
