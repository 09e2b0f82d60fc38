"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.torch.functions.compositions import add
from primgraph.compat.torch.functions.results import define_functions, takes_out
from primgraph.compat.torch.functions.shapes import collect_varargs
from primgraph.errors import ShapeError
from primgraph.operators.reduce.norms import vector_norm

_ROWS = """
dot(input, tensor): dot(input, tensor)
Compute the sum of products of two vectors.
>>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
tensor(11.)

inner(input, other): inner(input, other)
Compute sums of products over last axes.
>>> torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
tensor(11.)

matmul(input, other): matmul(input, other)
Compute products of matrices, or of a matrix and a vector.
>>> torch.matmul(torch.ones(2, 3), torch.ones(3))
tensor([3., 3.])

outer|ger(input, vec2): outer(vector("self", input), vector("vec2", vec2))
Compute all products of elements of two vectors.
>>> torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
tensor([[3., 4.],
        [6., 8.]])

tensordot(a, b, dims=2): tensordot(a, b, dims)
Compute products over the last axes of `a` and the first of `b`, or over those in `dims`.
>>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
torch.Size([2, 4])
"""


def vector(name: str, given: Any) -> Any:
    """Return an argument of `outer`. Raises `ShapeError` for other numbers of axes than one."""
    if given.ndim != 1:
        raise ShapeError(f"outer: Expected 1-D argument {name}, but got {given.ndim}-D")
    return given


__all__ = [
    *define_functions(globals(), _ROWS),
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "cdist",
    "chain_matmul",
    "cross",
    "einsum",
    "mm",
    "mv",
    "pdist",
    "renorm",
    "vdot",
]


def _require_axes(name: str, operands: tuple[Any, ...], counts: tuple[int, ...]) -> None:
    for x, count in zip(operands, counts, strict=True):
        if x.ndim != count:
            raise ShapeError(
                f"{name} takes operands of {' and '.join(map(str, counts))} axes, not {x.type}",
                hint="torch.matmul takes other numbers of axes",
            )


@takes_out
def mm(input: Any, mat2: Any) -> Any:
    """Compute the product of two matrices. Raises `ShapeError` for other numbers of axes.

    >>> torch.mm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    _require_axes("mm", (input, mat2), (2, 2))
    return pg.matmul(input, mat2)


@takes_out
def bmm(input: Any, mat2: Any) -> Any:
    """Compute products of two batches of matrices, of three axes.

    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).shape
    torch.Size([2, 1, 1])
    """
    _require_axes("bmm", (input, mat2), (3, 3))
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(f"bmm takes batches of one size, not {input.type} and {mat2.type}")
    return pg.matmul(input, mat2)


@takes_out
def mv(input: Any, vec: Any) -> Any:
    """Compute the product of a matrix and a vector.

    >>> torch.mv(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    _require_axes("mv", (input, vec), (2, 1))
    return pg.matmul(input, vec)


def _add_product(input: Any, product: Any, beta: float, alpha: float) -> Any:
    """Compute `beta * input + alpha * product`; without `input` for a `beta` of zero."""
    if beta == 0:
        return product if alpha == 1 else pg.multiply(product, alpha)
    return add(input if beta == 1 else pg.multiply(input, beta), product, alpha=alpha)


@takes_out
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `beta * input + alpha * mat1 @ mat2`.

    >>> torch.addmm(torch.ones(1), torch.ones(1, 2), torch.ones(2, 1))
    tensor([[3.]])
    """
    return _add_product(input, mm(mat1, mat2), beta, alpha)


@takes_out
def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `beta * input + alpha * mat @ vec`.

    >>> torch.addmv(torch.ones(1), torch.ones(1, 2), torch.ones(2))
    tensor([3.])
    """
    return _add_product(input, mv(mat, vec), beta, alpha)


@takes_out
def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `beta * input + alpha * outer(vec1, vec2)`.

    >>> torch.addr(torch.ones(1, 1), torch.ones(1), torch.ones(1))
    tensor([[2.]])
    """
    return _add_product(input, pg.outer(vec1, vec2), beta, alpha)


@takes_out
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `beta * input + alpha * batch1 @ batch2` of batches of matrices.

    >>> torch.baddbmm(torch.ones(1, 1, 1), torch.ones(1, 1, 2), torch.ones(1, 2, 1))
    tensor([[[3.]]])
    """
    return _add_product(input, bmm(batch1, batch2), beta, alpha)


@takes_out
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `beta * input` plus `alpha` times the sum of products of batches of matrices.

    >>> torch.addbmm(torch.ones(1, 1), torch.ones(2, 1, 2), torch.ones(2, 2, 1))
    tensor([[5.]])
    """
    return _add_product(input, pg.sum(bmm(batch1, batch2), 0), beta, alpha)


def chain_matmul(*matrices: Any) -> Any:
    """Compute the product of several matrices, in the order of fewest operations.

    >>> torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1))
    tensor([[6.]])
    """
    return linalg.multi_dot(list(matrices)) if len(matrices) > 1 else matrices[0]


def vdot(input: Any, other: Any) -> Any:
    """Compute the sum of products, with conjugates of the first operand.

    >>> torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return pg.dot(pg.conj(input), other)


def einsum(equation: Any, *operands: Any) -> Any:
    """Compute sums of products by letters of axes, of operands given one by one or in a list.

    Operands with lists of numbers for their axes, `einsum(a, [0, 1], b, [1, 2])`, are taken, too.

    >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    if isinstance(equation, str):
        given = collect_varargs(operands)
        view = _view_of(equation, *given) if len(given) == 1 else None
        return pg.einsum(equation, *given) if view is None else view
    given = (equation, *operands)
    count = len(given) // 2
    lists = [given[2 * i + 1] for i in range(count)]
    letters = ["".join("..." if n is Ellipsis else chr(97 + n) for n in row) for row in lists]
    text = ",".join(letters)
    if len(given) % 2:
        text += "->" + "".join("..." if n is Ellipsis else chr(97 + n) for n in given[-1])
    return einsum(text, *[given[2 * i] for i in range(count)])


def _view_of(equation: str, operand: Any) -> Any:
    """Return the view that an equation of one operand describes: permuted, or a diagonal."""
    letters, arrow, result = equation.replace(" ", "").partition("->")
    if not letters.isalpha() or len(letters) != operand.ndim or not hasattr(operand, "permute"):
        return None
    if not arrow:
        result = "".join(sorted(c for c in letters if letters.count(c) == 1))
    if letters == 2 * result and len(result) == 1:
        return operand.diagonal() if operand.shape[0] == operand.shape[1] else None
    if sorted(result) != sorted(letters) or len({*letters}) < len(letters):
        return None
    return operand.permute(*map(letters.index, result))


@takes_out
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Compute cross products along `dim`, or along the first axis of size three.

    >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    axis = dim
    if axis is None:
        shape = np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
        axis = shape.index(3) if 3 in shape else None
    if axis is None or input.shape[axis] != 3:
        raise ShapeError(f"cross takes an axis of size 3, and {input.type} has none")
    return linalg.cross(input, other, axis=axis)


def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """Compute the distances of all pairs of rows.

    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], axis=-1, ord=p)


def pdist(input: Any, p: float = 2.0) -> Any:
    """Compute the distances of all pairs of different rows of a matrix.

    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([5.])
    """
    rows, columns = np.triu_indices(input.shape[0], 1)
    return vector_norm(pg.take(input, rows, 0) - pg.take(input, columns, 0), axis=-1, ord=p)


def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Scale the slices along `dim` whose norm is larger than `maxnorm` to that norm.

    >>> torch.renorm(torch.tensor([[3.0, 4.0]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000]])
    """
    others = tuple(i for i in range(input.ndim) if i != dim % input.ndim)
    norms = vector_norm(input, axis=others, keepdims=True, ord=p)
    return pg.multiply(input, pg.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0))
