"""BLAS dispatch: use the loops of linear.c, or call LAPACK."""

from __future__ import annotations

import ctypes

from primgraph.codegen.ir.c_extents import is_few
from primgraph.codegen.ops.c.call_lines import Call
from primgraph.codegen.ops.c.spellings import type_name
from primgraph.codegen.runtime.lapack import lapack
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import cholesky, matrix_functions, systems

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
        return f"pg_{name}_{kind}"
    other = f"pg_lapack_{name}_{kind}"
    if type(n) is int:
        return other
    own = f"pg_{name}_{kind}"
    return f"({call.size(n)} < {FROM[call.step.op]} ? {own} : {other})"


def is_far(call: Call, n: int) -> bool:
    """Return whether LAPACK may be used, for some sizes at least."""
    return call.is_checked and not is_few(n, FROM[call.step.op] - 1) and lapack() is not None


def tell_of_lapack(library: ctypes.CDLL, text: str) -> None:
    """Pass the addresses of LAPACK's functions to a library with that source text."""
    if "pg_lapack_" not in text:
        return
    there = lapack()
    assert there is not None
    for name, functions in (("f64", there.doubles), ("f32", there.floats)):
        if f"void *pg_lapack_{name}[" in text:
            table = ctypes.c_void_p * len(functions)
            table.in_dll(library, f"pg_lapack_{name}")[:] = list(functions)
    if "int pg_lapack_wide" in text:
        ctypes.c_int.in_dll(library, "pg_lapack_wide").value = there.wide
