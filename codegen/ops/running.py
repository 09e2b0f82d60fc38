"""Cards of cumulative products and extrema."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.reductions import accumulation_card
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.codegen.ops.spelling.literals import dtype_text
from primgraph.codegen.ops.spelling.notation import Text
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16
from primgraph.primitives import running as p


def _card(ufunc: str, step: ComplexStep | None) -> Card:
    """Return the card of a ufunc's accumulation along an axis."""
    widens = ufunc == "multiply"

    def read(args: Sequence[Text], step: Step) -> Text:
        dtype = step.results[0].dtype
        scan = f"np.{ufunc}.accumulate({args[0].code}, axis={step.params['axis']}"
        if widens and dtype == FLOAT16:
            return Text(f"{scan}, dtype=np.float32).astype(np.float16)")
        return Text(f"{scan}, dtype={dtype_text(dtype)})" if widens else f"{scan})")

    return accumulation_card(read, ufunc, None, step)


CARDS: dict[Op, Card] = {
    p.cumprod: _card("multiply", ANALYTIC),
    p.cummax: _card("maximum", None),
    p.cummin: _card("minimum", None),
}
