"""Printing of statements as NumPy code, with the names that a writer has for places."""

from __future__ import annotations

from typing import Any, Protocol

from primgraph.codegen.ir.places import (
    Constant,
    Fixed,
    Held,
    Number,
    Ones,
    Place,
    Result,
    name_of,
)
from primgraph.codegen.ir.statements import Call, Combine, Compute, Copy, Fill, Put
from primgraph.codegen.ops.spelling.literals import dtype_text, scalar_text
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.table import CARDS

# NumPy has deprecated a third positional operand of these two.
_OUT_BY_NAME = ("maximum", "minimum")


class Writer(Protocol):
    """Names of places and functions, and the lines of statements."""

    def np(self, name: str) -> str:
        """Return the local name of a NumPy function."""

    def use(self, place: Place) -> str:
        """Return the name of a place that the current lines read or write."""

    def line(self, text: str) -> None:
        """Add a line."""

    def bind(self, place: Place) -> None:
        """Tell that the lines have bound the name of a place to a new array."""

    def empty(self, place: Place, how: str = "empty") -> str:
        """Return the name of a new array for a result, which `how` allocates."""


def _print_compute(writer: Writer, x: Compute) -> None:
    args = [writer.use(p) for p in x.operands]
    if x.itself:
        function = writer.np(CARDS[x.step.op].ufunc)
        writer.line(f"{name_of(x.out)} = {function}({', '.join(args)})")
        writer.bind(x.out)
        return
    out = writer.empty(x.out, CARDS[x.step.op].fresh) if x.new else writer.use(x.out)
    parts = [writer.use(p) for p in x.parts]
    more = writer.np, x.new, x.replaced
    _print_statement(writer, Target(x.step, x.operands, args, out, x.taken, parts, *more))


def _print_put(writer: Writer, x: Put) -> None:
    args, part = [writer.use(p) for p in x.operands], writer.use(x.part)
    _print_statement(writer, Target(x.step, x.operands, args, part, None, [], writer.np))


def _print_statement(writer: Writer, to: Target) -> None:
    for line in CARDS[to.step.op].write(to):
        writer.line(line)


def print_results(writer: Writer, x: Call, text: str) -> None:
    """Print the results of a call, of which `text` is the expression."""
    if x.step.op.multiple:
        writer.line(f"t = {text}")
    for k, place in enumerate(x.outs):
        found = f"t[{k}]" if x.step.op.multiple else text
        if CARDS.get(x.step.op) is not None and not x.step.results[k].shape:
            found = f"{writer.np('asarray')}({found})"
        if isinstance(place, Result) and not place.given:
            writer.bind(place)
            writer.line(f"{name_of(place)} = {found}")
        else:
            writer.line(f"{writer.use(place)}[...] = {found}")


def _print_fill(writer: Writer, x: Fill) -> None:
    writer.line(f"{writer.use(x.out)}.fill({scalar_text(x.value, x.dtype)})")


def _print_copy(writer: Writer, x: Copy) -> None:
    if x.new:
        assert isinstance(x.out, Result | Held)
        writer.line(f"{name_of(x.out)} = {writer.use(x.source)}.copy()")
        writer.bind(x.out)
    else:
        writer.line(f"{writer.use(x.out)}[...] = {writer.use(x.source)}")


def _print_combine(writer: Writer, x: Combine) -> None:
    part, total = writer.use(x.part), writer.use(x.total)
    out = "out=" if x.how in _OUT_BY_NAME else ""
    writer.line(f"{writer.np(x.how)}({total}, {part}, {out}{total})")


STATEMENTS: dict[Any, Any] = {
    Compute: _print_compute,
    Put: _print_put,
    Fill: _print_fill,
    Copy: _print_copy,
    Combine: _print_combine,
}


def constant_text(place: Fixed) -> str:
    """Return the expression of the array of a constant."""
    match place:
        case Number(value=value, dtype=dtype):
            return f"np.array({scalar_text(value, dtype)}, {dtype_text(dtype)})"
        case Ones(count=count, dtype=dtype):
            return f"np.ones({count}, {dtype_text(dtype)})"
        case Constant(step=step):
            found: str = CARDS[step.op].read([], step).code
            return found
