"""Cards of functions that are NumPy ufuncs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import ATOM, COMPARE, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, element_card
from primgraph.codegen.ops.cost_model import Time
from primgraph.codegen.ops.spelling.complex_step import ComplexStep
from primgraph.codegen.ops.spelling.notation import Target, reading
from primgraph.codegen.ops.spelling.scalar import Scalar

# All operands of an elementwise function.
ALL = (0, 1, 2)


def ufunc(
    name: str,
    infix: str = "",
    rank: int = ATOM,
    *,
    shown: str = "",
    time: Time,
    scalar: Scalar | None,
    complex_step: ComplexStep | None,
    marks: Marks,
) -> Card:
    """Return the card of `np.<name>`, written as an operator if `infix` is given."""

    call = reading(f"np.{shown or name}({{args}})")

    def read(args: Sequence[Text], step: Step) -> Text:
        if infix and len(args) == 1:
            return Text(f"{infix}{args[0].operand_code(rank + 1)}", rank)
        if infix:
            left = args[0].operand_code(rank + (rank == COMPARE))
            return Text(f"{left} {infix} {args[1].operand_code(rank + 1)}", rank)
        return call(args, step)

    # NumPy has deprecated a third positional operand of these two.
    out = "out=" if name in ("maximum", "minimum") else ""

    def write(to: Target) -> list[str]:
        return [f"{to.np(name)}({', '.join(to.args)}, {out}{to.out})"]

    return replace(
        element_card(read, write, time),
        scalar=scalar,
        complex_step=complex_step,
        marks=marks,
        inline=True,
        broadcasts=ALL,
        in_place=ALL,
        ufunc=name,
    )
