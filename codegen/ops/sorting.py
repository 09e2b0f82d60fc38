"""Cards of sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import Text, size_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.shapes import ALONG
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import array_dtype, shape_text
from primgraph.codegen.ops.spelling.notation import (
    Read,
    Target,
    Write,
    filling,
    reading,
    statements,
)
from primgraph.ir.primitive import Op
from primgraph.primitives import sorting as p

_read_sort = reading("np.sort({0}, axis={axis})")
_read_argsort = reading('np.argsort({0}, axis={axis}, kind="stable")')


def _write_argsort(to: Target) -> list[str]:
    if to.step.operands[0].dtype.kind != "f":
        return filling(_read_argsort)(to)
    return [f"stable_argsort({to.args[0]}, {to.step.params['axis']}, {to.out})"]


def _read_empty(args: Sequence[Text], step: Step) -> Text:
    type = step.results[0]
    shape = size_text(type.shape[0]).code if type.ndim == 1 else shape_text(type.shape)
    return Text(call("empty", f"{shape}{array_dtype(type.dtype)}"))


def _amend_reorder_back(name: str, args: Sequence[Text], step: Step) -> str:
    x, index = args
    if step.operands[0].ndim == 1:
        return f"{name}[{index.code}] = {x.code}"
    return call("put_along_axis", name, index.code, x.code, axis=step.params["axis"])


def _write_reorder_back(to: Target) -> list[str]:
    return [_amend_reorder_back(to.out, [*map(Text, to.args)], to.step)]


def _read_searchsorted(args: Sequence[Text], step: Step) -> Text:
    side = {"side": '"right"'} if step.params["right"] else {}
    return Text(call("searchsorted", args[0].code, args[1].code, **side))


def _card(read: Read, write: Write, nanoseconds: float) -> Card:
    """Return the card of a primitive that compares or reorders elements along an axis."""
    time = per_element(nanoseconds, nanoseconds)
    return array_card(read, write, None, ALONG, time, None)


def _filled(read: Read, nanoseconds: float) -> Card:
    return _card(read, filling(read), nanoseconds)


CARDS: dict[Op, Card] = {
    p.sort: _card(_read_sort, statements("{out}[...] = {0}", "{out}.sort({axis})"), 40.0),
    p.argsort: _card(_read_argsort, _write_argsort, 40.0),
    p.sort_by: _card(_read_sort, statements("sort_by({args}, {axis}, {out})"), 3.0),
    p.reorder_back: replace(
        _card(_read_empty, _write_reorder_back, 3.0), amend=_amend_reorder_back, fallible=True
    ),
    p.reorder: replace(
        _filled(reading("np.take_along_axis({args}, axis={axis})"), 3.0), fallible=True
    ),
    p.searchsorted: replace(_filled(_read_searchsorted, 60.0), blocking=None),
}
