"""Reductions, sorting and products by the names that they have in `megengine.functional.math`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional.elemwise import take_numbers
from primgraph.compat.megengine.tensor import INT32, dtype_of_sum
from primgraph.errors import ArgumentError
from primgraph.operators.names import define

_ROWS = """
mean(inp, axis=None, keepdims=False)
Return the mean over `axis`, or of all elements.
>>> megengine.functional.mean(megengine.Tensor([[1, 2], [3, 4]]), axis=0)
Tensor([2. 3.], device=xpux:0)

var(inp, axis=None, keepdims=False)
Return the variance over `axis`, with divisor n.
>>> megengine.functional.var(megengine.Tensor([[1, 2], [3, 4]]))
Tensor(1.25, device=xpux:0)

std(inp, axis=None, keepdims=False)
Return the standard deviation over `axis`, with divisor n.
>>> megengine.functional.std(megengine.Tensor([1.0, 3.0]))
Tensor(1.0, device=xpux:0)

max(inp, axis=None, keepdims=False)
Return the largest element over `axis`.
>>> megengine.functional.max(megengine.Tensor([[1, 2], [3, 4]]), axis=1)
Tensor([2 4], dtype=int32, device=xpux:0)

min(inp, axis=None, keepdims=False)
Return the smallest element over `axis`.
>>> megengine.functional.min(megengine.Tensor([[1, 2], [3, 4]]), axis=1)
Tensor([1 3], dtype=int32, device=xpux:0)

sign(x)
Return the signs: -1, 0 or 1.
>>> megengine.functional.sign(megengine.Tensor([1, -1, 0]))
Tensor([ 1 -1  0], dtype=int32, device=xpux:0)

isnan(inp)
Return whether elements are NaN.
>>> megengine.functional.isnan(megengine.Tensor([1.0, float("nan")]))
Tensor([False  True], dtype=bool, device=xpux:0)

isinf(inp)
Return whether elements are infinite.
>>> megengine.functional.isinf(megengine.Tensor([1.0, float("inf")]))
Tensor([False  True], dtype=bool, device=xpux:0)

dot(inp1, inp2)
Compute the inner product of two vectors.
>>> megengine.functional.dot(megengine.Tensor([1.0, 2.0]), megengine.Tensor([3.0, 4.0]))
Tensor(11.0, device=xpux:0)

matinv(inp): linalg.inv
Invert matrices.
>>> megengine.functional.matinv(megengine.Tensor([[1.0, 0.0], [1.0, 1.0]]))
Tensor([[ 1.  0.]
 [-1.  1.]], device=xpux:0)

cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)
Compute the cross product of vectors along an axis.
>>> F = megengine.functional
>>> F.cross(megengine.Tensor([1.0, 2.0, 3.0]), megengine.Tensor([4.0, 5.0, 6.0]))
Tensor([-3.  6. -3.], device=xpux:0)
"""
_POSITIONS = """
argmax(inp, axis=None, keepdims=False)
Return the index of the first largest element along `axis`, or of all.
>>> megengine.functional.argmax(megengine.Tensor([1.0, 3.0, 2.0]))
Tensor(1, dtype=int32, device=xpux:0)

argmin(inp, axis=None, keepdims=False)
Return the index of the first smallest element along `axis`, or of all.
>>> megengine.functional.argmin(megengine.Tensor([1.0, 3.0, 2.0]))
Tensor(0, dtype=int32, device=xpux:0)
"""


def _as_int32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with positions of int32, as MegEngine's are."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return pg.astype(function(*args, **kwargs), INT32)

    return call


__all__ = [
    *define("megengine.functional", globals(), _ROWS, take_numbers),
    *define("megengine.functional", globals(), _POSITIONS, _as_int32),
    "argsort",
    "matmul",
    "norm",
    "normalize",
    "prod",
    "sort",
    "sum",
    "svd",
    "topk",
]


def argsort(inp: Any, descending: bool = False) -> Any:
    """Return the positions that sort each vector along the last axis.

    >>> megengine.functional.argsort(megengine.Tensor([3.0, 1.0, 2.0]))
    Tensor([1 2 0], dtype=int32, device=xpux:0)
    """
    return pg.astype(_order(inp, descending, -1), INT32)


def sort(inp: Any, descending: bool = False, dim: int = -1) -> tuple[Any, Any]:
    """Sort along an axis; return the elements and their positions before.

    >>> megengine.functional.sort(megengine.Tensor([3.0, 1.0, 2.0]), descending=True)[0]
    Tensor([3. 2. 1.], device=xpux:0)
    """
    order = _order(inp, descending, dim)
    return pg.take_along_axis(inp, order, dim), pg.astype(order, INT32)


def topk(
    inp: Any, k: int, descending: bool = True, kth_only: bool = False, no_sort: bool = False
) -> tuple[Any, Any]:
    """Return the `k` largest elements of each row with their positions; else the smallest.

    With `kth_only` only the last of these is returned. They are in order, with `no_sort` as well.

    >>> F = megengine.functional
    >>> values, positions = F.topk(megengine.Tensor([2.0, 4.0, 6.0, 3.0]), 2)
    >>> values, positions
    (Tensor([6. 4.], device=xpux:0), Tensor([2 1], dtype=int32, device=xpux:0))
    """
    count = int(k)
    if not 0 < abs(count) <= inp.shape[-1]:
        raise ArgumentError(f"topk: k={k} of {inp.shape[-1]} elements")
    order = _order(inp, descending == (count > 0), -1)[..., : abs(count)]
    if kth_only:
        order = order[..., -1:]
    values = pg.take_along_axis(inp, order, -1)
    if kth_only:
        return values[..., 0], pg.astype(order[..., 0], INT32)
    return values, pg.astype(order, INT32)


def sum(inp: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Sum over `axis`, or all elements, in the dtype of the elements; of bool in int32.

    >>> megengine.functional.sum(megengine.Tensor([[1, 2], [3, 4]]), axis=0)
    Tensor([4 6], dtype=int32, device=xpux:0)
    """
    return pg.sum(inp, axis, keepdims, dtype=dtype_of_sum(inp))


def prod(inp: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Multiply over `axis`, or all elements, in the dtype of the elements; of bool in int32.

    >>> megengine.functional.prod(megengine.Tensor([[1, 2], [3, 4]]), axis=0)
    Tensor([3 8], dtype=int32, device=xpux:0)
    """
    return pg.prod(inp, axis, keepdims, dtype=dtype_of_sum(inp))


def matmul(
    inp1: Any,
    inp2: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    compute_mode: str = "default",
) -> Any:
    """Multiply matrices; a flag transposes the last two axes of its factor.

    >>> F = megengine.functional
    >>> F.matmul(F.ones((2, 3)), F.ones((4, 3)), transpose_b=True).shape
    (2, 4)
    """
    left = pg.swapaxes(inp1, -1, -2) if transpose_a else inp1
    return pg.matmul(left, pg.swapaxes(inp2, -1, -2) if transpose_b else inp2)


def norm(inp: Any, ord: Any = None, axis: int | None = None, keepdims: bool = False) -> Any:
    """Compute the norm of a vector, or along `axis`, of order `ord`, which is 2 by default.

    Raises `ArgumentError`, a `TypeError`, for more axes and no `axis`.

    >>> F = megengine.functional
    >>> F.norm(megengine.Tensor([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Tensor([5. 2.], device=xpux:0)
    """
    if axis is None and inp.ndim != 1:
        raise ArgumentError("norm: axis is required unless input is a vector")
    return pg.norm(inp, ord, axis, keepdims)


def normalize(inp: Any, ord: Any = None, axis: int | None = None, eps: float = 1e-12) -> Any:
    """Divide by the norm along `axis`, or by `eps` if that is larger.

    >>> F = megengine.functional
    >>> F.normalize(megengine.Tensor([3.0, 4.0]))
    Tensor([0.6 0.8], device=xpux:0)
    """
    return inp / pg.clip(norm(inp, ord, axis, axis is not None), eps, None)


def svd(inp: Any, full_matrices: bool = False, compute_uv: bool = True) -> tuple[Any, Any, Any]:
    """Return U, S and Vh with `inp = U @ diag(S) @ Vh`; only S without `compute_uv`.

    >>> F = megengine.functional
    >>> [x.shape for x in F.svd(F.ones((4, 2)))]
    [(4, 2), (2,), (2, 2)]
    """
    if not compute_uv:
        return None, linalg.svdvals(inp), None
    u, s, vh = linalg.svd(inp, full_matrices)
    return u, s, vh


def _order(inp: Any, descending: bool, axis: int) -> Any:
    """Positions that sort along an axis; of equal elements the first one comes first."""
    if not descending:
        return pg.argsort(inp, axis)
    # Negative numbers would overflow for the smallest integer.
    flipped = pg.argsort(pg.flip(inp, axis), axis)
    return inp.shape[axis] - 1 - pg.flip(flipped, axis)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
