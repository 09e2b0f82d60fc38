"""Cards of cumulative products and extrema."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.reductions import accumulating, accumulation_card
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.ir.primitive import Op
from primgraph.primitives import running as p


def _card(ufunc: str, step: ComplexStep | None) -> Card:
    """Return the card of a ufunc's accumulation along an axis."""

    def read(args: Sequence[Text], step: Step) -> Text:
        axis = step.params["axis"]
        return Text(accumulating(f"{ufunc}.accumulate", ufunc, step, args[0].code, axis=axis))

    return accumulation_card(read, ufunc, None, step)


CARDS: dict[Op, Card] = {
    p.cumprod: _card("multiply", ANALYTIC),
    p.cummax: _card("maximum", None),
    p.cummin: _card("minimum", None),
}
