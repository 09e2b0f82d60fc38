"""Cards of matrix products: by `matmul`, or by `dot` where that gives the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role, aligned_role
from primgraph.codegen.ir.extents import ATOM, MATMUL, MUL, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC
from primgraph.codegen.ops.spelling.literals import converted
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Elements, Scalar, total
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, FLOAT32, FLOAT64
from primgraph.primitives.linear_algebra import products as p

# Nanoseconds per multiplication and addition, for float64 and other floats; BLAS has no integers.
_PRODUCT = (0.04, 0.02)
_PRODUCT_OF_OTHERS = 1.0


def is_dot(step: Step) -> bool:
    """Return whether a product is written as `dot`, which has less overhead for two matrices.

    With a single element in a factor, `dot` treats 0 times infinity as 0. With one product per
    result element, it returns -0.0 for negative products that underflow; `matmul` adds these to
    0.0.
    """
    x, y = step.operands
    alone = x.size == 1 or y.size == 1 or x.shape[-1] == 1
    return x.ndim == 2 and x.is_float and x.dtype != FLOAT16 and not alone


def _read_matmul(args: Sequence[Text], step: Step) -> Text:
    x, y = args
    if step.results[0].dtype == FLOAT16:
        wide = [converted(a.operand_code(ATOM), FLOAT32) for a in args]
        return Text(converted(f"({wide[0]} @ {wide[1]})", FLOAT16))
    left = x.code if x.rank == MATMUL else x.operand_code(MUL + 1)
    return Text(f"{left} @ {y.operand_code(MUL + 1)}", MATMUL)


def _write(to: Target) -> list[str]:
    if to.step.results[0].dtype == FLOAT16:
        wide = to.np("float32")
        x, y = (f"{a}.astype({wide})" for a in to.args)
        return [f"{to.out}[...] = {to.np('matmul')}({x}, {y})"]
    name = "dot" if is_dot(to.step) else "matmul"
    return [f"{to.np(name)}({to.args[0]}, {to.args[1]}, {to.out})"]


def _role(step: Step, axes: Axes) -> Role | None:
    x, y = axes
    inner = step.results[0].ndim - 1
    if (x is not None and x < inner - 1) or (y is not None and y < inner - 1):
        return aligned_role(step, axes)
    if x == inner - 1 and y is None:
        return Role(inner - 1, (x, None))
    if y == inner and x is None:
        return Role(inner, (None, y))
    if x in (None, inner) and y in (None, inner - 1) and step.results[0].dtype != FLOAT16:
        return Role(None, (inner, inner - 1), "add")
    return None


def _time(step: Step) -> float:
    x, result = step.operands[0], step.results[0]
    each = _PRODUCT_OF_OTHERS
    if result.is_complex:
        each = 4 * _PRODUCT[result.dtype.itemsize != 16]
    elif result.is_float:
        each = _PRODUCT[result.dtype.itemsize != 8]
    return prod(result.shape) * x.shape[-1] * each


def _scalar(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number] | None:
    """Return sums of products in the order of their terms.

    Where one is not finite, another order may be: NumPy computes all of these.
    """
    if step.operands[0].dtype != FLOAT64:
        return None
    x, y = operands
    (*_, rows, inner), columns = x.shape, y.shape[-1]
    pairs = zip(x.reshape(-1, rows, inner), y.reshape(-1, inner, columns), strict=True)
    made = [
        total(new, [new("*", s, t) for s, t in zip(row, column, strict=True)])
        for a, b in pairs
        for row in a
        for column in b.T
    ]
    new.finite += made if inner > 1 else []
    return made


CARDS: dict[Op, Card] = {
    p.matmul: replace(
        array_card(_read_matmul, _write, None, Blocking(_role, 0, ""), _time, ANALYTIC),
        scalar=Scalar(_scalar),
        inline=True,
        blas=True,
    ),
}
