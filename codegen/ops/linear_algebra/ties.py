"""Card of the check that raises where derivatives of eigenvalues do not exist."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra.systems import function_card
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import ties as p


def _read_unless_any(args: Sequence[Text], step: Step) -> Text:
    message = step.params["message"]
    return Text(f"unless_any({args[0].code}, {args[1].code}, {message!r})")


CARDS: dict[Op, Card] = {p.unless_any: function_card(_read_unless_any, "unless_any", None)}
