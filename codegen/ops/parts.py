"""Cards of complex numbers: their parts, and construction from parts."""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.axis_semantics import ALIGNED
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ops.card import Card, Marks, plain
from primgraph.codegen.ops.cost_model import MOVED, per_element
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.spelling.ufuncs import ALL, ufunc
from primgraph.ir.primitive import Op
from primgraph.primitives import parts as p


def _part(name: str) -> Card:
    """Return the card of a part, of which NumPy returns a view: the result is copied."""

    def write(to: Target) -> list[str]:
        return [f"{to.out}[...] = {to.np(name)}({to.args[0]})"]

    made = plain(
        read=lambda args, step: Text(f"np.{name}({args[0].code}).copy()"),
        write=write,
        needs=None,
        blocking=ALIGNED,
        nanoseconds=MOVED,
        scalar=None,
        complex_step=None,
        marks=Marks.EACH,
    )
    return replace(made, inline=True)


def _write_complex(to: Target) -> list[str]:
    return [f"{to.out}.real = {to.args[0]}", f"{to.out}.imag = {to.args[1]}"]


CARDS: dict[Op, Card] = {
    p.real: _part("real"),
    p.imag: _part("imag"),
    p.conj: replace(
        ufunc("conjugate", shown="conj", time=MOVED, scalar=None, complex_step=None,
              marks=Marks.EACH),
    ),
    p.modulus: replace(
        ufunc("absolute", shown="abs", time=per_element(1.6, 0.9), scalar=None, complex_step=None,
              marks=Marks.EACH),
        in_place=(),
    ),
    p.complex_: replace(
        plain(
            read=lambda args, step: Text(f"complex_of({args[0].code}, {args[1].code})"),
            write=_write_complex,
            needs=None,
            blocking=ALIGNED,
            nanoseconds=MOVED,
            scalar=None,
            complex_step=None,
            marks=Marks.EACH,
        ),
        broadcasts=ALL,
        helper="complex_of",
    ),
}  # fmt: skip
