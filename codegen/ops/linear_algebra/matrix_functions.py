"""Cards of matrix functions, which NumPy does not have: calls of helpers."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra.systems import function_card
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import matrix_functions as p


def _helper_card(name: str) -> Card:
    def read(args: Sequence[Text], step: Step) -> Text:
        return Text(f"{name}({', '.join(a.code for a in args)})")

    return function_card(read, name, None)


CARDS: dict[Op, Card] = {
    **{op: _helper_card(op.name) for op in (p.expm, p.sqrtm, p.logm)},
    **{op: _helper_card(op.name) for op in p.SLOPES},
    p.lu: _helper_card("lu"),
    p.eig: _helper_card("eig"),
}
