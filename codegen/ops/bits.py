"""Cards of bitwise operators of integers and floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from primgraph.codegen.ir.extents import AND, ATOM, OR, UNARY, XOR, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, element_card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.spelling.complex_step import (
    ANALYTIC,
    ComplexStep,
    as_on_reals,
    smooth_everywhere,
)
from primgraph.codegen.ops.spelling.literals import dtype_text
from primgraph.codegen.ops.spelling.notation import filling
from primgraph.codegen.ops.spelling.ufuncs import ufunc
from primgraph.ir.primitive import Op
from primgraph.primitives import bits as p


def _bits(name: str, infix: str = "", rank: int = ATOM) -> Card:
    """Return the card of a ufunc that scalar mode does not support."""
    return ufunc(
        name, infix, rank, time=MOVED, scalar=None, complex_step=ANALYTIC, marks=Marks.EACH
    )


def _read_bitcast(args: Sequence[Text], step: Step) -> Text:
    # A view of another dtype belongs to the operand: the copy keeps it from later writes.
    dtype = dtype_text(step.params["dtype"])
    return Text(f"{args[0].operand_code(ATOM)}.view({dtype}).copy()")


CARDS: dict[Op, Card] = {
    p.bitwise_and: _bits("bitwise_and", "&", AND),
    p.bitwise_or: _bits("bitwise_or", "|", OR),
    p.bitwise_xor: _bits("bitwise_xor", "^", XOR),
    p.bitwise_not: _bits("invert", "~", UNARY),
    p.left_shift: _bits("left_shift"),
    p.right_shift: _bits("right_shift"),
    p.gcd: _bits("gcd"),
    p.nextafter: replace(
        _bits("nextafter"),
        complex_step=ComplexStep(as_on_reals(np.nextafter), False, smooth_everywhere),
    ),
    p.bitcast: element_card(_read_bitcast, filling(_read_bitcast), MOVED),
}
