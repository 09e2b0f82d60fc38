"""Rules of matrix factors and linear equations."""

from __future__ import annotations

from collections.abc import Iterable

from primgraph import linalg
from primgraph.control.loops import scan
from primgraph.interop.jax.rules import (
    Site,
    concatenated,
    constant,
    convert,
    emit,
    emit_all,
    fit,
    full_like,
    permute,
    reshape,
    rule,
    sliced,
    spread,
)
from primgraph.interop.jax.shapes import counted, padded
from primgraph.ir.types import FLOAT16, FLOAT32, INT64, Shape
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic, parts
from primgraph.primitives.linear_algebra.matrix_functions import lu
from primgraph.scipy.linalg import schur


def _swapped(x: Variable) -> Variable:
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _adjoint(x: Variable) -> Variable:
    return _swapped(emit(parts.conj, x) if x.type.is_complex else x)


def _nothing(at: Site) -> list[Variable]:
    return [constant(0, t.dtype, t.shape) for t in at.types]


@rule("cholesky")
def _cholesky(at: Site, a: Variable) -> Variable:
    if 0 in a.shape:
        return a
    found: Variable = linalg.cholesky(a)
    return found


@rule("eigh")
def _eigh(at: Site, a: Variable) -> list[Variable]:
    if 0 in a.shape or 0 in at.types[0].shape:
        return _nothing(at)
    w, v = linalg.eigh(a, UPLO="L" if at["lower"] else "U")
    subset = at.params.get("subset_by_index")
    if subset is not None and tuple(subset) != (0, a.shape[-1]):
        first, last = subset
        v, w = (sliced(x, x.ndim - 1, first, last - first) for x in (v, w))
    return [v, w]


@rule("eig")
def _eig(at: Site, a: Variable) -> list[Variable]:
    if 0 in a.shape:
        return _nothing(at)
    w, right = linalg.eig(convert(a, at.types[0].dtype))
    found = [w]
    if at["compute_left_eigenvectors"]:
        # The columns of the inverse's adjoint: `u^H a == w u^H`.
        found.append(_unit_vectors(_adjoint(linalg.inv(right))))
    if at["compute_right_eigenvectors"]:
        found.append(_unit_vectors(right))
    return [convert(x, t.dtype) for x, t in zip(found, at.types, strict=True)]


def _unit_vectors(v: Variable) -> Variable:
    """Return the columns with length one and a real largest element, as LAPACK's are.

    Derivatives of columns that have these already are of such columns, too.
    """
    axis = v.ndim - 2
    size = call_named("norm", v, axis=axis, keepdims=True)
    v = emit(e.div, v, convert(call_named("broadcast_to", size, v.shape), v.dtype))
    sizes = emit(parts.modulus, v)
    largest = call_named("argmax", sizes, axis=axis, keepdims=True)
    found = [call_named("take_along_axis", x, largest, axis=axis) for x in (v, sizes)]
    phase = emit(e.div, found[0], convert(found[1], v.dtype))
    return emit(e.div, v, call_named("broadcast_to", phase, v.shape))


@rule("svd")
def _svd(at: Site, a: Variable) -> list[Variable]:
    subset = at.params.get("subset_by_index")
    if subset is not None and tuple(subset) != (0, min(a.shape[-2:])):
        at.refuse("subset_by_index")
    if 0 in a.shape:
        found = _nothing(at)
        if at["compute_uv"] and at["full_matrices"]:
            for k in (1, 2):
                n = found[k].shape[-1]
                eye = emit(logic.equal, counted((n, n), 0), counted((n, n), 1))
                found[k] = spread(convert(eye, found[k].dtype), found[k].shape,
                                  (found[k].ndim - 2, found[k].ndim - 1))  # fmt: skip
        return found
    if not at["compute_uv"]:
        return [linalg.svdvals(a)]
    u, s, vh = linalg.svd(a, full_matrices=at["full_matrices"])
    return [s, u, vh]


@rule("qr")
def _qr(at: Site, a: Variable) -> list[Variable]:
    if at["pivoting"]:
        at.refuse("pivoting")
    if 0 in a.shape:
        return _nothing(at)
    q, r = linalg.qr(a, mode="complete" if at["full_matrices"] else "reduced")
    return [q, r]


@rule("lu")
def _lu(at: Site, a: Variable) -> list[Variable]:
    """Factors in one matrix, the rows that were swapped, and their order."""
    if 0 in a.shape:
        return _nothing(at)
    order, left, right = emit_all(lu, a)
    rows, columns = counted(a.shape, a.ndim - 2), counted(a.shape, a.ndim - 1)
    below = emit(logic.less, columns, rows)
    both = emit(logic.select, below, _widened(left, a.shape), _widened(right, a.shape))
    pivots = _pivots_of(order, left.shape[-1])
    return [
        both,
        *(convert(x, t.dtype) for x, t in zip((pivots, order), at.types[1:], strict=True)),
    ]


def _widened(x: Variable, shape: Shape) -> Variable:
    """Return matrices with zeros below and beside them."""
    config = [(0, n - m, 0) for m, n in zip(x.shape, shape, strict=True)]
    return padded(x, constant(0, x.dtype), config)


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(at: Site, pivots: Variable) -> Variable:
    """Return the order of rows after swapping row i with row `pivots[..., i]`, for each i."""
    axis = pivots.ndim - 1
    place = counted(at.shape, axis)

    def swap(order: Variable, row: tuple[Variable, Variable]) -> tuple[Variable, None]:
        number, pivot = row
        return _swap(order, place, fit(number, pivot.shape), pivot), None

    rows = permute(convert(pivots, INT64), (axis, *range(axis)))
    order, _ = scan(swap, place, (counted((rows.shape[0],), 0), rows))
    return convert(order, at.dtype)


def _pivots_of(order: Variable, count: int) -> Variable:
    """Return the rows that row i, for each i below `count`, was swapped with for this order."""
    axis = order.ndim - 1
    place = counted(order.shape, axis)

    def swap(now: Variable, row: tuple[Variable, Variable]) -> tuple[Variable, Variable]:
        number, wanted = row
        is_there = emit(logic.equal, now, spread(wanted, now.shape, range(axis)))
        pivot: Variable = call_named("argmax", convert(is_there, INT64), axis=axis)
        return _swap(now, place, fit(number, wanted.shape), pivot), pivot

    rows = sliced(permute(order, (axis, *range(axis))), 0, 0, count)
    _, found = scan(swap, place, (counted((count,), 0), rows))
    return permute(found, (*range(1, axis + 1), 0))


def _swap(order: Variable, place: Variable, i: Variable, j: Variable) -> Variable:
    """Return rows of numbers with those at i and j exchanged."""
    first, second = (reshape(x, (*x.shape, 1)) for x in (i, j))
    axis = order.ndim - 1
    here, there = (call_named("take_along_axis", order, x, axis=axis) for x in (first, second))
    at_first, at_second = (emit(logic.equal, place, fit(x, place.shape)) for x in (first, second))
    order = emit(logic.select, at_second, fit(here, order.shape), order)
    return emit(logic.select, at_first, fit(there, order.shape), order)


@rule("triangular_solve")
def _triangular_solve(at: Site, a: Variable, b: Variable) -> Variable:
    if 0 in a.shape or 0 in b.shape:
        return constant(0, at.dtype, at.shape)
    matrix, lower = a, at["lower"]
    if at["conjugate_a"] and a.type.is_complex:
        matrix = emit(parts.conj, matrix)
    if not at["left_side"]:
        # x a = b is a^T x^T = b^T.
        turned = not at["transpose_a"]
        found = _solve_triangular(matrix, _swapped(b), lower, turned, at["unit_diagonal"])
        return _swapped(found)
    return _solve_triangular(matrix, b, lower, at["transpose_a"], at["unit_diagonal"])


def _solve_triangular(
    a: Variable, b: Variable, lower: bool, transposed: bool, unit: bool
) -> Variable:
    # As in JAX, float16 is solved in float32.
    x, y = (convert(v, FLOAT32) if v.dtype == FLOAT16 else v for v in (a, b))
    found = linalg.solve_triangular(
        x, y, trans=1 if transposed else 0, lower=lower, unit_diagonal=unit
    )
    return convert(found, b.dtype)


@rule("tridiagonal_solve")
def _tridiagonal_solve(at: Site, dl: Variable, d: Variable, du: Variable, b: Variable) -> Variable:
    """Solve with the matrix of three diagonals, as a matrix."""
    *lead, n = d.shape
    rows, columns = counted((n, n), 0), counted((n, n), 1)
    whole = constant(0, d.dtype, (*lead, n, n))
    for diagonal, offset in ((dl, -1), (d, 0), (du, 1)):
        on = emit(logic.equal, columns, emit(e.add, rows, full_like(rows, offset)))
        on = spread(on, whole.shape, (len(lead), len(lead) + 1))
        values = spread(diagonal, whole.shape, range(len(lead) + 1))
        whole = emit(logic.select, on, values, whole)
    found: Variable = linalg.solve(whole, b)
    return found


@rule("schur")
def _schur(at: Site, a: Variable) -> list[Variable]:
    """Return the triangle, and the vectors; real matrices with complex eigenvalues raise."""
    if 0 in a.shape:
        return _nothing(at)
    found: tuple[Variable, Variable] = schur(a, "complex" if a.type.is_complex else "real")
    return [*found][: len(at.types)]


@rule("symmetric_product")
def _symmetric_product(at: Site, a: Variable, c: Variable) -> Variable:
    product = call_named("matmul", a, _swapped(a))
    scaled = emit(e.mul, product, full_like(product, at["alpha"]))
    return emit(e.add, scaled, emit(e.mul, c, full_like(c, at["beta"])))


# Reflections `1 - tau v v^H`: the columns below a diagonal of a matrix are the vectors `v`, whose
# first element, on it, is one.


@rule("householder_product")
def _householder_product(at: Site, a: Variable, taus: Variable) -> Variable:
    """The first columns of the product of reflections, one after the other."""
    if 0 in a.shape:
        return a
    *lead, m, n = a.shape
    eye = emit(logic.equal, counted((m, n), 0), counted((m, n), 1))
    found = spread(convert(eye, a.dtype), a.shape, (len(lead), len(lead) + 1))
    return _reflected(a, taus, found, reversed(range(taus.shape[-1])))


@rule("ormqr")
def _ormqr(at: Site, a: Variable, taus: Variable, c: Variable) -> Variable:
    """The product with the reflections: from the left, or of adjoints."""
    if 0 in c.shape or 0 in taus.shape:
        return c
    turned = at["left"] == at["transpose"]
    if turned and taus.type.is_complex:
        taus = emit(parts.conj, taus)
    order = range(taus.shape[-1])
    value = c if at["left"] else _adjoint(c)
    value = _reflected(a, taus, value, order if turned else reversed(order))
    return value if at["left"] else _adjoint(value)


@rule("geqrf")
def _geqrf(at: Site, a: Variable) -> list[Variable]:
    if 0 in a.shape:
        return _nothing(at)
    return [*_eliminated(a, at.types[1].shape[-1], 0)]


@rule("hessenberg")
def _hessenberg(at: Site, a: Variable) -> list[Variable]:
    if 0 in a.shape or 0 in at.types[1].shape:
        return [a, constant(0, a.dtype, at.types[1].shape)]
    return [*_eliminated(a, at.types[1].shape[-1], 1)]


def _reflected(a: Variable, taus: Variable, c: Variable, order: Iterable[int]) -> Variable:
    """Return `c` after the reflections of these columns of `a`."""
    for k in order:
        v = _reflector(a, k)
        c = _reflect(v, sliced(taus, taus.ndim - 1, k, 1), c)
    return c


def _reflect(v: Variable, tau: Variable, c: Variable) -> Variable:
    """Return `c - tau v (v^H c)`."""
    product = call_named("matmul", v, call_named("matmul", _adjoint(v), c))
    return emit(e.sub, c, emit(e.mul, spread(tau, c.shape, range(tau.ndim)), product))


def _eliminated(a: Variable, count: int, offset: int) -> tuple[Variable, Variable]:
    """Return `a` with zeros below a diagonal by reflections of its first `count` columns, with
    their vectors in place of the zeros, and their factors.

    With an `offset` of one, reflections are applied from the right, too: the form of Hessenberg.
    """
    rows, columns = counted(a.shape, a.ndim - 2), counted(a.shape, a.ndim - 1)
    below = emit(logic.greater, rows, emit(e.add, columns, full_like(columns, offset)))
    vectors, taus = full_like(a, 0), list[Variable]()
    for k in range(count):
        column = sliced(a, a.ndim - 1, k, 1)
        v, tau = _annihilator(column, k + offset)
        here = emit(logic.equal, columns, full_like(columns, k))
        vectors = emit(logic.select, here, fit(v, a.shape), vectors)
        taus.append(tau)
        adjoint = emit(parts.conj, tau) if tau.type.is_complex else tau
        changed = _reflect(v, adjoint, a)
        done = emit(logic.less, columns, full_like(columns, k))
        a = emit(logic.select, done, a, changed)
        if offset:
            # `a (1 - tau v v^H)` is the adjoint of `(1 - conj(tau) v v^H) a^H`.
            a = _adjoint(_reflect(v, adjoint, _adjoint(a)))
    return emit(logic.select, below, vectors, a), concatenated(taus, a.ndim - 2)


def _annihilator(column: Variable, first: int) -> tuple[Variable, Variable]:
    """Return the vector, and its factor, of the reflection that leaves zeros below row `first`.

    As in LAPACK, the element of that row becomes real, of the other sign.
    """
    axis = column.ndim - 2
    tail = _below(column, first, 0)
    alpha = sliced(column, axis, first, 1)
    real = emit(parts.real, alpha) if alpha.type.is_complex else alpha
    rest = call_named("norm", tail, axis=axis, keepdims=True)
    size = call_named("hypot", call_named("abs", alpha), rest)
    is_plus = emit(logic.greater_equal, real, full_like(real, 0))
    beta = convert(emit(logic.select, is_plus, emit(e.neg, size), size), alpha.dtype)
    is_done = emit(logic.equal, rest, full_like(rest, 0))
    if alpha.type.is_complex:
        imag = emit(parts.imag, alpha)
        is_real = emit(logic.equal, imag, full_like(imag, 0))
        is_done = emit(logic.logical_and, is_done, is_real)
    one = full_like(alpha, 1)
    tau = emit(e.div, emit(e.sub, beta, alpha), emit(logic.select, is_done, one, beta))
    tau = emit(logic.select, is_done, full_like(tau, 0), tau)
    scale = emit(logic.select, is_done, one, emit(e.sub, alpha, beta))
    v = _below(emit(e.div, tail, fit(scale, tail.shape)), first, 1)
    return v, reshape(tau, tau.shape[:-1])


def _reflector(a: Variable, k: int) -> Variable:
    """Return the vector of the reflection of column k, as a matrix."""
    return _below(sliced(a, a.ndim - 1, k, 1), k, 1)


def _below(column: Variable, first: int, value: float) -> Variable:
    """Return a column with zeros above row `first`, and a number in it."""
    place = counted(column.shape, column.ndim - 2)
    below = emit(logic.greater, place, full_like(place, first))
    on = emit(logic.equal, place, full_like(place, first))
    return emit(
        logic.select, below, column,
        emit(logic.select, on, full_like(column, value), full_like(column, 0)),
    )  # fmt: skip


@rule("cholesky_update")
def _cholesky_update(at: Site, r: Variable, w: Variable) -> Variable:
    """The upper factor of `r^T r + w w^T`."""
    column = reshape(w, (*w.shape, 1))
    total = emit(e.add, call_named("matmul", _swapped(r), r),
                 call_named("matmul", column, _swapped(column)))  # fmt: skip
    return _swapped(linalg.cholesky(total))
