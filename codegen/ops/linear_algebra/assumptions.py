"""The card of `assumed`; debug mode keeps it in the code, and checks it at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.linear_algebra.systems import function_card
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra.assumptions import assumed


def _read_assumed(args: Sequence[Text], step: Step) -> Text:
    facts = ", ".join(f'"{fact}"' for fact in step.params["facts"])
    return Text(f"assumed({args[0].code}, [{facts}])")


CARDS: dict[Op, Card] = {
    assumed: replace(function_card(_read_assumed, "assumed", None), nanoseconds=MOVED),
}
