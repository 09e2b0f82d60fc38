"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.functions.elementwise import binary
from primgraph.compat.torch.functions.shapes import collect_varargs

__all__ = [
    "bmm",
    "dot",
    "einsum",
    "inner",
    "matmul",
    "mm",
    "mv",
    "outer",
    "tensordot",
    "vdot",
]

dot = binary(pg.dot, "dot")
inner = binary(pg.inner, "inner")
matmul = mm = bmm = mv = binary(pg.matmul, "matmul")
outer = binary(pg.outer, "outer")


def vdot(input: Any, other: Any) -> Any:
    """Compute the sum of products, with conjugates of the first operand.

    >>> torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return pg.dot(pg.conj(input), other)


def einsum(equation: str, *operands: Any) -> Any:
    """Compute sums of products by letters of axes, of operands given one by one or in a list.

    >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    return pg.einsum(equation, *collect_varargs(operands))


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Compute products over the last axes of `a` and the first of `b`, or over those in `dims`.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    return pg.tensordot(a, b, dims)
