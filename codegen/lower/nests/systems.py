"""Calls of C functions for linear systems and factorisations, matrix by matrix.

Large matrices go to LAPACK, as do eigenvalues, singular values and orthogonal factors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod

from primgraph.codegen.ir.c_extents import is_few, is_zero
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.c.call_lines import Call, Lines
from primgraph.codegen.ops.c.spellings import c_type, type_name
from primgraph.codegen.runtime.lapack import lapack
from primgraph.ir.primitive import Op
from primgraph.ir.types import smaller
from primgraph.primitives.linear_algebra import cholesky, matrix_functions, spectra, systems

# Words of matrices in arguments.
_MATRIX = re.compile(r"[xz]\d")


# Minimum number of rows at which LAPACK is faster than the loops of linear.c.
FROM: dict[Op, int] = {
    systems.solve: 80,
    systems.inv: 80,
    systems.slogdet: 96,
    systems.det: 96,
    systems.triangular_solve: 56,
    cholesky.cholesky: 112,
    cholesky.cholesky_tangent: 64,
    cholesky.cholesky_slope: 56,
    matrix_functions.lu: 112,
}


def choose_function(call: Call, name: str, n: int) -> str:
    """Return the function expression of that name for matrices of n rows."""
    kind = type_name(call.step.operands[0].dtype)
    if not is_far(call, n):
        return call.use(f"pg_{name}_{kind}")
    other = call.use(f"pg_lapack_{name}_{kind}")
    if type(n) is int:
        return other
    own = call.use(f"pg_{name}_{kind}")
    return f"({call.size(n)} < {FROM[call.step.op]} ? {own} : {other})"


def is_far(call: Call, n: int) -> bool:
    """Return whether LAPACK may be used, for some sizes at least."""
    return call.is_checked and not is_few(n, FROM[call.step.op] - 1) and lapack() is not None


def each_matrix(call: Call, *inside: str) -> Iterator[str]:
    """Yield statements in a loop over a stack of matrices; a single matrix needs no loop."""
    lead, i = call.step.operands[0].ndim - 2, call.index
    if not lead:
        yield from inside
        return
    count = call.size(prod(call.step.operands[0].shape[:lead]))
    yield f"for (long {i} = 0; {i} < {count}; {i}++) {{"
    yield from (f"    {line}" for line in inside)
    yield "}"


def matrix(call: Call, word: str) -> str:
    """Return a pointer to operand `x0`, `x1`, ... or result `z0`, `z1`, ... of `each_matrix`."""
    types, array = call.step.operands, call.operand
    if word[0] == "z":
        types, array = call.step.results, call.result
    k, lead = int(word[1:]), call.step.operands[0].ndim - 2
    apart = prod(types[k].shape[lead:])
    if not lead or is_zero(apart):
        return array(k)
    return f"{array(k)} + {call.index} * {call.size(apart)}"


def arguments(call: Call, args: Sequence[str]) -> str:
    """Return arguments of a function, in which `x0`, `z0` and others stand for matrices."""
    return ", ".join([matrix(call, a) if _MATRIX.fullmatch(a) else a for a in args])


def _matrix(call: Call, name: str, args: Sequence[str]) -> Iterator[str]:
    """Yield calls of a function for each matrix, which may fail."""
    function = choose_function(call, name, _size(call))
    yield from each_matrix(call, call.checked_call(f"{function}({arguments(call, args)})"))


def _room(call: Call, count: int) -> str:
    """Allocate workspace for `count` elements of the operand's dtype."""
    return call.room(c_type(call.step.operands[0].dtype) or "", count)


def _size(call: Call) -> int:
    return call.step.operands[0].shape[-1]


def _matrices(name: str, arguments: str) -> Lines:
    """Return the generator of calls of a function for each matrix.

    Besides results and operands, `arguments` are workspace for a `matrix`, a `row` and an `order`
    of rows, the number `n` of rows, and the number `m` of columns of the result.
    """

    def lines(call: Call) -> Iterator[str]:
        n = _size(call)
        words: dict[str, Callable[[], str]] = {
            "matrix": lambda: _room(call, n * n),
            "row": lambda: _room(call, n),
            "order": lambda: call.room("int64_t", n),
            "n": lambda: call.size(n),
            "m": lambda: call.size(call.step.results[0].shape[-1]),
        }
        args = [words[word]() if word in words else word for word in arguments.split()]
        yield from _matrix(call, name, args)

    return lines


def _triangular(call: Call) -> Iterator[str]:
    n, m = call.step.operands[1].shape[-2:]
    flags = [str(int(call.step.params[k])) for k in ("lower", "transposed", "unit")]
    args = arguments(call, ["z0", "x0", call.size(n), call.size(m), *flags])
    size = f"{call.size(n * m)} * sizeof({c_type(call.step.results[0].dtype)})"
    yield from each_matrix(
        call,
        f"{call.use('memcpy')}({matrix(call, 'z0')}, {matrix(call, 'x1')}, {size});",
        call.checked_call(f"{choose_function(call, 'triangular', n)}({args})"),
    )


def _sparse_triangular(call: Call) -> Iterator[str]:
    data, b = call.step.operands[:2]
    function = call.use(f"pg_sparse_triangular_{type_name(data.dtype)}")
    size = f"{call.size(prod(b.shape))} * sizeof({c_type(b.dtype)})"
    sizes = map(call.size, (prod(data.shape[:-1]), data.shape[-1], *b.shape[-2:]))
    args = [call.result(), *map(call.operand, (0, 2, 3)), *sizes]
    yield f"{call.use('memcpy')}({call.result()}, {call.operand(1)}, {size});"
    yield call.checked_call(f"{function}({', '.join(args)}, {int(call.step.params['reverse'])})")


def _lu(call: Call) -> Iterator[str]:
    m, n = call.step.operands[0].shape[-2:]
    k = call.step.results[1].shape[-1]
    args, sizes = ["z0", "z1", "z2", "x0", _room(call, m * n)], list(map(call.size, (m, n, k)))
    if is_far(call, k):
        yield from _far(call, "lu", [*args, call.room("int64_t", m), *sizes])
        return
    function = call.use(f"pg_lu_factors_{type_name(call.step.operands[0].dtype)}")
    yield from each_matrix(call, f"{function}({arguments(call, [*args, *sizes])});")


# LAPACK only.


def _eigh(call: Call) -> Iterator[str]:
    """Yield `eigh` with the workspace of LAPACK's manual, for blocks of 64 columns."""
    n = _size(call)
    vectors = call.step.op.multiple
    more = 1 + 70 * n + (2 * n * n if vectors else 0)
    whole = 5 * n + 3
    room = call.room("double", n * n + n + more)
    args = ["z0", "z1" if vectors else "0", "x0", room, call.size(more)]
    args += [call.room("int64_t", whole), call.size(whole), call.size(n)]
    yield from _far(call, "eigh", args)


def _svd(call: Call) -> Iterator[str]:
    m, n = call.step.operands[0].shape[-2:]
    k = smaller(m, n)
    # Workspace of a matrix of size k by k and of both sides, and blocks of 64 columns.
    more = 4 * k * k + 138 * k + 65 * (m + n) + 4160
    u, s, v, p, q, job = "0", "z0", "0", 0, 0, "N"
    if call.step.op.multiple:
        u, s, v, job = "z0", "z1", "z2", "A" if call.step.params["full"] else "S"
        p, q = call.step.results[0].shape[-1], call.step.results[2].shape[-2]
    room = call.room("double", m * n + m * p + q * n + k + more)
    args = [u, s, v, "x0", room, call.size(more), call.room("int64_t", 8 * k)]
    yield from _far(call, "svd", [*args, *map(call.size, (m, n, p, q)), f'"{job}"'])


def _qr(call: Call) -> Iterator[str]:
    m, n = call.step.operands[0].shape[-2:]
    p = call.step.results[0].shape[-1]
    more = 64 * (m + n) + 4160
    # Workspace for the matrix and all columns, their scales, and what LAPACK requires.
    room = call.room("double", m * (n + p) + smaller(m, n) + more)
    args = ["z0", "z1", "x0", room, call.size(more), *map(call.size, (m, n, p))]
    yield from _far(call, "qr", args)


def _far(call: Call, name: str, args: Sequence[str]) -> Iterator[str]:
    """Yield calls of a LAPACK function for each matrix."""
    function = call.use(f"pg_lapack_{name}_{type_name(call.step.operands[0].dtype)}")
    yield from each_matrix(call, call.checked_call(f"{function}({arguments(call, args)})"))


def has_lapack(step: Step) -> bool:
    """Return whether LAPACK is available, and the operand is not empty."""
    return lapack() is not None and not any(is_zero(n) for n in step.operands[0].shape)


# Primitives that only LAPACK computes.
FAR: dict[Op, tuple[str, Lines]] = {
    spectra.eigh: ("f", _eigh),
    spectra.eigvalsh: ("f", _eigh),
    spectra.svd: ("f", _svd),
    spectra.svdvals: ("f", _svd),
    spectra.qr: ("f", _qr),
}

ROUTINES: dict[Op, tuple[str, Lines]] = {
    systems.solve: ("f", _matrices("solve", "z0 x0 x1 matrix order n m")),
    systems.inv: ("f", _matrices("solve", "z0 x0 0 matrix order n m")),
    systems.slogdet: ("f", _matrices("slogdet", "z0 z1 x0 matrix order n")),
    systems.det: ("f", _matrices("det", "z0 x0 matrix order n")),
    systems.triangular_solve: ("f", _triangular),
    systems.sparse_triangular_solve: ("f", _sparse_triangular),
    cholesky.cholesky: ("f", _matrices("cholesky", "z0 x0 row n")),
    cholesky.cholesky_tangent: ("f", _matrices("cholesky_tangent", "z0 x0 x1 matrix n")),
    cholesky.cholesky_slope: ("f", _matrices("cholesky_slope", "z0 x0 x1 n")),
    matrix_functions.lu: ("f", _lu),
}

# Without LAPACK, larger matrices are left to NumPy, which is called once.
MOST_ROWS = 64
