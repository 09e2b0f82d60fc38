"""Cards of functions of matrices, which NumPy has none of: helpers."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.cards.card import Card
from primgraph.codegen.cards.linear_algebra.systems import function_card
from primgraph.codegen.cards.spelling.notation import Text
from primgraph.codegen.plan.schedule import Step
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
