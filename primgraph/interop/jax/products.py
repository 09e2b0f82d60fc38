"""Rules of matrix products and of Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primgraph import fft
from primgraph.interop.jax.rules import (
    Site,
    constant,
    convert,
    emit,
    permute,
    reshape,
    rule,
)
from primgraph.ir.types import BOOL, complex_dtype
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic
from primgraph.primitives.linear_algebra.products import matmul


@rule("dot_general")
def _dot_general(at: Site, x: Variable, y: Variable) -> Variable:
    (left, right), (left_batch, right_batch) = at["dimension_numbers"]
    if at.dtype == BOOL:
        return _convert_back(at, x, y)
    if 0 in x.shape or 0 in y.shape:
        return constant(0, at.dtype, at.shape)
    a = _matrices(convert(x, at.dtype), left_batch, left, last=True)
    b = _matrices(convert(y, at.dtype), right_batch, right, last=False)
    lead = tuple([x.shape[i] for i in left_batch])
    rows = _others(x, left_batch, left)
    columns = _others(y, right_batch, right)
    shape = (*lead, *(x.shape[i] for i in rows), *(y.shape[i] for i in columns))
    if not left:
        # An outer product has no sums.
        return reshape(emit(e.mul, *_outer(a, b)), shape)
    return reshape(emit(matmul, a, b), shape)


def _convert_back(at: Site, x: Variable, y: Variable) -> Variable:
    whole = Site(at.primitive, at.params, at.operands, (at.type.with_dtype(np.dtype("i4")),),
                 at.evaluator)  # fmt: skip
    found = _dot_general(whole, x, y)
    assert isinstance(found, Variable)
    return emit(logic.not_equal, found, constant(0, found.dtype, found.shape))


def _others(x: Variable, batch: Sequence[int], contracted: Sequence[int]) -> list[int]:
    return [i for i in range(x.ndim) if i not in batch and i not in contracted]


def _matrices(
    x: Variable, batch: Sequence[int], contracted: Sequence[int], *, last: bool
) -> Variable:
    """Return `x` as matrices with the contracted axes as columns (`last`) or as rows."""
    rest = _others(x, batch, contracted)
    order = (*batch, *rest, *contracted) if last else (*batch, *contracted, *rest)
    inner, outer = (math.prod([x.shape[i] for i in axes]) for axes in (contracted, rest))
    ends = (outer, inner) if last else (inner, outer)
    return reshape(permute(x, order), (*(x.shape[i] for i in batch), *ends))


def _outer(a: Variable, b: Variable) -> list[Variable]:
    """Return columns and rows repeated to matrices."""
    from_shape = (*a.shape[:-1], b.shape[-1])
    found: list[Variable] = [call_named("broadcast_to", v, from_shape) for v in (a, b)]
    return found


@rule("ragged_dot_general")
def _ragged_dot_general(at: Site, x: Variable, y: Variable, sizes: Variable) -> Variable:
    """Multiply rows of the matrix by that matrix of the stack in whose group they are."""
    numbers = at["ragged_dot_dimension_numbers"]
    plain = numbers.dot_dimension_numbers, tuple(numbers.lhs_ragged_dimensions)
    if plain != ((((1,), (1,)), ((), ())), (0,)) or tuple(numbers.rhs_group_dimensions) != (0,):
        return at.refuse("ragged products other than of a matrix and a stack of matrices")
    ends = call_named("cumsum", sizes, axis=0)
    rows = call_named("arange", x.shape[0])
    found = constant(0, at.dtype, at.shape)
    for k in range(y.shape[0]):
        first = call_named("subtract", ends[k], sizes[k])
        inside = call_named("logical_and", rows >= first, rows < ends[k])
        product = emit(matmul, convert(x, at.dtype), convert(y[k], at.dtype))
        mask = call_named("broadcast_to", inside[:, None], at.shape)
        found = emit(logic.select, mask, product, found)
    return found


_TRANSFORMS = ("fft", "ifft", "rfft", "irfft")


@rule("fft")
def _fft(at: Site, x: Variable) -> Variable:
    kind = _TRANSFORMS[int(at["fft_type"])]
    lengths = tuple(at["fft_lengths"])
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    if 0 in at.shape or 0 in x.shape:
        return constant(0, at.dtype, at.shape)
    if kind in ("fft", "ifft"):
        found = getattr(fft, f"{kind}n")(convert(x, complex_dtype(x.dtype)), axes=axes)
    else:
        found = getattr(fft, f"{kind}n")(x, s=lengths, axes=axes)
    return convert(found, at.dtype)
