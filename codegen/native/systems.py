"""Calls of functions of C for linear systems and factors, one matrix of a stack after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from primgraph.codegen.native.call_lines import Call, Lines
from primgraph.codegen.native.extents import extent
from primgraph.codegen.native.spellings import c_type, type_name
from primgraph.ir.primitive import Op
from primgraph.primitives import matrix_functions, systems


def each_matrix(call: Call, *inside: str) -> Iterator[str]:
    """A loop over the matrices of a stack, with pointers `x0`, `x1`, ... to those of operands and
    `z0`, `z1`, ... to those of results."""
    lead = call.step.operands[0].ndim - 2
    arrays = [(f"x{k}", call.operand(k), t) for k, t in enumerate(call.step.operands)]
    arrays += [(f"z{k}", call.result(k), t) for k, t in enumerate(call.step.results)]
    turn = ["q++"]
    for name, place, type in arrays:
        const = "const " if name[0] == "x" else ""
        yield f"{const}{c_type(type.dtype)} *{name} = {place};"
        turn.append(f"{name} += {extent(prod(type.shape[lead:]))}")
    count = extent(prod(call.step.operands[0].shape[:lead]))
    yield f"for (long q = 0; q < {count}; {', '.join(turn)}) {{"
    yield from (f"    {line}" for line in inside)
    yield "}"


def _matrix(call: Call, name: str, args: Sequence[str]) -> Iterator[str]:
    """A function of each matrix, which may fail."""
    kind = type_name(call.step.operands[0].dtype)
    yield from each_matrix(call, call.tried(f"pg_{name}_{kind}({', '.join(args)})"))


def _room(call: Call, count: int) -> str:
    """Memory for so many elements."""
    dtype = call.step.operands[0].dtype
    return f"({c_type(dtype)} *){call.room(count * dtype.itemsize)}"


def _size(call: Call) -> int:
    return call.step.operands[0].shape[-1]


def _eliminated(name: str, results: Sequence[str], more: Sequence[str] = ()) -> Lines:
    """A function that eliminates, with room for a matrix and for an order."""

    def lines(call: Call) -> Iterator[str]:
        n = _size(call)
        order = f"(int64_t *){call.room(8 * n)}"
        rest = [extent(n)]
        if name == "solve":
            rest.append(extent(call.step.results[0].shape[-1]))
        yield from _matrix(call, name, [*results, *more, _room(call, n * n), order, *rest])

    return lines


def _triangular(call: Call) -> Iterator[str]:
    n, m = call.step.operands[1].shape[-2:]
    flags = [str(int(call.step.params[k])) for k in ("lower", "transposed", "unit")]
    args = ", ".join(["z0", "x0", extent(n), extent(m), *flags])
    kind = type_name(call.step.operands[0].dtype)
    yield from each_matrix(
        call,
        f"memcpy(z0, x1, {extent(n * m)} * sizeof *z0);",
        call.tried(f"pg_triangular_{kind}({args})"),
    )


def _cholesky(call: Call) -> Iterator[str]:
    n = _size(call)
    yield from _matrix(call, "cholesky", ["z0", "x0", _room(call, n), extent(n)])


def _tangent(call: Call) -> Iterator[str]:
    n = _size(call)
    args = ["z0", "x0", "x1", _room(call, n * n), extent(n)]
    yield from _matrix(call, "cholesky_tangent", args)


def _slope(call: Call) -> Iterator[str]:
    yield from _matrix(call, "cholesky_slope", ["z0", "x0", "x1", extent(_size(call))])


def _lu(call: Call) -> Iterator[str]:
    m, n = call.step.operands[0].shape[-2:]
    k = call.step.results[1].shape[-1]
    kind = type_name(call.step.operands[0].dtype)
    rows, columns, rank = extent(m), extent(n), extent(k)
    yield f"{c_type(call.step.operands[0].dtype)} *both = {_room(call, m * n)};"
    yield from each_matrix(
        call,
        f"memcpy(both, x0, {extent(m * n)} * sizeof *both);",
        f"pg_lu_{kind}(both, z0, {rows}, {columns});",
        f"for (long i = 0; i < {rows}; i++)",
        f"    for (long j = 0; j < {rank}; j++)",
        f"        z1[i * {rank} + j] = j < i ? both[i * {columns} + j] : i == j;",
        f"for (long i = 0; i < {rank}; i++)",
        f"    for (long j = 0; j < {columns}; j++)",
        f"        z2[i * {columns} + j] = j < i ? 0 : both[i * {columns} + j];",
    )


ROUTINES: dict[Op, tuple[str, Lines]] = {
    systems.solve: ("f", _eliminated("solve", ["z0", "x0", "x1"])),
    systems.inv: ("f", _eliminated("solve", ["z0", "x0", "0"])),
    systems.slogdet: ("f", _eliminated("slogdet", ["z0", "z1", "x0"])),
    systems.det: ("f", _eliminated("det", ["z0", "x0"])),
    systems.triangular_solve: ("f", _triangular),
    systems.cholesky: ("f", _cholesky),
    systems.cholesky_tangent: ("f", _tangent),
    systems.cholesky_slope: ("f", _slope),
    matrix_functions.lu: ("f", _lu),
}

# Matrices of more rows are BLAS's, through NumPy, where that has to be called but once.
MOST_ROWS = 64
