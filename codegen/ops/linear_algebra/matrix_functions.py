"""Cards of matrix functions, which NumPy does not have: calls of helpers."""

from __future__ import annotations

from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra.systems import helper_card
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import matrix_functions as p

CARDS: dict[Op, Card] = {
    op: helper_card(op.name, None) for op in (p.expm, p.sqrtm, p.logm, *p.SLOPES, p.lu, p.eig)
}
