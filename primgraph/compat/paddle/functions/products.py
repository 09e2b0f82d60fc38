"""Products of vectors and matrices, with Paddle's names for functions and arguments."""

from __future__ import annotations

from itertools import combinations as pairs
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.paddle.core.methods import is_array
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.errors import ShapeError
from primgraph.ir.types import as_axis

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_ROWS = """
matmul(x, y, transpose_x=False, transpose_y=False) = \
pg.matmul(turned(x, transpose_x), turned(y, transpose_y))
Multiply matrices; a flag transposes the last two axes of its factor. \
| [[1, 2], [3, 4]], [1, 1] -> [3, 7]
mm(input, mat2) = pg.matmul(input, mat2)
Multiply matrices. | [[1, 2], [3, 4]], [[1, 0], [0, 1]] -> [[1, 2], [3, 4]]
bmm(x, y) = pg.matmul(of_rank(x, 3), of_rank(y, 3))
Multiply batches of matrices. | [[[1, 2], [3, 4]]], [[[1, 0], [0, 1]]] -> [[[1, 2], [3, 4]]]
mv(x, vec): matmul
Multiply a matrix with a vector. | [[1, 2], [3, 4]], [1, 1] -> [3, 7]
dot(x, y) = pg.sum(pg.multiply(x, y), -1)
Multiply vectors, or each row with the other's. | [1.0, 2.0], [3.0, 4.0] -> 11.0
vecdot(x, y, axis=-1): vecdot
Multiply vectors along an axis. | [1.0, 2.0], [3.0, 4.0] -> 11.0
inner(x, y): inner
Compute the sums of products over the last axes. | [1.0, 2.0], [3.0, 4.0] -> 11.0
outer|ger(x, y): outer
Multiply each element with each of the other. | [1.0, 2.0], [3.0, 4.0] -> [[3.0, 4.0], [6.0, 8.0]]
kron(x, y): kron
Multiply each element with the whole other tensor. | [[1, 2]], [[1, 1]] -> [[1, 1, 2, 2]]
addmm(input, x, y, beta=1.0, alpha=1.0) = blended(input, pg.matmul(x, y), beta, alpha)
Compute `beta * input + alpha * x @ y`. \
| [[1.0]], [[1.0, 2.0]], [[3.0], [4.0]], beta=2.0 -> [[13.0]]
baddbmm(input, x, y, beta=1.0, alpha=1.0) = blended(input, pg.matmul(x, y), beta, alpha)
Compute `beta * input + alpha * x @ y` of batches. \
| [[[1.0]]], [[[1.0, 2.0]]], [[[3.0], [4.0]]] -> [[[12.0]]]
tensordot(x, y, axes=2): tensordot(x, y, axes_of(axes))
Compute sums of products over pairs of axes. | [[1, 2], [3, 4]], [[1, 2], [3, 4]] -> 30
trace(x, offset=0, axis1=0, axis2=1): handles.trace
Compute sums along diagonals. | [[1, 2], [3, 4]] -> 5
cross(x, y, axis=9) = crossed(x, y, axis)
Compute cross products along the first axis of extent 3. | [1, 0, 0], [0, 1, 0] -> [0, 0, 1]
cdist(x, y, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary") = \
distances(pg.subtract(pg.expand_dims(x, -2), pg.expand_dims(y, -3)), p)
Compute the distances between all rows. | [[0.0, 0.0]], [[3.0, 4.0]] -> [[5.0]]
pdist(x, p=2.0) = pairwise(x, p)
Compute the distances between all pairs of rows. | [[0.0, 0.0], [3.0, 4.0]] -> [5.0]
combinations(x, r=2, with_replacement=False) = chosen(x, r, with_replacement)
Return the combinations of `r` elements. | [1, 2, 3] -> [[1, 2], [1, 3], [2, 3]]
cartesian_prod(x) = pg.stack([pg.reshape(a, (-1,)) for a in pg.meshgrid(*x, indexing="ij")], -1)
Return all combinations of an element of each vector. | ([1, 2], [3]) -> [[1, 3], [2, 3]]
"""


def turned(x: Any, turn: bool) -> Any:
    """Return the transpose of matrices if `turn`."""
    return pg.swapaxes(x, -1, -2) if turn and len(x.shape) > 1 else x


def of_rank(x: Any, rank: int) -> Any:
    """Return `x` if it has that number of axes."""
    if len(x.shape) != rank:
        raise ShapeError(f"bmm takes tensors of {rank} axes, not of shape {list(x.shape)}")
    return x


def blended(x: Any, product: Any, beta: float, alpha: float) -> Any:
    """Compute `beta * x + alpha * product`."""
    first = x if beta == 1 else pg.multiply(x, beta)
    return pg.add(first, product if alpha == 1 else pg.multiply(product, alpha))


def axes_of(axes: Any) -> Any:
    """Return the pairs of axes of `tensordot`; one list is for both tensors."""
    if is_array(axes):
        axes = axes.tolist()
    if isinstance(axes, int):
        return axes
    given = [list(a) if isinstance(a, list | tuple) else a for a in axes]
    if all(isinstance(a, int) for a in given):
        return [given, given]
    first, second = (given * 2)[:2]
    return [first + second[len(first) :], second + first[len(second) :]]


def crossed(x: Any, y: Any, axis: int) -> Any:
    """Compute cross products."""
    if axis == 9:
        axis = next((i for i, n in enumerate(x.shape) if n == 3), -1)
    if x.shape[as_axis(axis, len(x.shape))] != 3:
        raise ShapeError(f"cross takes vectors of three elements, not of shape {list(x.shape)}")
    return pg.cross(x, y, axis=axis)


def distances(differences: Any, p: float) -> Any:
    """Return norms along the last axis."""
    return linalg.vector_norm(differences, axis=-1, ord=p)


def pairwise(x: Any, p: float) -> Any:
    """Return the distances between pairs of rows."""
    first, second = np.triu_indices(x.shape[0], 1)
    return distances(pg.subtract(pg.take(x, first, 0), pg.take(x, second, 0)), p)


def chosen(x: Any, r: int, with_replacement: bool) -> Any:
    """Return combinations of elements."""
    size = x.shape[0]
    if with_replacement:
        known = np.indices((size,) * r).reshape(r, -1).T
        places = known[(np.diff(known, axis=1) >= 0).all(1)]
    else:
        places = np.array(list(pairs(range(size), r)), np.int64).reshape(-1, r)
    return pg.take(x, places, 0)


__all__ = define_functions(globals(), _ROWS)
