"""Products of vectors and of several matrices: cross, vecdot, matvec, powers, chains."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.errors import ArgumentError, NotSquareError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.operators.call import namespace_operator, public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.arithmetic import multiply
from primgraph.operators.handle import ArrayLike
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.systems import inv, transpose_matrices
from primgraph.operators.promotion import axis_of, broadcast_to_shape, lift, require_integer
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape import joining
from primgraph.operators.shape.creation import eye
from primgraph.operators.shape.joining import concatenate, slice_axis
from primgraph.operators.shape.shaping import expand_dims, moveaxis, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.parts import conj


@public
def assume(x: ArrayLike, *facts: str) -> Variable:
    """Declare facts about the square matrices in the last two axes of `x`, and return `x`.

    `facts` are "symmetric", "positive_definite" (which implies symmetric), "lower_triangular",
    "upper_triangular" and "diagonal". They choose the methods for `x`: a positive definite matrix
    has one Cholesky factor for systems, inverses, determinants and all their derivatives. Facts are
    checked in debug mode only (`pg.transforms.debug()`), where a run that violates one raises
    `RunError`. Facts that follow from the computation need no declaration: triangles of `cholesky`,
    `qr` and `tril`, transposes, `a @ a.T + c * eye(n)`. Raises `ShapeError` for matrices that are
    not square, `DTypeError` for other dtypes than floats, `ArgumentError` for other facts.

    >>> a = pg.assume(2.0 * pg.eye(2), "positive_definite")
    >>> pg.linalg.solve(a, np.ones(2))
    tensor([0.5, 0.5])
    """
    return emit(assumed, lift(x), facts=tuple(sorted({*facts})))


@public
@decided_by_types
def matrix_transpose(x: ArrayLike) -> Variable:
    """Return each matrix of a stack transposed. Raises `ShapeError` for less than two axes.

    >>> pg.matrix_transpose([[1.0, 2.0]])
    tensor([[1.],
            [2.]])
    """
    value = lift(x)
    if value.ndim < 2:
        raise ShapeError(f"matrix_transpose takes at least two axes, not {value.type}")
    return transpose_matrices(value)


@public
@decided_by_types
def vecdot(x1: ArrayLike, x2: ArrayLike, axis: int = -1) -> Variable:
    """Return sums of products along `axis`; the other axes are broadcast.

    Complex `x1` is conjugated, as in NumPy.

    Raises `ShapeError` for 0-d operands, and if sizes along `axis` differ.

    >>> pg.vecdot([1.0, 2.0], [3.0, 4.0])
    tensor(11.)
    """
    x, y = lift(x1), lift(x2)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"vecdot takes vectors, not {x.type} and {y.type}")
    left, right = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"vecdot of {x.type} and {y.type}: extents differ along axis {axis}")
    left = emit(conj, left) if left.type.is_complex else left
    return sum(multiply(left, right), -1, dtype=multiply(left, right).dtype)


@public
@decided_by_types
def matvec(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the product of each matrix with a vector; stacks are broadcast.

    Raises `ShapeError` for shapes that do not match.

    >>> pg.matvec([[1.0, 2.0]], [3.0, 4.0])
    tensor([11.])
    """
    matrix, vector = lift(x1), lift(x2)
    if matrix.ndim < 2 or vector.ndim < 1:
        raise ShapeError(f"matvec takes matrices and vectors, not {matrix.type} and {vector.type}")
    product = matmul(matrix, expand_dims(vector, -1))
    return reshape_to(product, product.shape[:-1])


@public
@decided_by_types
def vecmat(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the product of a vector with each matrix; stacks are broadcast.

    A complex vector is conjugated, as in NumPy.

    Raises `ShapeError` for shapes that do not match.

    >>> pg.vecmat([1.0, 2.0], [[3.0], [4.0]])
    tensor([11.])
    """
    vector, matrix = lift(x1), lift(x2)
    if matrix.ndim < 2 or vector.ndim < 1:
        raise ShapeError(f"vecmat takes vectors and matrices, not {vector.type} and {matrix.type}")
    vector = emit(conj, vector) if vector.type.is_complex else vector
    product = matmul(expand_dims(vector, -2), matrix)
    return reshape_to(product, (*product.shape[:-2], product.shape[-1]))


def _component(x: Variable, i: int) -> Variable:
    return slice_axis(x, x.ndim - 1, i, 1)


@public
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Variable:
    """Compute vector products of vectors of three components, or of two, which lie in the plane.

    `axisa` and `axisb` have the components, which are `axisc` of the result; `axis` replaces all
    three. For two vectors in the plane the result is the third component only. Other axes are
    broadcast. Raises `ShapeError` unless there are two or three components.

    >>> pg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    tensor([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = lift(a), lift(b)
    left = moveaxis(x, axis_of("cross", x, axisa), -1)
    right = moveaxis(y, axis_of("cross", y, axisb), -1)
    counts = left.shape[-1], right.shape[-1]
    if not set(counts) <= {2, 3}:
        raise ShapeError(f"cross of {x.type} and {y.type} takes two or three components")
    (r, s), (t, v) = ([_component(z, i) for i in (0, 1)] for z in (left, right))
    third = r * v - s * t
    if counts == (2, 2):
        return reshape_to(third, third.shape[:-1])
    if counts[0] == 2:
        z = _component(right, 2)
        first, second = s * z, -(r * z)
    elif counts[1] == 2:
        z = _component(left, 2)
        first, second = -(z * v), z * t
    else:
        (u, w) = _component(left, 2), _component(right, 2)
        first, second = s * w - u * v, u * t - r * w
    return moveaxis(concatenate([first, second, third], -1), -1, axisc)


@namespace_operator
def diagonal(x: ArrayLike, *, offset: int = 0) -> Variable:
    """Return the diagonal of each matrix in a stack; `offset` counts to the right.

    Raises `ShapeError` for fewer than two axes.

    >>> pg.linalg.diagonal([[1.0, 2.0], [3.0, 4.0]])
    tensor([1., 4.])
    """
    return joining.diagonal(x, offset, -2, -1)


@namespace_operator
def trace(x: ArrayLike, *, offset: int = 0) -> Variable:
    """Return the sum of the diagonal of each matrix of a stack; see `diagonal`.

    >>> pg.linalg.trace([[1.0, 2.0], [3.0, 4.0]])
    tensor(5.)
    """
    return sum(diagonal(x, offset=offset), -1)


@namespace_operator
def matrix_power(a: ArrayLike, n: int) -> Variable:
    """Return the product of `n` equal matrices; of the inverse, for a negative `n`.

    Raises `ShapeError` for matrices that are not square, `ArgumentError` if `n` is not an integer.

    >>> pg.linalg.matrix_power([[1.0, 1.0], [0.0, 1.0]], 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    value, count = lift(a), require_integer("matrix_power", n)
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        raise NotSquareError(f"matrix_power takes square matrices, not {value.type}")
    if count == 0:
        return broadcast_to_shape(eye(value.shape[-1], dtype=value.dtype), value.shape)
    if count < 0:
        value, count = inv(value), -count
    result: Variable | None = None
    while count:
        if count % 2:
            result = value if result is None else matmul(result, value)
        count //= 2
        if count:
            value = matmul(value, value)
    assert result is not None
    return result


@namespace_operator
def multi_dot(arrays: Sequence[ArrayLike]) -> Variable:
    """Return the product of two or more matrices, in the order that takes the fewest operations.

    The first and the last may be vectors: a row, and a column. Raises `ArgumentError` for less than
    two, `ShapeError` if sizes do not match.

    >>> pg.linalg.multi_dot([[[1.0, 2.0]], [[3.0], [4.0]], [[5.0]]])
    tensor([[55.]])
    """
    if len(arrays) < 2:
        raise ArgumentError(f"multi_dot takes at least two arrays, not {len(arrays)}")
    values = [lift(x) for x in arrays]
    row, column = values[0].ndim == 1, values[-1].ndim == 1
    if row:
        values[0] = expand_dims(values[0], 0)
    if column:
        values[-1] = expand_dims(values[-1], 1)
    strange = [v for v in values if v.ndim != 2]
    if strange:
        raise ShapeError(f"multi_dot takes matrices, not {strange[0].type}")
    product = _multiply_chain(values)
    shape = (*product.shape[: 1 - row], *product.shape[1 : 2 - column])
    return reshape_to(product, shape)


def _multiply_chain(values: list[Variable]) -> Variable:
    """Return the product in the cheapest order; Cormen et al., Introduction to algorithms, 14.2."""
    extents = [values[0].shape[0], *(v.shape[1] for v in values)]
    if any(type(n) is Dim for n in extents):
        result = values[0]
        for value in values[1:]:
            result = matmul(result, value)
        return result
    count = len(values)
    cost = {(i, i): (0, i) for i in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            ways = []
            for k in range(i, j):
                own = extents[i] * extents[k + 1] * extents[j + 1]
                ways.append((cost[i, k][0] + cost[k + 1, j][0] + own, k))
            cost[i, j] = min(ways)
    done: dict[tuple[int, int], Variable] = {(i, i): v for i, v in enumerate(values)}
    waiting = [(0, count - 1)]
    while waiting:
        i, j = waiting[-1]
        k = cost[i, j][1]
        parts = [] if i == j else [(i, k), (k + 1, j)]
        missing = [p for p in parts if p not in done]
        if missing:
            waiting += missing
            continue
        if parts:
            done[i, j] = matmul(done[parts[0]], done[parts[1]])
        waiting.pop()
    return done[0, count - 1]
