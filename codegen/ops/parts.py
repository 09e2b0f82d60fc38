"""Cards of complex numbers: their parts, and construction from parts."""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ops.card import Card, Marks, element_card
from primgraph.codegen.ops.cost_model import MOVED, Time, per_element
from primgraph.codegen.ops.spelling.notation import reading, statements
from primgraph.codegen.ops.spelling.ufuncs import ALL, ufunc
from primgraph.ir.primitive import Op
from primgraph.primitives import parts as p


def _part(name: str) -> Card:
    """Return the card of a part, of which NumPy returns a view: the result is copied."""
    read, write = (
        reading(f"np.{name}({{0}}).copy()"),
        statements(f"{{out}}[...] = {{np[{name}]}}({{0}})"),
    )
    return replace(element_card(read, write, MOVED), inline=True)


def _function(name: str, shown: str, time: Time) -> Card:
    return ufunc(name, shown=shown, time=time, scalar=None, complex_step=None, marks=Marks.EACH)


CARDS: dict[Op, Card] = {
    p.real: _part("real"),
    p.imag: _part("imag"),
    p.conj: _function("conjugate", "conj", MOVED),
    p.modulus: replace(_function("absolute", "abs", per_element(1.6, 0.9)), in_place=()),
    p.complex_: replace(
        element_card(
            reading("complex_of({args})"),
            statements("{out}.real = {0}", "{out}.imag = {1}"),
            MOVED,
        ),
        broadcasts=ALL,
        helper="complex_of",
    ),
}
