"""The card of functions that SciPy computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, element_card
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.spelling.ufuncs import ALL
from primgraph.ir.primitive import Op
from primgraph.primitives.special_functions import scipy_calls


def _arguments(operands: Sequence[str], step: Step) -> str:
    name, part = step.params["name"], step.params["part"]
    several = ", ".join(operands) + "," * (len(operands) == 1)
    return f'"{name}", {part}, ({several})'


def _read_by_scipy(args: Sequence[Text], step: Step) -> Text:
    return Text(f"by_scipy({_arguments([a.code for a in args], step)})")


def _write(to: Target) -> list[str]:
    return [f"by_scipy({_arguments(to.args, to.step)}, {to.out})"]


CARDS: dict[Op, Card] = {
    scipy_calls.by_scipy: replace(
        element_card(_read_by_scipy, _write, per_element(100.0, 100.0)),
        helper="by_scipy",
        inline=True,
        in_place=(*ALL, 3),
        fallible=True,
    )
}
