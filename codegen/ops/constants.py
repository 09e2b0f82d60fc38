"""Cards of constants, ranges and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from primgraph.codegen.ir.extents import ATOM, UNARY, Text, size_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import (
    converted,
    full_text,
    is_negative,
    scalar_text,
)
from primgraph.codegen.ops.spelling.notation import Read, Target, filling, reading
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Elements, Scalar
from primgraph.ir.dims import Dim
from primgraph.ir.primitive import Op
from primgraph.ir.types import INT64, DType
from primgraph.primitives import constants as c


def literal(value: Any, dtype: DType) -> Text:
    """Return a Python scalar or a size, which takes the dtype of the array it is combined with."""
    if type(value) is Dim:
        return size_text(value)._replace(scalar=value)
    text = scalar_text(value, dtype).replace("e+", "e")
    return Text(text, UNARY if is_negative(text) else ATOM, value)


# Constants.


def _read_filled(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    return Text(full_text(step.number, p["shape"], p["dtype"]))


def _read_iota(args: Sequence[Text], step: Step) -> Text:
    """Return a range along one axis; NumPy broadcasts it along the others."""
    p = step.params
    size, axis, ndim = p["shape"][p["axis"]], p["axis"], len(p["shape"])
    text = call("arange", size_text(size).code)
    if p["dtype"] != INT64:
        text = converted(text, p["dtype"])
    behind = ", None" * (ndim - 1 - axis)
    return Text(f"{text}[:{behind}]" if behind else text)


def _no_write(to: Target) -> list[str]:
    raise AssertionError("a constant is not written")


def _scalar_full(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number]:
    result = step.results[0]
    return [new.constant(result.dtype.type(step.params["value"]).item())] * result.size


def _scalar_constant(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number]:
    return [new.constant(x) for x in step.params["value"].data.ravel().tolist()]


def _literal(read: Read, scalar: Scalar | None) -> Card:
    """Return the card of a primitive without operands, evaluated before a kernel runs."""
    return replace(array_card(read, _no_write, None, None, MOVED, ANALYTIC), scalar=scalar)


# Random numbers.


def random_card(helper: str, read: Read) -> Card:
    """Return the card of a helper whose new array is copied into `out`."""
    return replace(_literal(read, None), write=filling(read), helper=helper)


CARDS: dict[Op, Card] = {
    c.full: _literal(_read_filled, Scalar(_scalar_full, integers=True)),
    c.extent: _literal(_read_filled, None),
    c.constant: _literal(lambda args, step: Text(""), Scalar(_scalar_constant, integers=True)),
    c.iota: _literal(_read_iota, None),
    c.random_uniform: random_card(
        "random_uniform", reading("random_uniform({0}, {shape}, {dtype}, {low}, {high})")
    ),
    c.random_bernoulli: random_card(
        "random_bernoulli", reading("random_bernoulli({0}, {shape}, {p})")
    ),
}
